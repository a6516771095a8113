"""The webhook's process.

    run            settings of a process, and gunicorn
    worker         the worker process: two ports, deadlines, limits, draining
    http           connections, requests and responses
    asgi           the ASGI callables: two admission routes, health
    review_threads threads for reviews with long bodies
    costly         evaluates expensive objects in separate processes
    waiting        reviews waiting for the pod's owner, or for the first lists of the index
    wsgi_bridge    the route /metrics: Flask, in threads
    routes         the Flask application of the plain HTTP port
    certificates   a TLS context reloaded from the certificate files, and the writers of these files
    state          mutable state shared by the routes, and the tasks that update it

`webhook.admission` does not import this package, so replacing the server needs no change to reviews.
"""
