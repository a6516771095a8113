"""The files of `webhook --example`: an invented policy and cluster, and three requests to try."""
