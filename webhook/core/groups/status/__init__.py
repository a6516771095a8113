"""The status of a group in a cluster: its plan, its pods compared with its caps, and its problems."""
