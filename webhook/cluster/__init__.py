"""The API server's protocol. Each request raises ClusterError if it gets no answer, RefusedError if it is refused."""
