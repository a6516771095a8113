"""Prove how many of a workload's equal pods get a node in every placement order."""
