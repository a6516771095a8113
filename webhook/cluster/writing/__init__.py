"""The objects that the program changes in the cluster; the admission path changes none."""
