"""Shared parts of all rules: findings, fixes, constraints as written, and usable nodes."""
