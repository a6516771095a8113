"""What rules about places share: one template in the cluster, what it could lose, and what could be done."""
