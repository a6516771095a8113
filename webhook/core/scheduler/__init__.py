"""What kube-scheduler says of one pod: its filters in its order, and its sentence."""
