"""Closed forms for equal pods of a workload: bounds and proofs for every order."""
