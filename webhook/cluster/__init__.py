"""The API server's protocol.

A request raises ClusterError if there is no response, and RefusedError if the API server refuses the request.
"""
