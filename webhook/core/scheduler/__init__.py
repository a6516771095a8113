"""kube-scheduler's decision about one pod: its filters in order, and its message."""
