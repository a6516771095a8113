"""The faults of a configuration file, each on a line with its position.

Example:
    policy.yaml:7:3: defaults.overrides[0].minReplica: unknown field; did you mean "minReplicas"?
"""

import json
import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

Path = tuple[str | int, ...]

MAX_SHOWN_CHARS = 64  # of a name or value from the file, so that a fault stays a readable line
_MAX_FAULTS = 100  # a file can have a hundred thousand faults

_STEP = re.compile(r"\[([0-9]+)\]|([^.\[\]]+)")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class ConfigFault(Struct, frozen=True, kw_only=True):
    """A fault at an API path. Line and column count from 1, and are 0 if unknown."""

    path: str
    message: str
    line: int = 0
    column: int = 0

    def render(self, file: str) -> str:
        """Return the line for users."""
        place = f"{file}:{self.line}:{self.column}" if self.line else file
        return f"{place}: {self.path}: {self.message}" if self.path else f"{place}: {self.message}"


class ConfigError(Exception):
    """An unusable configuration, with all of its faults in the order of the file.

    A change of any file in ``read`` can fix the faults.
    """

    def __init__(self, faults: Sequence[ConfigFault], *, file: str, read: Sequence[str] = ()) -> None:
        """Sort the faults."""
        super().__init__(file)
        self.faults = tuple(sorted(faults, key=place_of))
        self.file = file
        self.read = (file, *read)

    def render(self) -> str:
        """Return a line for each fault, without a final line break."""
        lines = [fault.render(self.file) for fault in self.faults[:_MAX_FAULTS]]
        if (more := len(self.faults) - _MAX_FAULTS) > 0:
            lines.append(f"{self.file}: {more} more fault{'' if more == 1 else 's'}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()


def place_of(fault: ConfigFault) -> tuple[int, int, str, str]:
    """Return the sort key of a fault."""
    return fault.line, fault.column, fault.path, fault.message


def render_path(path: Iterable[str | int]) -> str:
    """Return a path as text: ``defaults.overrides[0].minReplicas``. Keys with special characters get brackets."""
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
    """Split an API path into its parts. A bracket with only digits is an index, any other is a key."""
    return tuple(int(index) if index else name for index, name in _STEP.findall(text))


def shown(value: object) -> str:
    """Return a value from the file as short text. Strings get double quotes."""
    if isinstance(value, str):
        return json.dumps(
            value if len(value) <= MAX_SHOWN_CHARS else value[: MAX_SHOWN_CHARS - 1] + "…", ensure_ascii=False
        )
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return json.dumps(value)[:MAX_SHOWN_CHARS]
