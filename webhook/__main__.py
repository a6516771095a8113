"""Run ``python -m webhook``: the command line without an installed script, for example in the image."""

from webhook.cli.main import run

if __name__ == "__main__":
    run()
