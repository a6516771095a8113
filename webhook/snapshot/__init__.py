"""A cluster as a file: write it, read it, take the names out."""
