"""The webhook's process.

    run            settings of a process, and gunicorn
    worker         the worker process: two ports, deadlines, limits, draining
    listener       accepts connections, identified by source before the handshake
    connection_table  selects the connection to close when the table is full
    connection     reads requests, with a short path for plain requests (plain_request)
    asgi           the ASGI callables: two admission routes, health
    review_threads threads for reviews with long bodies
    costly         evaluates costly objects in processes
    request_body   reads a body within limits, or refuses it
    response       ASGI types and responses
    waiting        reviews waiting for their pod's owner, or for the first lists
    wsgi_bridge    every other route: Flask, in threads
    routes         the Flask applications
    certificates   a TLS context reloaded from its files, and the writers of these files
    state          shared changing state, and the tasks that update it

`webhook.admission` does not import this package, so a new server needs no change to reviews.
"""
