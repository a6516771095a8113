"""What `explain` asks about, and how it tells the answer."""
