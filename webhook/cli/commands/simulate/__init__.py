"""``evenspread simulate``: place whole workloads, in the present or a changed cluster."""
