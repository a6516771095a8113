"""Edit files without changing any other byte, and verify this before writing."""
