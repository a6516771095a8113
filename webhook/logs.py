"""Log lines: one JSON object a line, plain ASCII, every value bounded.

What comes from outside (names, users, messages of a peer) can neither break a line, nor colour a terminal, nor fill
a disk: control characters and everything that is not ASCII are escaped, and no text is longer than 256 characters.
"""

import json
import logging
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

LONGEST_TEXT = 256
LEVELS = ("debug", "info", "warning", "error")
_DELETE = "\x7f"  # the one control character that JSON leaves as it is


def configure(level: str, stream: TextIO) -> None:
    """Send every logger's lines to the stream, as JSON, from the level on."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


class JsonLines(logging.Formatter):
    """Formats a record, and the mapping that it carries as ``fields``, as one line."""

    def format(self, record: logging.LogRecord) -> str:
        """One line: time, level, logger, message, then the fields in their order."""
        line: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": bounded(record.getMessage()),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, Mapping):
            line.update((key, _value(value)) for key, value in fields.items())
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)[-8 * LONGEST_TEXT :]
        return json.dumps(line, ensure_ascii=True, default=repr).replace(_DELETE, "\\u007f")


def described(error: BaseException) -> dict[str, object]:
    """An exception as fields: its type and frames, not its text, which may quote what a pod holds."""
    frames = traceback.extract_tb(error.__traceback__)[-12:]
    return {
        "error": type(error).__name__,
        "frames": [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames],
    }


def bounded(text: str, longest: int = LONGEST_TEXT) -> str:
    """The text, or its beginning and the number of characters left out."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}… ({len(text) - longest} more)"


def _value(value: object) -> object:
    if isinstance(value, str):
        return bounded(value)
    if isinstance(value, list | tuple):
        return [_value(each) for each in value[:16]]
    return value if isinstance(value, bool | int | float | None) else bounded(repr(value))
