"""Find changes of constraints that help pods without a node.

The modules find candidate changes, test each change on a pod, and describe each change in words.
"""
