"""Changes of constraints that help pods without a node: candidates, trials on one pod, and texts."""
