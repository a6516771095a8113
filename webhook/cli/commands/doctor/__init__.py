"""``evenspread doctor``: read an installation, then judge it from these facts alone."""
