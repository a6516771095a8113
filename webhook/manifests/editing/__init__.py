"""Edit files without changing any other byte, and prove it."""
