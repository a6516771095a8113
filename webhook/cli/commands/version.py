"""``evenspread version``."""

import click

from webhook import __version__
from webhook.core.api.version import ANNOUNCED, SUPPORTED


@click.command()
def version() -> None:
    """Print the version and the supported Kubernetes releases."""
    click.echo(f"evenspread {__version__} (Kubernetes {SUPPORTED}; {ANNOUNCED} as announced)")
