"""The checks of constraints: one rule per file, listed in `rule_set`."""
