"""The process that answers.

    run       the settings of one process, and gunicorn around them
    worker    gunicorn's asgi worker with its defects mended: TLS, deadlines, limits, drain
    asgi      the ASGI callables: the two admission routes, health
    bridge    every other route: Flask, in threads
    routes    the Flask applications
    tls       a TLS context that follows its files
    state     what changes while the process serves
    upkeep    what runs beside the requests: configuration and certificates

`review(bytes) -> bytes` knows nothing of this package, so that the worker can be changed in one file.
"""
