"""The configured policy as values, and what it says about the cluster's capacity."""
