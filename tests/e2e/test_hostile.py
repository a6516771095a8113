"""The server's resilience in whole numbers: what tests/server runs small."""

import time

import pytest
from server.attack import answers, answers_soon, burst, exhaust_descriptors, half_handshakes, silence, stop_under_load
from server.conftest import eventually, serving

CLIENTS = 48
NOTICED = 1.0  # seconds from SIGTERM until nobody dials any more, as endpoint removal takes


@pytest.fixture(name="alone")
def _alone():
    with serving() as running:
        yield running


def test_500_silent_and_300_half_sent_connections_hold_up_nobody_and_are_ended(alone):
    slowest, resident, said = silence(alone, silent=500, half=100, seconds=14)
    assert slowest < 1.0
    assert resident < 150
    assert said == {b"": 600, b"HTTP/1.1 408": 102}
    eventually(lambda: alone.metric("evenspread_open_connections") == 0)
    assert answers(alone) < 1.0


def test_half_handshakes_are_ended_within_a_minute(alone):
    hellos = half_handshakes(alone, 100)
    assert answers(alone) < 1.0
    deadline = time.monotonic() + 65
    for hello in hellos:
        hello.settimeout(max(0.1, deadline - time.monotonic()))
        assert hello.recv(64) == b""
        hello.close()


def test_six_bursts_of_160_connections_lose_nothing(alone):
    assert burst(alone, transports=6, connections=160) == []
    assert alone.resident() < 150


def test_exhausted_descriptors_recover_after_the_deadline(alone):
    exhaust_descriptors(alone, limit=512, sockets=700)
    eventually(lambda: answers_soon(alone))


def test_with_a_drain_no_request_is_lost():
    with serving("--drain-seconds", "4") as server:
        failures, late, code, took = stop_under_load(server, clients=CLIENTS, noticed=NOTICED)
    assert failures == []
    assert len(late) > CLIENTS
    assert code == 0
    assert 4.0 <= took < 8.0


def test_without_a_drain_requests_are_lost():
    with serving("--drain-seconds", "0") as server:
        failures, _, code, _ = stop_under_load(server, clients=CLIENTS, noticed=NOTICED)
    assert failures != []
    assert code == 0


def test_connections_that_idle_for_95_seconds_are_still_answered(alone):
    """kube-apiserver keeps them for 90 s; a server that closes them first costs it a request."""
    from server.conftest import posted, read_reply, review  # noqa: PLC0415 only here

    with alone.connect(timeout=120) as connection, connection.makefile("rb") as stream:
        for idle in (2, 95):
            connection.sendall(posted(review()))
            assert read_reply(stream).status == 200
            time.sleep(idle)
        connection.sendall(posted(review()))
        assert read_reply(stream).status == 200
