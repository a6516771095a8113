"""What formats share: their signature, and the fields of a row as they are printed."""

from collections.abc import Iterator
from typing import Protocol

from webhook.cli.checking.results import RunResult


class Render(Protocol):
    """A result as text, piece by piece; ``color`` allows terminal colours."""

    def __call__(self, result: RunResult, *, color: bool) -> Iterator[str]: ...
