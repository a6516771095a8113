"""Kinds that make pods: where each has its template, what it is called, which labels its controller adds."""
