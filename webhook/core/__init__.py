"""Pure: values in, values out. No I/O, clock, randomness, logging, Flask, or Kubernetes client."""
