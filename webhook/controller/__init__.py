"""The process that looks after things: one replica acts, elected by a Lease; nothing here is in the way of a request.

run        the process: election, the loop, the health port
authority  our CA: rotated in time, trusted by the API server
scan       what runs in the cluster, again and again: gathering, share
reports    what is written of it, as are events; within an allowance
figures    its metrics
health     liveness, readiness and metrics, on a plain port
"""
