"""All decisions as pure functions: no I/O, clock, randomness, logging, Flask or Kubernetes client."""
