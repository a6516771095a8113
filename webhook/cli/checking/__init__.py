"""What `check`, `audit` and `test` do with manifests: look, count, mend."""
