"""A stop that no client notices, and one that they do, so that the first means something."""

import os
import signal
import threading
import time

import pytest
from server.conftest import eventually, posted, read_reply, review, serving

CLIENTS = 48
NOTICED = 1.0  # seconds from SIGTERM until nobody dials any more, as endpoint removal takes


def talk(server, failures, answered, stop):
    """Ask for ever on kept connections; a new one when the server says goodbye. Retries nothing."""
    context = server.tls()
    while not stop.is_set():
        try:
            with server.connect(context) as connection, connection.makefile("rb") as stream:
                goodbye = False
                while not goodbye:
                    connection.sendall(posted(review()))
                    reply = read_reply(stream)
                    assert reply is not None, "closed without an answer"
                    assert reply.status == 200
                    answered.append(time.monotonic())
                    goodbye = reply.headers.get("connection") == "close"
                    time.sleep(0.02)
        except Exception as error:  # noqa: BLE001 every kind of failure counts
            failures.append(f"{type(error).__name__}: {error}")
            return


def stopped_under_load(seconds):
    with serving("--drain-seconds", str(seconds)) as server:
        failures, answered, stop = [], [], threading.Event()
        clients = [threading.Thread(target=talk, args=(server, failures, answered, stop)) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        eventually(lambda: len(answered) > 5 * CLIENTS)
        server.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        time.sleep(NOTICED)
        stop.set()
        code = server.process.wait(15)
        took = time.monotonic() - began
        for client in clients:
            client.join(10)
        late = [at for at in answered if at > began]
        return failures, late, code, took


@pytest.mark.slow
def test_with_a_drain_no_request_is_lost():
    failures, late, code, took = stopped_under_load(2)
    assert failures == []
    assert len(late) > CLIENTS
    assert code == 0
    assert 2.0 <= took < 8


@pytest.mark.slow
def test_without_a_drain_requests_are_lost():
    failures, _, code, _ = stopped_under_load(0)
    assert failures != []
    assert code == 0


def test_readiness_goes_first_and_liveness_stays():
    with serving("--drain-seconds", "1.5") as server:
        assert server.get("/readyz")[0] == 200
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: server.get("/readyz")[0] == 503)
        assert server.get("/readyz")[1].startswith("serving: draining\n")
        assert server.get("/healthz") == (200, "ok\n")
        assert server.process.wait(10) == 0


def test_idle_connections_do_not_hold_a_stop():
    with serving("--drain-seconds", "0.5") as server, server.connect() as used, server.connect() as silent:
        with used.makefile("rb") as stream:
            used.sendall(posted(review()))
            assert read_reply(stream).status == 200
            began = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(10) == 0
            assert time.monotonic() - began < 5
            assert stream.read() == b""
        assert silent.recv(1) == b""


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
