"""How many pods of a workload find a place: bounds, and proofs over every order."""
