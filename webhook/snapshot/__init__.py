"""A cluster as a file: capture it, load it, anonymise it."""
