"""What the platform team decided, and what it says of the capacity of the cluster."""
