"""What is wrong with a configuration file, and where: every fault at once, each in one line.

policy.yaml:7:3: defaults.overrides[0].minReplica: unknown field; did you mean "minReplicas"?
"""

import json
import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

Path = tuple[str | int, ...]

MAX_SHOWN_CHARS = 64  # characters of one name or value from the file; a fault stays one readable line
_MAX_FAULTS = 100  # more lines help nobody; a file can have a hundred thousand faults

_STEP = re.compile(r"\[([0-9]+)\]|([^.\[\]]+)")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class ConfigFault(Struct, frozen=True, kw_only=True):
    """One fault at a path in the API's form. Line and column count from 1, and are 0 if unknown."""

    path: str
    message: str
    line: int = 0
    column: int = 0

    def render(self, file: str) -> str:
        """The line that users see."""
        place = f"{file}:{self.line}:{self.column}" if self.line else file
        return f"{place}: {self.path}: {self.message}" if self.path else f"{place}: {self.message}"


class ConfigError(Exception):
    """A configuration that cannot be used, with every fault that was found, in the order of the file."""

    def __init__(self, faults: Sequence[ConfigFault], *, file: str, read: Sequence[str] = ()) -> None:
        """Keep the faults as values, in the order of the file; their text is made on demand."""
        super().__init__(file)
        self.faults = tuple(sorted(faults, key=place_of))
        self.file = file
        self.read = (file, *read)  # every file in which a change might fix it

    def render(self) -> str:
        """One line a fault, without a final line end."""
        lines = [fault.render(self.file) for fault in self.faults[:_MAX_FAULTS]]
        if (more := len(self.faults) - _MAX_FAULTS) > 0:
            lines.append(f"{self.file}: {more} more fault{'' if more == 1 else 's'}")
        return "\n".join(lines)

    def __str__(self) -> str:
        """The same text, so that a log line of the exception says it all."""
        return self.render()


def place_of(fault: ConfigFault) -> tuple[int, int, str, str]:
    """The sort key of faults."""
    return fault.line, fault.column, fault.path, fault.message


def render_path(path: Iterable[str | int]) -> str:
    """``defaults.overrides[0].minReplicas``; a key that is no plain name stands in brackets."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part[:MAX_SHOWN_CHARS]}" if text else part[:MAX_SHOWN_CHARS]
        else:
            text += f"[{shown(part)[1:-1]}]"
    return text


def parse_path(text: str) -> Path:
    """The parts of a path in the API's form; keys that stand in brackets are told from indices by their letters."""
    return tuple(int(index) if index else name for index, name in _STEP.findall(text))


def shown(value: object) -> str:
    """A value from the file as one bounded piece of text, strings in double quotes."""
    if isinstance(value, str):
        return json.dumps(
            value if len(value) <= MAX_SHOWN_CHARS else value[: MAX_SHOWN_CHARS - 1] + "…", ensure_ascii=False
        )
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return json.dumps(value)[:MAX_SHOWN_CHARS]
