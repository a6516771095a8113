"""What `webhook` needs besides the server: an example, its console, a registration."""
