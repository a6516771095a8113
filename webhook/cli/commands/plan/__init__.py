"""``evenspread plan``: read a group, derive its plan, and print it."""
