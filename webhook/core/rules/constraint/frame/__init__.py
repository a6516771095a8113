"""What rules about constraints share: kube-apiserver's errors with their fixes, and the names of fields."""
