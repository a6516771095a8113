"""Scan a cluster: findings, skew, Pending pods and zone losses of each workload.

Example:
    within = scan_context(context)
    scans = [scan_workload(raw, within) for raw in objects]
    cluster = cluster_scan([scan for scan in scans if scan is not None], within)
"""
