"""Explanations: why no node admits a pod, and the smallest change to help it."""
