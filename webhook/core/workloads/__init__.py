"""Kinds of workloads: their pod templates, names, and the labels added by their controllers."""
