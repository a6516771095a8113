"""``evenspread version``."""

import click

from webhook import __version__
from webhook.core.api.version import NEWEST, OLDEST, RECORDED


@click.command()
def version() -> None:
    """Print the version, and the Kubernetes releases that it knows."""
    click.echo(f"evenspread {__version__} (Kubernetes {OLDEST} to {NEWEST}; verdicts recorded with {RECORDED})")
