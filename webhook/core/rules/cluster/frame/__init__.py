"""What rules about the cluster are made of: how others than kube-scheduler read constraints."""
