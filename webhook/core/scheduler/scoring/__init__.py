"""kube-scheduler's scores of the nodes that admit a pod."""
