"""Caps over the pods of several workloads, and the fields of their pods that keep them in every order."""
