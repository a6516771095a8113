"""Rules about a constraint and the nodes, pods and workloads of the cluster."""
