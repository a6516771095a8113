"""What `check`, `audit` and `test` do with manifests: examine them, collect the results, fix them."""
