"""Rules about the object itself. They need no cluster."""
