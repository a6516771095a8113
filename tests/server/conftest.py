"""A real server process, and clients that speak to it byte by byte."""

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

START = "import sys; from webhook.cli.main import main; sys.exit(main(['webhook', *sys.argv[1:]]))"
PROGRAM = (sys.executable, "-c", START)
STRICT = "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\nceiling: deny\n"


class Server(NamedTuple):
    process: subprocess.Popen
    port: int
    health: str
    ca: str
    lines: list[str]  # of its log, as they come

    @property
    def worker(self):
        """The worker's process id: the only child."""
        return int(Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()[0])

    def resident(self):
        """MiB of the worker."""
        status = Path(f"/proc/{self.worker}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def tls(self, **settings):
        context = ssl.create_default_context(cafile=self.ca)
        for name, value in settings.items():
            setattr(context, name, value)
        return context

    def connect(self, context=None, timeout=15.0, source="127.0.0.1"):
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=timeout, source_address=(source, 0))
        try:
            return (context or self.tls()).wrap_socket(plain, server_hostname="localhost")
        except BaseException:
            plain.close()
            raise

    def get(self, path):
        """Status and text of a page on the plain port."""
        try:
            with urllib.request.urlopen(self.health + path, timeout=15) as answer:  # noqa: S310 http to loopback
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metric(self, name):
        """The value of a metric without labels, or with the labels as written in the name."""
        for line in self.get("/metrics")[1].splitlines():
            if line.rpartition(" ")[0] == name:
                return float(line.rpartition(" ")[2])
        return 0.0


@contextlib.contextmanager
def serving(*arguments, environment=None, before="", stalled=False, stdin=None):
    """A server on free ports, until the end of the block; ``before`` is code that runs first in its process.

    With ``stalled`` nobody reads its log once it answers.
    """
    program = (*PROGRAM[:2], before + PROGRAM[2])
    command = (*program, "--bind", "127.0.0.1:0", "--health-bind", "127.0.0.1:0", *arguments)
    process = subprocess.Popen(  # noqa: S603 our own program
        command,
        stdin=stdin or subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ) | (environment or {}),
    )
    lines = []
    ready = threading.Event()

    def read():
        for line in process.stderr:
            lines.append(line)
            if '"answering"' in line:
                ready.set()
                if stalled:
                    return
        ready.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        assert ready.wait(40), "no start within 40 s"
        assert any('"answering"' in line for line in lines), "".join(lines)
        told = json.loads(next(line for line in lines if '"answering"' in line))
        yield Server(process, urlsplit(told["url"]).port, told["health"], told["ca"], lines)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reader.join(5)
        process.stderr.close()


# Code for `serving`: the process, and what it forks, read from a file how many seconds ahead their clock is.
_SHIFTED = """
import os, pathlib, threading, time
_true, _ahead = time.time, [0.0]
time.time = lambda: _true() + _ahead[0]
def _follow():
    while True:
        _ahead[0] = float(pathlib.Path({!r}).read_text())
        time.sleep(0.05)
os.register_at_fork(after_in_child=lambda: threading.Thread(target=_follow, daemon=True).start())
"""


class Clock:
    """The clock of servers that are started with its code."""

    def __init__(self, directory):
        self._file = directory / "clock"
        self.code = _SHIFTED.format(str(self._file))
        self.ahead(0)

    def ahead(self, seconds):
        fresh = self._file.with_suffix(".new")
        fresh.write_text(str(seconds))
        fresh.replace(self._file)


def strict_policy(directory):
    file = directory / "policy.yaml"
    file.write_text(STRICT)
    return str(file)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One server for all tests that leave it as it was; they say so by asking its health afterwards."""
    with serving("--config", strict_policy(tmp_path_factory.mktemp("server"))) as running:
        yield running


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def read_reply(stream):
    """One HTTP response from a binary file; None at the end of the connection."""
    line = stream.readline()
    if not line:
        return None
    status = int(line.split()[1])
    headers = {}
    while (line := stream.readline()) not in {b"\r\n", b""}:
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    return Reply(status, headers, stream.read(int(headers.get("content-length", 0))))


def replies(connection):
    """Every response until the server ends the connection or stays silent."""
    found = []
    with contextlib.suppress(OSError), connection.makefile("rb") as stream:
        while (reply := read_reply(stream)) is not None:
            found.append(reply)
    return found


def review(uid="u-1", size=0):
    """The body of a small review, padded to a size."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"padding": ""}}
    document = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": uid,
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "operation": "CREATE",
            "object": pod,
        },
    }
    pod["spec"]["padding"] = "x" * max(0, size - len(json.dumps(document)))
    return json.dumps(document).encode()


def posted(body, path="/validate?timeout=2s", *lines, length=None, media="application/json"):
    """A whole request."""
    head = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Type: {media}"]
    head.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join([*head, *lines, "", ""]).encode("latin-1") + body


def eventually(check, seconds=20.0):
    """Wait until the check is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if check():
            return
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {check}")
