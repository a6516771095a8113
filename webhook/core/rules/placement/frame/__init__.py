"""Code shared by the placement rules: the template in the cluster, lost zones, shortfalls and fixes."""
