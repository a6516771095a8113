"""What becomes of whole workloads, also if the cluster were another: a drain, a lost zone, more nodes, a rollout."""
