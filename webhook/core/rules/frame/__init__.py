"""What rules are made of, and what several of them share."""
