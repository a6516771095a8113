"""Clusters as files: capture, load and anonymise snapshots."""
