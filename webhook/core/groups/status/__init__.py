"""The status of a group in a cluster: its plan, stored or new, its pods compared with its caps, and its problems."""
