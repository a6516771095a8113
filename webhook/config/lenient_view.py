"""Read the valid parts of a document that has faults, so that one mistake is reported once."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from webhook.config.document import ConfigDocument
from webhook.config.faults import ConfigFault, Path, render_path

_T = TypeVar("_T")


class View(NamedTuple):
    """A document with the faults that are already known."""

    document: ConfigDocument
    faulty: frozenset[str]  # the rendered paths of the faults, and of everything that contains them

    def sound(self, path: Path) -> bool:
        """Whether no fault is known at or below the path."""
        return render_path(path) not in self.faulty

    def at(self, path: Path, kind: type[_T]) -> _T | None:
        """The value at a path, if it is there and of this type."""
        value = self.document.value
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return value if isinstance(value, kind) else None

    def text(self, path: Path) -> str | None:
        """The string at a path; None if it is absent or has a fault."""
        return self.at(path, str) if self.sound(path) else None

    def entries(self, path: Path) -> Iterator[Path]:
        """The paths of a list's entries that are mappings."""
        for index in range(len(self.at(path, list) or ())):
            if self.at((*path, index), dict) is not None:
                yield (*path, index)


def view(document: ConfigDocument, faults: Sequence[ConfigFault]) -> View:
    """A document with the faults found so far; each also spoils whatever contains it."""
    texts = {fault.path for fault in faults}
    spoiled = {text[:end] for text in texts for end in (*_ends(text), len(text))}
    return View(document, frozenset(spoiled))


def _ends(text: str) -> Iterator[int]:
    return (index for index, char in enumerate(text) if char in ".[")
