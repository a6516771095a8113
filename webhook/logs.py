"""Log lines: one JSON object a line, plain ASCII, every value bounded.

What comes from outside (names, users, messages of a peer) can neither break a line, nor colour a terminal, nor fill
a disk: control characters and everything that is not ASCII are escaped, and no text is longer than 256 characters.
A slow reader of the lines holds up nothing: a thread writes them, and drops and counts those it cannot write in time.
"""

import contextlib
import faulthandler
import json
import logging
import os
import queue
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TextIO

# Characters. Every name in Kubernetes fits (253), and longer texts do not fill the log.
LONGEST_TEXT = 256
LEVELS = ("debug", "info", "warning", "error")
# Lines that wait for the thread; the pipe itself buffers about 200 more. At most a few MiB.
_LINES_WAITING = 1024
_FLUSH_SECONDS = 1.0  # at the end, for a reader that has stopped reading: the process must end all the same
_DELETE = "\x7f"  # the one control character that JSON leaves as it is


def configure(level: str, stream: TextIO) -> "LineWriter":
    """Log to the stream, as JSON, from the level on. If the interpreter crashes, its threads' frames follow there."""
    handler = LineWriter(stream)
    with contextlib.suppress(OSError):  # no file: text in memory
        faulthandler.enable(stream)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    return handler


def dropped_lines() -> int:
    """How many lines of this process were dropped."""
    return sum(each.dropped for each in logging.getLogger().handlers if isinstance(each, LineWriter))


class LineWriter(logging.Handler):
    """Has a thread write the lines, so that an unread standard error stops nothing but the log.

    A pipe cannot be made non-blocking instead: that would also change the terminal, or other processes that share it.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.setFormatter(JsonLines())
        self.dropped = 0
        self._write = _unbuffered(stream)
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """A process has its own thread, and nothing waits in it that its parent writes."""
        self._waiting: queue.SimpleQueue[str | threading.Event] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Hand the line over, or drop it if too many wait, or if a bug keeps it from being written."""
        if self._waiting.qsize() >= _LINES_WAITING:
            self.dropped += 1
            return
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001 as logging's own handlers, but for the report on the standard error
            self.dropped += 1
            return
        self._waiting.put(f"{line}\n")
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, args=(self._waiting,), name="log", daemon=True)
            self._thread.start()

    def flush(self) -> None:
        """Wait until what was handed over is written, at most a second: at the end of the process."""
        if self._thread is not None:
            written = threading.Event()
            self._waiting.put(written)
            written.wait(_FLUSH_SECONDS)

    def _run(self, waiting: "queue.SimpleQueue[str | threading.Event]") -> None:
        reported = 0
        while True:
            line = waiting.get()
            if isinstance(line, threading.Event):
                line.set()
                continue
            with contextlib.suppress(OSError, ValueError):  # the stream was closed, the disk is full
                if self.dropped > reported:
                    lost, reported = self.dropped - reported, self.dropped
                    self._write(self._dropped_line(lost))
                self._write(line)

    def _dropped_line(self, lost: int) -> str:
        values = {"name": __name__, "levelname": "WARNING", "msg": f"{lost} lines dropped: nobody read them in time"}
        return f"{self.format(logging.makeLogRecord(values))}\n"


def _unbuffered(stream: TextIO) -> Callable[[str], object]:
    """How to write past the stream's buffer: Python aborts a process that ends while a thread holds its lock."""
    try:
        descriptor = stream.fileno()
    except OSError:  # no file: text in memory
        return stream.write

    def write(text: str) -> None:
        left = text.encode()
        while left:
            left = left[os.write(descriptor, left) :]

    return write


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
            # The end of it, where the error is.
            line["traceback"] = self.formatException(record.exc_info)[-8 * LONGEST_TEXT :]
        return json.dumps(line, ensure_ascii=True, default=repr).replace(_DELETE, "\\u007f")


def exception_fields(error: BaseException) -> dict[str, object]:
    """An exception as fields: its type and frames, not its text, which may quote what a pod holds."""
    # The innermost dozen: the others are the server's, and always the same.
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
        # Longer lists in a line are unreadable, and objects of users must not fill the log.
        return [_value(each) for each in value[:16]]
    return value if isinstance(value, bool | int | float | None) else bounded(repr(value))
