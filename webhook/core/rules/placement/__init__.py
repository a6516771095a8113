"""Rules that count places."""
