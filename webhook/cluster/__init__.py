"""The API server's protocol. Requests raise ClusterError without an answer, and RefusedError for a refusal."""
