"""The tables of the index: nodes, pods, volumes, owners and namespaces."""
