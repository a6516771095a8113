"""Place the pods of several workloads under shared caps (SpreadGroups).

A plan computes fields for the pods of each workload. With these fields, every scheduling order keeps the caps.
"""
