"""HTTP/1.1 in the event loop: connections, requests and responses."""
