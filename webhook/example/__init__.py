"""What `--example` serves: a policy, a small cluster, requests to try; made up, but as clusters are."""
