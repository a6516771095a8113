"""What kube-apiserver does not say: one family of rules a file."""
