import io
import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from webhook.logs import JsonLines, LineWriter, bounded, configure, dropped_lines, exception_fields, log_change

ROOT = Path(__file__).parents[1]


def line(message="m", fields=None, **record):
    made = logging.makeLogRecord(
        {"msg": message, "levelname": "INFO", "name": "n", "created": 0.5, "msecs": 500.0} | record
    )
    if fields is not None:
        made.fields = fields
    return JsonLines().format(made)


def test_a_line_is_one_json_object_with_the_fields_in_order():
    text = line(fields={"uid": "u", "dryRun": False, "milliseconds": 0.1, "findings": ["a deny"]})
    assert text == (
        '{"time": "1970-01-01T00:00:00.500Z", "level": "info", "logger": "n", "message": "m",'
        ' "uid": "u", "dryRun": false, "milliseconds": 0.1, "findings": ["a deny"]}'
    )


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param("a\nb\r\n{}", id="line ends"),
        pytest.param("\x1b[31mred\x1b[0m", id="terminal colours"),
        pytest.param("\x7f\x9b\u202e\u2028", id="delete, C1, bidi and Unicode line ends"),
    ],
)
def test_nothing_from_outside_breaks_a_line_or_a_terminal(hostile):
    text = line(hostile, {"name": hostile})
    assert text.isascii()
    assert text.isprintable()
    assert json.loads(text)["name"] == hostile


def test_nothing_from_outside_is_longer_than_256_characters():
    text = line("m" * 5000, {"name": "n" * 5000, "list": ["x" * 5000] * 5000, "object": {"k": "v" * 5000}})
    assert len(text) < 16 * 300 + 1500
    assert json.loads(text)["name"] == "n" * 256 + "… (4744 more)"


def test_bounded_keeps_what_fits():
    assert bounded("x" * 256) == "x" * 256


def test_a_fault_that_stays_is_logged_once(caplog):
    log, fault = logging.getLogger("n"), ""
    for text in ("lost", "lost", "x" * 300):
        fault = log_change(log, "waiting: %s", text, fault)
    assert fault == bounded("x" * 300)
    assert caplog.messages == ["waiting: lost", f"waiting: {fault}"]


def test_a_described_exception_has_no_text_of_its_own():
    with pytest.raises(ValueError, match="hunter2") as caught:
        int("hunter2")
    fields = exception_fields(caught.value)
    assert fields["error"] == "ValueError"
    assert fields["frames"][-1].endswith("test_a_described_exception_has_no_text_of_its_own")
    assert "hunter2" not in str(fields)


def test_every_logger_writes_json_from_the_level_on():
    root = logging.getLogger()
    kept = (list(root.handlers), root.level)
    stream = io.StringIO()
    try:
        writer = configure("warning", stream)
        logging.getLogger("any.name").info("quiet")
        logging.getLogger("any.name").warning("said %s", "once")
        writer.flush()
        logging.getLogger("any.name").warning("%d", "no number")
        assert dropped_lines() == 1
    finally:
        root.handlers[:], root.level = kept
    assert [json.loads(each)["message"] for each in stream.getvalue().splitlines()] == ["said once"]


def test_a_crash_of_the_interpreter_says_what_it_was_doing():
    program = """
import ctypes, resource, sys
from webhook import logs
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
logs.configure("info", sys.stderr)
def crashing():
    ctypes.string_at(0)
crashing()
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONFAULTHANDLER"}
    ended = subprocess.run(  # noqa: S603 our own program
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == -signal.SIGSEGV
    assert ended.stderr.startswith("Fatal Python error: Segmentation fault\n")
    assert " in crashing\n" in ended.stderr


def test_nobody_waits_for_who_reads_the_lines_and_what_is_lost_is_told():
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream, os.fdopen(reading) as reader:
        writer = LineWriter(stream)
        began = time.monotonic()
        for number in range(5000):
            writer.handle(logging.makeLogRecord({"msg": f"line {number}", "levelname": "INFO", "name": "n" * 100}))
        assert time.monotonic() - began < 5
        assert 0 < writer.dropped < 4000
        kept = 5000 - writer.dropped
        messages = []
        while sum(each.startswith("line ") for each in messages) < kept:
            messages.append(json.loads(reader.readline())["message"])
        assert any(
            each.endswith(" log lines dropped, because standard error was not read in time") for each in messages
        )
        assert messages[0] == "line 0"


def test_a_stream_that_is_closed_ends_nothing():
    reading, writing = os.pipe()
    stream = os.fdopen(writing, "w")
    writer = LineWriter(stream)
    os.close(reading)
    for _ in range(2):
        writer.handle(logging.makeLogRecord({"msg": "m", "levelname": "INFO", "name": "n"}))
        writer.flush()
    stream.close()
