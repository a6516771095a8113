"""Review processes for objects too costly to review in the server process.

The modules have the pool of processes, a process, and the messages between both.
"""
