"""The command line. Each command has a file or folder in `webhook.cli.commands`."""
