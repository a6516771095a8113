"""What rules are made of, and the questions that several of them ask."""
