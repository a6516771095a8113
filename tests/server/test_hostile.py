"""Many connections that say nothing, stop half-way, or come all at once; small. The whole numbers: tests/e2e."""

import asyncio
import contextlib

import pytest
from gunicorn.asgi.parser import PythonProtocol
from server.attack import BODY, answers, answers_soon, burst, drop, exhaust_descriptors, silence
from server.conftest import eventually, posted, read_reply, review, serving, strict_policy

DENIED = BODY.replace(b'{"padding": ""}', b'{"topologySpreadConstraints": [{"maxSkew": 0}]}')
HASTY = (
    "from webhook.server.http import connection, request_body; "
    "request_body._BODY_SECONDS = connection.FIRST_REQUEST_SECONDS = 2.0; "
)


@pytest.mark.slow
def test_silent_and_half_sent_connections_hold_up_nobody_and_are_ended():
    with serving(before=HASTY) as server:
        _, _, said = silence(server, silent=60, half=20, seconds=30)
        assert said == {b"": 80, b"HTTP/1.1 408": 22}
        eventually(lambda: server.metric("evenspread_open_connections") == 0)
        answers(server)

        # The same process, since a start takes longer than the test.
        exhaust_descriptors(server, limit=64, sockets=100)
        eventually(lambda: answers_soon(server))


@pytest.mark.slow
def test_a_standard_error_that_nobody_reads_stops_nothing(tmp_path):
    with serving("--config", strict_policy(tmp_path), stalled=True) as server:
        with server.connect() as connection, connection.makefile("rb") as stream:
            for _ in range(1800):  # 400 bytes of log each; a pipe holds 64 KiB, the queue 1,024 lines
                connection.sendall(posted(DENIED))
                assert b'"allowed":false' in read_reply(stream).body
        assert server.metric("evenspread_log_lines_dropped_total") > 200


def test_a_burst_of_connections_loses_nothing(server):
    assert burst(server, transports=6, connections=16) == []


def test_the_settings_that_kube_apiserver_needs():
    from webhook.server.http import connection  # noqa: PLC0415 only here
    from webhook.server.run import OPTIONS  # noqa: PLC0415 only here

    assert OPTIONS["keepalive"] > 90, "kube-apiserver keeps idle connections for 90 s"
    assert OPTIONS["workers"] == 1
    assert connection.http.PythonProtocol is PythonProtocol, "the C parser takes bare LF and obs-fold"


@pytest.mark.slow
def test_large_reviews_wait_for_room_and_a_thread(server):
    large = posted(review(size=6 * 1024 * 1024), "/validate?timeout=30s")

    async def one(context):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
        with contextlib.suppress(OSError):
            writer.write(large)
            await writer.drain()
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        finally:
            await drop(writer)
        return int(head.split()[1]), b"retry-after" in head.lower()

    async def storm():
        context = server.tls()
        return await asyncio.gather(*(one(context) for _ in range(25)))

    results = asyncio.run(storm())
    assert {status for status, _ in results} == {200}
    assert not any(retry for _, retry in results)
    answers(server)
