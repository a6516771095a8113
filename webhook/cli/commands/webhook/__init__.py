"""``evenspread webhook``: start the server, with an example or a registration."""
