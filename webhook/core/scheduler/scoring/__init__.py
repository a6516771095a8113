"""How kube-scheduler chooses among the nodes that admit a pod."""
