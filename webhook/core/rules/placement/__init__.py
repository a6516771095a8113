"""Rules about whether the pods of a workload find nodes."""
