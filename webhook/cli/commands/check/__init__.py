"""``evenspread check``: check manifests, fix them, or add default constraints."""
