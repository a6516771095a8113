"""``evenspread audit``: check a whole cluster."""
