"""Helpful changes of constraints for pods without a node: candidates, trials on a single pod, and texts."""
