"""The command ``evenspread skew``: its options and tables, and the repair of a skew."""
