"""What kube-apiserver does with an object: decode it, refuse it in its own words, fill in defaults."""
