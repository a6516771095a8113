"""The certificate authority: what serves TLS, and knows nothing of webhooks."""
