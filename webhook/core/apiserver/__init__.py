"""kube-apiserver's treatment of an object: decoding, defaults, admission plugins, validation."""
