"""Default constraints: which a pod gets, the patch that gives them, and the next pod of a workload with them."""
