"""The Kubernetes API as values: objects, selectors, label syntax, quantities, releases; no behaviour of a component."""
