"""kube-scheduler's scores of admitting nodes."""
