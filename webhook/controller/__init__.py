"""The process that looks after things: one replica acts, elected by a Lease; nothing here is in the way of a request.

run        the process: election, the loop, the health port
authority  our CA: rotated in time, trusted by the API server
health     liveness, readiness and metrics, on a plain port
"""
