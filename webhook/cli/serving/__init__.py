"""What `webhook` needs besides the server: an example, a registration."""
