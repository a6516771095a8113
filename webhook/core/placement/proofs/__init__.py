"""How many equal pods of one workload fit, in closed form: bounds, and proofs that hold for every order."""
