"""How the pods of whole workloads fill the cluster."""
