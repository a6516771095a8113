"""kube-scheduler's filter plugins, a file each, and their shared computations."""
