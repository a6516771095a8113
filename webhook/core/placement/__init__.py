"""Placement of the pods of whole workloads in a cluster."""
