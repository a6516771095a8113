"""The Kubernetes API as values: objects, selectors, label syntax, quantities and releases."""
