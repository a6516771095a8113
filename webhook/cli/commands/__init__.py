"""The commands: a file or folder for each. They never import each other."""
