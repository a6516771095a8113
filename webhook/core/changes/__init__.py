"""Changes of constraints that would help: the candidates, their trial on one pod, and their words."""
