"""The start of short commands: the number of imported modules. Unlike times, it is the same on a busy machine.

`python -m bench.command_line` prints the processor time.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = (
    "import atexit, json, sys; from webhook.cli.main import run; sys.argv = ['evenspread', *sys.argv[1:]]; "
    "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr)); run()"
)
# Slow to import, or needed only to reach another process.
NEVER = {
    "flask",
    "jinja2",
    "jsonschema",
    "kubernetes",
    "multiprocessing",
    "rich",
    "sqlite3",
    "typing_extensions",
    "uvloop",
}
SERVERS = {
    "asyncio",
    "concurrent.futures",
    "cryptography",
    "gunicorn",
    "http.client",
    "prometheus_client",
}
SERVERS |= {"importlib.metadata", "ssl", "urllib.request", "webhook.admission", "webhook.controller", "webhook.server"}
READERS = {"webhook.core.index", "webhook.core.rules", "webhook.manifests", "yaml"}


class Start(NamedTuple):
    """A command, its highest numbers of modules, and modules it must not import."""

    command: str
    ours: int
    all: int
    absent: set[str]


@pytest.mark.parametrize(
    "start",
    [
        # Each bound is a few modules above today's number, for every release of Python.
        pytest.param(
            Start("check --fail-on never examples/warned.yaml", 286, 503, NEVER | SERVERS), id="check of a file"
        ),
        pytest.param(Start("version", 14, 160, NEVER | SERVERS | READERS), id="version"),
        pytest.param(Start("--version", 10, 210, NEVER | SERVERS - {"importlib.metadata"} | READERS), id="--version"),
        # The list of commands imports each of them, to name the missing extra of those that cannot run.
        pytest.param(Start("--help", 462, 852, NEVER), id="--help"),
    ],
)
def test_a_command_imports_few_modules(start):
    command = [sys.executable, "-c", SCRIPT, *start.command.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 our own command
    imported = set(json.loads(done.stderr.splitlines()[-1]))

    assert imported & start.absent == set()
    assert sum(name.partition(".")[0] == "webhook" for name in imported) <= start.ours
    assert len(imported) <= start.all
