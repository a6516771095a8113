"""Recorded verdicts of Kubernetes, decided again by this code."""
