"""``evenspread lsp``: the language server for editors."""
