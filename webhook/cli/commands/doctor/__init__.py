"""``evenspread doctor``: read an installation, then diagnose it without further requests."""
