"""``evenspread explain``: the question, its answer, and the pages."""
