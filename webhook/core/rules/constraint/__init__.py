"""Rules about the object itself, which need no cluster."""
