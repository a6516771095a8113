"""What becomes of whole workloads, also if the cluster were another."""
