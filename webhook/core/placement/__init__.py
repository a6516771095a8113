"""How many pods of one workload fit: bounds that hold for every order, and proofs that all of them find a node."""
