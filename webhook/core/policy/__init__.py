"""The configured policy: modes, ceilings, exemptions, defaults and the cluster's capacity."""
