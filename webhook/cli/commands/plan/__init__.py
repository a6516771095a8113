"""``evenspread plan``: a group of files or of the cluster, and the plan for it."""
