"""What `explain` is asked about, and how it prints the answer."""
