"""Read YAML and JSON files like Kubernetes clients, and edit them without changing any other byte."""
