"""Review processes for objects too costly to review in the server process.

The modules define the pool of review processes, a single review process, and the messages between pool and process.
"""
