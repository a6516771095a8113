"""Why no node admits a pod, and the smallest change after which one does."""
