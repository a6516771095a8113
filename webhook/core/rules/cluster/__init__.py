"""Rules about a constraint and the nodes, pods and workloads that there are."""
