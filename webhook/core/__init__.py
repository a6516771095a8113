"""All decisions, without I/O, clock, randomness, logging, Flask or Kubernetes client."""
