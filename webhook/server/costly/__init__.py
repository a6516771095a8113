"""Processes for costly objects: their pool, a process, and the messages between both."""
