"""What feeds the index from outside; the only place that may know the Kubernetes client."""
