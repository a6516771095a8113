"""The command line as one file."""
