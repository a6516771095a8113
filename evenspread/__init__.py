"""The entry points of the installed distribution, and the folder of its packages `webhook` and `certs`.

Other projects use the names ``webhook`` and ``certs`` too. So the wheel contains both packages inside this folder, and
`run` puts the folder at the front of ``sys.path`` of its own process. In a clone or an editable install the packages
are next to the folder.
"""

import sys
from pathlib import Path


def run() -> None:
    """Run the command line."""
    _find_packages()
    from webhook.cli.main import run as start  # noqa: PLC0415 found now

    start()


def complete() -> None:
    """Complete a command line for kubectl."""
    _find_packages()
    from webhook.cli.completion import kubectl  # noqa: PLC0415 found now

    kubectl()


def _find_packages() -> None:
    here = Path(__file__).parent
    sys.path.insert(0, str(here if (here / "webhook").is_dir() else here.parent))
