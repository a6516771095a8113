"""The command ``evenspread explain``: its options, and the output for a pod and for all pending pods."""
