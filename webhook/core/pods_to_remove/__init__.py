"""Pods that a controller removes when it scales in: their order, and its effects on domains."""
