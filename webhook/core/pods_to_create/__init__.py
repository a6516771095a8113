"""Future pods of a controller: the next pod, missing pods, pods of a rollout, a pod for each node."""
