"""A table of what a run has measured."""

import contextlib
from collections.abc import Iterator, Sequence

import pytest


@contextlib.contextmanager
def printed(config: pytest.Config, columns: Sequence[str]) -> Iterator[list[list[str]]]:
    """Rows that the block adds to, printed at its end whatever pytest captures."""
    rows: list[list[str]] = []
    yield rows
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print("\n")
        for row in (columns, ["---"] * len(columns), *rows):
            print("| " + " | ".join(row) + " |")
