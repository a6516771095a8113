"""Neighbours on the network that take all the room there is, from addresses of their own; small.

kube-apiserver is 127.0.0.1 here; who attacks is any other address of the loopback.
"""

import contextlib
import http.client
import json
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from server.attack import BODY
from server.conftest import eventually, posted, read_reply, review, serving

SMALL = (
    "from webhook.server import worker; from webhook.server.run import OPTIONS; "
    "OPTIONS['worker_connections'] = 40; worker.HEALTH_CONNECTIONS = 16; "
)
KEPT = 6
MIB = 1024 * 1024


@pytest.fixture(name="server", scope="module")
def _server():
    with serving(before=SMALL) as running:
        yield running


@pytest.fixture(name="trust", scope="module")
def _trust(server):
    return server.tls()


@pytest.fixture(name="stack")
def _stack():
    with contextlib.ExitStack() as stack:
        yield stack


def silent(stack, port, source, count):
    """Connections that never say a word."""
    for _ in range(count):
        plain = socket.create_connection(("127.0.0.1", port), timeout=10, source_address=(source, 0))
        stack.enter_context(plain)


def used(stack, server, trust, source="127.0.0.1"):
    """A connection that has asked once."""
    connection = stack.enter_context(server.connect(trust, source=source))
    assert answered(connection)
    return connection


def answered(connection, body=BODY):
    connection.sendall(posted(body))
    with connection.makefile("rb") as stream:
        reply = read_reply(stream)
    return reply is not None and reply.status == 200


def asked(server, trust, source):
    with server.connect(trust, source=source) as connection:
        return answered(connection)


def ends(server, reason, port="admission"):
    return server.metric(f'evenspread_connections_ended_total{{port="{port}",reason="{reason}"}}')


def test_one_neighbour_cannot_shut_the_api_server_out(server, trust, stack):
    kept = [used(stack, server, trust) for _ in range(KEPT)]
    silent(stack, server.port, "127.0.0.2", 100)
    assert all(answered(each) for each in kept)
    assert asked(server, trust, "127.0.0.1")
    assert asked(server, trust, "127.0.0.9"), "a new API server"
    assert ends(server, "over-share") >= 80
    assert server.metric("evenspread_open_connections") <= 40


def test_many_neighbours_cannot_either(server, trust, stack):
    kept = [used(stack, server, trust) for _ in range(KEPT)]
    for number in range(60):
        silent(stack, server.port, f"127.0.1.{number + 1}", 2)
    assert all(answered(each) for each in kept)
    assert asked(server, trust, "127.0.0.1")
    assert asked(server, trust, "127.0.0.10"), "a new API server"
    assert ends(server, "made-room") > 50
    full = [json.loads(line) for line in server.lines if '"the port has reached its connection limit: ' in line]
    assert 1 <= len(full) <= 3, "one line in ten seconds, however many come"
    assert full[0]["port"] == "admission"


def test_neighbours_that_send_valid_reviews_leave_the_api_server_its_share(server, trust, stack):
    kept = [used(stack, server, trust) for _ in range(KEPT)]
    for number in range(60):
        used(stack, server, trust, f"127.0.2.{number % 20 + 1}")
    # The largest sources give way: what is left to the API server is what everybody has.
    assert any(_still(each) for each in kept)
    assert asked(server, trust, "127.0.0.1")
    assert asked(server, trust, "127.0.0.11"), "a new API server"


def _still(connection):
    try:
        return answered(connection)
    except OSError:
        return False


def test_the_plain_port_is_bounded_and_leaves_probes_and_admission_alone(server, trust, stack):
    host, port = urlsplit(server.health).hostname, urlsplit(server.health).port
    kept = http.client.HTTPConnection(host, port, timeout=10)
    stack.callback(kept.close)
    for _ in range(2):
        for number in range(30):
            silent(stack, port, f"127.0.3.{number + 1}", 3)
        kept.request("GET", "/healthz")
        assert kept.getresponse().read() == b"ok\n"
        assert server.get("/readyz")[0] == 200
        assert asked(server, trust, "127.0.0.1")
    assert ends(server, "made-room", "health") > 100


def test_bodies_that_do_not_end_leave_room_for_those_that_do(server, trust, stack):
    assert asked(server, trust, "127.0.0.1")
    large = posted(review(size=7 * MIB - 4096))
    before = server.resident()
    for _ in range(12):
        greedy = stack.enter_context(server.connect(trust, source="127.0.0.2"))
        with contextlib.suppress(OSError):
            greedy.sendall(large[:-1])
    eventually(lambda: server.metric('evenspread_admission_refusals_total{status="429"}') >= 3)
    assert server.resident() - before < 64 + 32
    with server.connect(trust) as connection:
        assert answered(connection, review(size=7 * MIB - 4096))
    assert ends(server, "body-bytes") >= 4


@pytest.mark.slow
def test_connections_that_come_faster_than_they_are_greeted_leave_nothing(server):
    descriptors = Path(f"/proc/{server.worker}/fd")
    port = urlsplit(server.health).port
    before = len([*descriptors.iterdir()])
    for _ in range(4):
        with contextlib.ExitStack() as burst:
            for _ in range(400):
                plain = burst.enter_context(socket.socket())
                plain.setblocking(False)
                plain.connect_ex(("127.0.0.1", port))
    eventually(lambda: len([*descriptors.iterdir()]) < before + 16)
    assert not [line for line in server.lines if "destroyed" in line]


# Code for `serving`: each review takes 20 ms of the event loop.
SLOW = """
import time
from webhook.server import asgi
_judge = asgi.AdmissionApp._judge
def _slow(*args, **named):
    time.sleep(0.02)
    return _judge(*args, **named)
asgi.AdmissionApp._judge = _slow
"""


@pytest.mark.slow
def test_reviews_sent_at_once_take_turns_with_those_of_others(stack):
    """60 of them would take 1.2 s one after the other."""
    with serving(before=SLOW) as server:
        greedy, patient = (stack.enter_context(server.connect()) for _ in range(2))
        assert answered(greedy)
        assert answered(patient)
        greedy.sendall(posted(BODY) * 60)
        time.sleep(0.1)  # they have arrived
        began = time.monotonic()
        assert answered(patient)
        assert time.monotonic() - began < 0.5
        with greedy.makefile("rb") as stream:
            assert {read_reply(stream).status for _ in range(60)} == {200}


# Code for `serving`: what is nested too deeply takes half a second to read.
SLOW_CUT = """
import time
from webhook.core import decoders
_cut = decoders.cut
def _slow(text):
    time.sleep(0.5)
    return _cut(text)
decoders.cut = _slow
"""


@pytest.mark.slow
def test_a_deep_body_holds_up_nobody(stack):
    deep = BODY.replace(b'"metadata":', b'"x": %b, "metadata":' % (b"[" * 20_000 + b"]" * 20_000))
    with serving(before=SLOW_CUT) as server:
        greedy, patient = (stack.enter_context(server.connect()) for _ in range(2))
        assert answered(patient)
        greedy.sendall(posted(deep))
        time.sleep(0.1)
        began = time.monotonic()
        assert answered(patient)
        assert time.monotonic() - began < 0.3
        with greedy.makefile("rb") as stream:
            assert read_reply(stream).status == 200


CHUNKED = b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunked(body, size):
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return CHUNKED + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("size", "length", "status"),
    [
        pytest.param(8, 1000, 200, id="a few of 8 bytes"),
        pytest.param(1, 20_000, 400, id="many of a byte"),
        pytest.param(16, 20_000, 400, id="many of 16 bytes"),
        pytest.param(512, 2_000_000, 200, id="many of 512 bytes"),
    ],
)
def test_a_body_of_many_small_chunks_is_not_read(server, stack, size, length, status):
    """43,000 chunks of a byte, which are read at once, took 290 ms of the event loop."""
    connection = stack.enter_context(server.connect())
    with contextlib.suppress(OSError):
        connection.sendall(chunked(review(size=length), size))
    with connection.makefile("rb") as stream:
        assert read_reply(stream).status == status


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "reads"),
    [
        pytest.param(posted(b"x" * 400_000, "/validate?timeout=30s", length=6 * MIB), True, id="bodies wait for room"),
        pytest.param(b"GET /x HTTP/1.1\r\n\r\n" * 20_000, False, id="answers are not read"),
    ],
)
def test_the_buffers_of_many_connections_are_bounded(stack, first, reads):
    """0.9 MiB on each of 2,000 connections took a replica past its memory limit."""
    before = "from webhook.server.http import connection_table; connection_table.MAX_BULKY = 16; "
    with serving(before=before) as server:
        trust = server.tls()
        kept = used(stack, server, trust)
        resident = server.resident()
        for _ in range(120):
            connection = stack.enter_context(server.connect(trust, source="127.0.0.2"))
            connection.settimeout(0.1 if reads else 0.02)
            with contextlib.suppress(OSError):
                connection.sendall(first)
        assert server.resident() - resident < 45
        assert ends(server, "buffers") > 20
        assert answered(kept)
