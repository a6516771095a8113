"""The controller process. Only the replica holding the Lease acts.

The controller serves no admission requests.

    run        the process: election, main loop, health port
    authority  rotates the CA and completes the webhook configurations
    scan       scans the workloads of the cluster, listed by workload_lister
    reports    writes the reports of a scan
    events     writes the events of a scan
    groups     writes the statuses of SpreadGroups
    admission_policies  writes the policies of the chart
    bounds     limits for writes, CPU and time
    figures    metrics of the scan
"""
