"""The state of a whole cluster: of every workload the findings, its pods, why some wait, and the loss of a zone.

scan_context     the context of the workloads of one slice
workload_scan    one workload -> ScannedWorkload
cluster_scan     all of them -> ClusterScan, the worst first
"""
