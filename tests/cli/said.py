"""Writes what `check` says of testdata/manifests, beside each: ``PYTHONPATH=tests python tests/cli/said.py``.

``NAME.yaml`` is a manifest with a mistake, which its first line names; ``NAME.right.yaml`` is the same without it, and
``NAME.said`` what is said of both. ``.policy`` beside a manifest is the configuration that it is checked with. Whoever
runs this reads every line that changed: is it true, and would its reader know what to change?
"""

import contextlib
import io
import json
from pathlib import Path

from webhook.cli.main import main

MANIFESTS = Path(__file__).parents[1] / "testdata" / "manifests"


def names():
    """Every manifest that has a twin."""
    return sorted(path.name.removesuffix(".right.yaml") for path in MANIFESTS.glob("*.right.yaml"))


def said(name):
    """What is said of a manifest and its twin, as the file beside them has it."""
    return f"{checked(f'{name}.yaml')}--- {name}.right.yaml\n{checked(f'{name}.right.yaml')}"


def checked(file):
    """Findings and notes of one file, and the exit code."""
    path = MANIFESTS / file
    policy = path.with_suffix(".policy")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(
            [
                "check",
                str(path),
                "-o",
                "json",
                "--level",
                "audit",
                *(["--config", str(policy)] if policy.exists() else []),
            ]
        )
    rows = [row for row in json.loads(out.getvalue()) if "severity" in row]
    lines = [line for row in rows for line in told(row)]
    notes = err.getvalue().replace(f"{path}:", "").splitlines()
    return "".join(f"{line}\n" for line in [*lines, *notes, f"exit code {int(code)}"])


def told(row):
    """One finding: where it stands, what it says, and what to do."""
    yield f"{row['line']}:{row['column']} {row['severity']} {row['rule']} ({row['mode']}) {row['path']}"
    yield f"  {row['message']}"
    if row["fix"]:
        yield f"  fix: {row['fix']}"


if __name__ == "__main__":
    for each in names():
        (MANIFESTS / f"{each}.said").write_text(said(each))
