"""Callers who gave up while the event loop was behind: nothing is done for them, so that it catches up."""

import contextlib
import os
import signal
import socket
import ssl

import pytest
from server.attack import BODY
from server.conftest import eventually, posted, read_reply, serving

EACH = 8


@pytest.fixture(name="server", scope="module")
def _server():
    with serving() as running:
        yield running


@contextlib.contextmanager
def behind(server):
    """The event loop does nothing until the end of the block."""
    worker = server.worker
    os.kill(worker, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(worker, signal.SIGCONT)


def left(server):
    return server.metric('evenspread_connections_ended_total{port="admission",reason="left"}')


def reviewed(server):
    return server.metric('evenspread_admission_duration_seconds_count{route="validate"}')


def first_words(context):
    """What a client sends first, to begin a handshake."""
    outgoing = ssl.MemoryBIO()
    wrapped = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        wrapped.do_handshake()
    return outgoing.read()


@pytest.mark.slow
def test_only_those_who_still_wait_are_answered(server):
    trust = server.tls()
    with contextlib.ExitStack() as stack:
        waiting, leaving = ([stack.enter_context(server.connect(trust)) for _ in range(EACH)] for _ in range(2))
        before = reviewed(server)
        with behind(server):
            for each in (*leaving, *waiting):
                each.sendall(posted(BODY))
            for each in leaving:
                each.close()
        for each in waiting:
            with each.makefile("rb") as stream:
                assert read_reply(stream).status == 200
    eventually(lambda: left(server) == EACH)
    assert reviewed(server) - before == EACH


@pytest.mark.slow
def test_nobody_is_greeted_who_has_left(server):
    hello, before = first_words(server.tls()), left(server)
    with behind(server):
        for _ in range(EACH):
            with socket.create_connection(("127.0.0.1", server.port)) as plain:
                plain.sendall(hello)
    eventually(lambda: left(server) - before == EACH)
    with server.connect() as connection:
        connection.sendall(posted(BODY))
        with connection.makefile("rb") as stream:
            assert read_reply(stream).status == 200
