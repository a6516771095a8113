"""Findings as objects of the cluster: report documents that dashboards read."""
