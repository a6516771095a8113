"""What formats share: their signature, and the fields of a row as they are printed."""

from collections.abc import Iterator
from typing import Protocol

from webhook.cli.outcome import Outcome, Row
from webhook.core.rules.finding import one_line

MOST_CHARS = 4096  # of one text from outside; one field of an object can hold megabytes


class Render(Protocol):
    """An outcome as text, piece by piece; ``color`` allows terminal colours."""

    def __call__(self, outcome: Outcome, *, color: bool) -> Iterator[str]: ...


def message(row: Row) -> str:
    """What is wrong, with the numbers: kube-apiserver's own words where it has any."""
    return one_line(row.judged.finding.summary, MOST_CHARS)


def fix(row: Row) -> str:
    """The smallest change that helps."""
    return one_line(row.judged.finding.fix or row.judged.finding.remedy, MOST_CHARS)


def plural(count: int, noun: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
