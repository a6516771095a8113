"""The scripts of a release."""
