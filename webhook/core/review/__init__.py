"""The entrance of the core: a request, the policy and the cluster -> a decision."""
