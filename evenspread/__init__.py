"""What the distribution installs: one name, and beneath it the packages `webhook` and `certs`.

Their imports say ``webhook`` and ``certs``, which are names that others have too. So the wheel puts them into this
folder, and the programs put the folder before everything else, in their own process alone. In a clone, and where it is
installed as editable, they stand beside it.
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
