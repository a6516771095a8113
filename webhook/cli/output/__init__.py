"""Text for the terminal: results, errors, pages, colours and progress."""
