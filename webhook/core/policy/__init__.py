"""The configured policy as values: modes, ceilings, exemptions, defaults and the cluster's capacity."""
