"""The webhook's process.

    run            the settings of one process, and gunicorn around them
    worker         gunicorn's asgi worker with its defects fixed: TLS, deadlines, limits, drain
    listener       accepting connections, known by their source address before the handshake
    connection_table  which connection gives way where there is no room for all of them
    connection     one connection on gunicorn's protocol, with a fast path for reviews
    asgi           the ASGI callables: the two admission routes, health
    costly         costly objects, judged by processes; costly_job is what both say, costly_process the other end
    request_body   reading a body within limits
    owner_wait     reviews that wait for their pod's owner
    wsgi_bridge    every other route: Flask, in threads
    routes         the Flask applications
    tls            a TLS context that follows its files
    allocator      memory that goes back to the system once it is free
    state          what changes while the process serves
    file_watchers  tasks beside the requests: configuration and certificates

`webhook.admission` knows nothing of this package, so that the server can be replaced without touching reviews.
"""
