"""Costly objects, judged by processes of their own: the pool of them, a process, and what both say to each other."""
