"""Which pods a controller will create: the next one, those that are missing, those of a rollout, one for each node."""
