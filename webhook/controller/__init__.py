"""The controller process: a Lease elects the acting replica. It answers no admission requests.

run        the process: election, main loop, health port
authority  rotates the CA and completes the webhook configurations
scan       scans the workloads of the cluster, listed by workload_lister
reports    writes the reports of a scan, events its events, groups the statuses of SpreadGroups
bounds     limits for writes, CPU and time
figures    metrics of the scan
"""
