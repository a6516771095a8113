"""Read files like Kubernetes' clients: documents, objects, and the position of each field."""
