"""One filter plugin of kube-scheduler a file."""
