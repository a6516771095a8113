"""The container image, built by ordinary means: see build.py."""
