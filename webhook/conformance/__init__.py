"""Compare evenspread with recorded answers of Kubernetes."""
