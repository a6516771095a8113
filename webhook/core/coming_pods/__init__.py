"""The pods that a controller will create: the next pod, missing pods, pods of a rollout, one pod per node."""
