"""The process that looks after things: one replica acts, elected by a Lease; nothing here is in the way of a request.

run        the process: election, the loop, the health port
authority  our CA: rotated in time, trusted by the API server
scan       what runs in the cluster, again and again, listed by workload_lister
reports    the reports of a scan, as events its events; groups the statuses of SpreadGroups
bounds     how much may be written, computed and waited for
figures    the scan's metrics
"""
