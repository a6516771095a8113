"""Scan a cluster: each workload's findings and pods, the cause of Pending pods, and the loss of a zone.

Example:
    within = scan_context(context)
    scans = [scan_workload(raw, within) for raw in objects]
    cluster = cluster_scan([scan for scan in scans if scan is not None], within)
"""
