"""Everything that can be said of an object: one rule a file, listed in `rule_set`."""
