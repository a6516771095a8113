"""What is known of the cluster, kept by events and asked by selectors."""
