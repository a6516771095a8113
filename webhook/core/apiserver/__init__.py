"""kube-apiserver's part: decoding, defaults, admission plugins and validation."""
