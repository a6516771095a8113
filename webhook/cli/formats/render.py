"""What formats share: their signature, and the fields of a row as they are printed."""

from collections.abc import Iterator
from typing import Protocol

from webhook.cli.checking.results import Outcome


class Render(Protocol):
    """An outcome as text, piece by piece; ``color`` allows terminal colours."""

    def __call__(self, outcome: Outcome, *, color: bool) -> Iterator[str]: ...
