"""Kinds that make pods: their templates, names, and the labels their controllers add."""
