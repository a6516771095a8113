"""The documents of `-o json`: one type is the output, its published schema, and what the console reads.

explained    a question about one pod -> Explained
simulated    what becomes of the pods of workloads -> Simulated
planned      a plan for a group -> Planned
"""
