"""Rules about what is written, which need no cluster."""
