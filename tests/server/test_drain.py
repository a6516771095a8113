"""A stop that no client notices, and one that they do, so that the first means something."""

import os
import signal
import time

import pytest
from server.attack import stop_under_load
from server.conftest import eventually, posted, read_reply, review, serving


def stopped_under_load(seconds):
    with serving("--drain-seconds", str(seconds)) as server:
        return stop_under_load(server, clients=8, noticed=0.5)


@pytest.mark.slow
def test_with_a_drain_no_request_is_lost():
    failures, late, code, took = stopped_under_load(1.5)
    assert failures == []
    assert len(late) > 8
    assert code == 0
    assert 1.5 <= took < 15


@pytest.mark.slow
def test_without_a_drain_requests_are_lost():
    failures, _, code, _ = stopped_under_load(0)
    assert failures != []
    assert code == 0


@pytest.mark.slow
def test_readiness_goes_first_and_liveness_stays():
    with serving("--drain-seconds", "1") as server:
        assert server.get("/readyz")[0] == 200
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: server.get("/readyz")[0] == 503)
        assert server.get("/readyz")[1].startswith("serving: draining\n")
        assert server.get("/healthz") == (200, "ok\n")
        assert server.process.wait(10) == 0


@pytest.mark.slow
def test_idle_connections_do_not_hold_a_stop():
    with serving("--drain-seconds", "0.5") as server, server.connect() as used, server.connect() as silent:
        with used.makefile("rb") as stream:
            used.sendall(posted(review()))
            assert read_reply(stream).status == 200
            began = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(10) == 0
            assert time.monotonic() - began < 15, "graceful_timeout is 20 s"
            assert stream.read() == b""
        assert silent.recv(1) == b""


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced():
    with serving() as server:
        first = server.worker
        with server.connect() as connection, connection.makefile("rb") as stream:
            connection.sendall(posted(review()))
            assert read_reply(stream).status == 200
        os.kill(first, signal.SIGKILL)

        def again():
            try:
                with server.connect(timeout=1) as connection, connection.makefile("rb") as stream:
                    connection.sendall(posted(review()))
                    return read_reply(stream).status == 200
            except OSError:
                return False

        eventually(again)
        assert server.worker != first
