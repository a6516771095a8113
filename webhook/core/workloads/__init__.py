"""Workload kinds: their pod templates, names and labels added by controllers."""
