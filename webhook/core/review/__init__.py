"""The one entrance: a request, a policy and the cluster in; a decision out."""
