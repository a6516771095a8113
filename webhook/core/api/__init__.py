"""The Kubernetes API's types and syntax: objects, selectors, quantities, releases."""
