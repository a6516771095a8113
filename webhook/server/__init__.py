"""The webhook's process.

    run            the settings of one process, and gunicorn around them
    worker         the worker process: two ports, deadlines, limits, drain
    listener       accepting connections, known by their source before the handshake
    connection_table  which connection gives way where there is no room for all
    connection     reading requests, and a short way for plain ones (plain_request)
    asgi           the ASGI callables: the two admission routes, health
    costly         costly objects, judged by processes
    request_body   reading a body within limits
    waiting        reviews that wait for their pod's owner, or for the first lists
    wsgi_bridge    every other route: Flask, in threads
    routes         the Flask applications
    certificates   a TLS context that follows its files, and who writes them
    state          what changes while the process serves, and tasks that follow it

`webhook.admission` knows nothing of this package, so that the server can be replaced without touching reviews.
"""
