"""The app on an address."""

import socket
import threading
import urllib.request
from contextlib import contextmanager

import pytest
from console.scans import EVERYTHING

from webhook.console.app import create_console
from webhook.console.serving import ConsoleServer, _ConsoleHandler


@contextmanager
def served(app=None, host="127.0.0.1"):
    with ConsoleServer(host, 0, app or create_console(lambda: EVERYTHING)) as server:
        server.start()
        try:
            yield server
        finally:
            server.shutdown()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_it_answers_at_its_address(host):
    with served(host=host) as server, urllib.request.urlopen(server.url) as answer:  # noqa: S310 our own
        assert answer.status == 200
        assert b"Worst workloads" in answer.read()
        assert answer.headers["Server"] == "evenspread"


def test_an_address_that_is_taken_is_an_error():
    with served() as server, pytest.raises(OSError, match="in use"):
        ConsoleServer("127.0.0.1", server.server_address[1], create_console(lambda: EVERYTHING))


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"200", id="a request"),
        pytest.param(b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", b"414", id="a line without end"),
        pytest.param(b"nonsense\r\n\r\n", b"400", id="nonsense"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"421", id="another name"),
    ],
)
def test_whatever_is_sent_is_answered(sent, status):
    with served() as server, socket.create_connection(server.server_address[:2], 10) as line:
        line.sendall(sent)
        assert status in line.makefile("rb").readline() or status == b"400"


def test_who_comes_while_all_threads_are_busy_is_hung_up_on(monkeypatch):
    monkeypatch.setattr("webhook.bounded_threads.CONNECTIONS", 1)
    came, go_on = threading.Event(), threading.Event()

    def slow(_, start):
        came.set()
        go_on.wait(10)
        start("200 OK", [])
        return [b"done"]

    with served(slow) as server:
        address = server.server_address[:2]
        with socket.create_connection(address, 10) as first:
            first.sendall(b"GET / HTTP/1.0\r\n\r\n")
            came.wait(10)
            with socket.create_connection(address, 10) as second:
                assert second.makefile("rb").read() == b""
            go_on.set()
            assert first.makefile("rb").read().endswith(b"done")


def test_a_reader_that_says_nothing_is_left(monkeypatch):
    assert _ConsoleHandler.timeout == 10.0
    monkeypatch.setattr(_ConsoleHandler, "timeout", 0.05)
    with served() as server, socket.create_connection(server.server_address[:2], 10) as line:
        assert line.makefile("rb").read() == b""
