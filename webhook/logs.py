"""Write the log as JSON lines in plain ASCII, with a maximum length for every value.

Untrusted text (names, users, messages of a peer) cannot break a line, colour a terminal or fill a disk. Control
characters and non-ASCII characters are escaped, and texts are cut to 256 characters. A thread writes the lines, so a
slow reader blocks nothing. Lines that do not fit into its queue are dropped and counted.
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

# Characters of a value. Every Kubernetes name (253) fits.
_LONGEST_TEXT = 256
_TRACEBACK_TEXT = 8 * _LONGEST_TEXT  # the end of a traceback, where the error is
_MOST_FRAMES = 12  # the innermost, since the outer frames are always the server's
_MOST_ITEMS = 16  # of a list, which can come from a user's object
LEVELS = ("debug", "info", "warning", "error")
# Lines in the queue of the thread, a few MiB. The pipe buffers about 200 more.
_LINES_WAITING = 1024
_FLUSH_SECONDS = 1.0  # at the end of the process, which must end even if its log has no reader
_DELETE = "\x7f"  # the only control character that JSON does not escape


def configure(level: str, stream: TextIO) -> "LineWriter":
    """Write log records of ``level`` and above to the stream as JSON lines.

    After a crash of the Python interpreter, the stream also gets the stack of each thread.
    """
    handler = LineWriter(stream)
    with contextlib.suppress(OSError):  # a stream in memory has no file
        faulthandler.enable(stream)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    return handler


def dropped_lines() -> int:
    """Return the number of dropped lines of this process."""
    return sum(handler.dropped for handler in logging.getLogger().handlers if isinstance(handler, LineWriter))


class LineWriter(logging.Handler):
    """Writes lines in a thread, so that an unread standard error blocks only the log.

    A non-blocking pipe is no alternative. It would also affect the terminal and other processes that share it.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.setFormatter(JsonLines())
        self.dropped = 0
        self._write = _unbuffered(stream)
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """Start with an empty queue and without a thread.

        A forked process needs both anew: threads do not survive a fork, and the parent process writes the queued lines.
        """
        self._waiting: queue.SimpleQueue[str | threading.Event] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Queue the line. Drop it if the queue is full, or if it cannot be formatted."""
        if self._waiting.qsize() >= _LINES_WAITING:
            self.dropped += 1
            return
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001 a log line must not raise; logging's handlers also report to standard error
            self.dropped += 1
            return
        self._waiting.put(f"{line}\n")
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, args=(self._waiting,), name="log", daemon=True)
            self._thread.start()

    def flush(self) -> None:
        """Wait until all queued lines are written, at most a second. Call it at the end of the process."""
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
            with contextlib.suppress(OSError, ValueError):  # a closed stream, or a full disk
                if self.dropped > reported:
                    lost, reported = self.dropped - reported, self.dropped
                    self._write(self._dropped_line(lost))
                self._write(line)

    def _dropped_line(self, lost: int) -> str:
        text = f"{lost} log lines dropped, because standard error was not read in time"
        values = {"name": __name__, "levelname": "WARNING", "msg": text}
        return f"{self.format(logging.makeLogRecord(values))}\n"


def _unbuffered(stream: TextIO) -> Callable[[str], object]:
    """Return a function that bypasses the stream's buffer.

    Python aborts a process that ends while a thread holds the buffer's lock.
    """
    try:
        descriptor = stream.fileno()
    except OSError:  # a stream in memory has no file
        return stream.write

    def write(text: str) -> None:
        left = text.encode()
        while left:
            left = left[os.write(descriptor, left) :]

    return write


class JsonLines(logging.Formatter):
    """Formats a record and its mapping ``fields`` as a JSON line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a line with time, level, logger and message, then the fields in their order."""
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
            line["traceback"] = self.formatException(record.exc_info)[-_TRACEBACK_TEXT:]
        return json.dumps(line, ensure_ascii=True, default=repr).replace(_DELETE, "\\u007f")


def exception_fields(error: BaseException) -> dict[str, object]:
    """Return the type and frames of an exception as log fields. Its text is left out, since it can quote a pod."""
    frames = traceback.extract_tb(error.__traceback__)[-_MOST_FRAMES:]
    return {
        "error": type(error).__name__,
        "frames": [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames],
    }


def bounded(text: str, longest: int = _LONGEST_TEXT) -> str:
    """Return the text. Cut a text longer than ``longest`` characters, and append the number of omitted characters."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}… ({len(text) - longest} more)"


def log_change(log: logging.Logger, message: str, fault: str, before: str) -> str:
    """Return the bounded fault. Log it as a warning, unless it is the same as ``before``."""
    fault = bounded(fault)
    if fault != before:
        log.warning(message, fault)
    return fault


def _value(value: object) -> object:
    if isinstance(value, str):
        return bounded(value)
    if isinstance(value, list | tuple):
        return [_value(item) for item in value[:_MOST_ITEMS]]
    return value if isinstance(value, bool | int | float | None) else bounded(repr(value))
