"""Simulation of workloads in a changed cluster: a drain, a lost zone, more nodes."""
