"""The cluster in memory: events update it, and selectors query it."""
