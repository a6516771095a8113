"""Bounds and proofs on the placed pods of a workload with equal pods, for every order."""
