"""What the index is made of: a table for each kind of thing that it knows."""
