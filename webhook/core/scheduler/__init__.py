"""kube-scheduler's decision about a pod: its filters in order, and its message."""
