"""``python -m webhook``: the command line where no script was installed, as in the image."""

from webhook.cli.main import run

if __name__ == "__main__":
    run()
