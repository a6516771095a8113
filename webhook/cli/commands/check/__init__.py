"""What `check` writes into manifests instead of printing findings: fixes, and constraints by default."""
