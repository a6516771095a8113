"""``evenspread audit``: the page of a whole cluster."""
