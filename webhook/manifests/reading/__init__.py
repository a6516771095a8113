"""Files as Kubernetes' clients read them: documents, objects, and the place of each field."""
