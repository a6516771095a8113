"""YAML and JSON files as Kubernetes' clients read them, and edits that leave every other byte."""
