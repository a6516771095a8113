"""What stands in a whole cluster: of every workload what the rules say, how its pods stand, why some wait, what fails.

surroundings     what all workloads of one slice are scanned in
workload_scan    one workload -> ScannedWorkload
cluster_scan     all of them -> ClusterScan, the worst first
"""
