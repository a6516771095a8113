"""Many connections that say nothing, stop half-way, or come all at once. Loopback only, and bounded."""

import asyncio
import contextlib
import resource
import socket
import ssl
import time
from collections import Counter

import pytest
from server.conftest import eventually, posted, read_reply, review, serving, strict_policy

BODY = review()
CHUNKED = b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = (b"ffffffffffffffff\r\nx\r\n", b"5\r\nabc")


@pytest.fixture
def own_server(tmp_path):
    with serving("--config", strict_policy(tmp_path)) as running:
        yield running


def answers(server):
    """Seconds that one review takes on a new connection."""
    began = time.monotonic()
    with server.connect() as connection, connection.makefile("rb") as stream:
        connection.sendall(posted(BODY))
        assert read_reply(stream).status == 200
    return time.monotonic() - began


async def opened(server, count, first=b""):
    """TLS connections that send so much and no more."""
    context = server.tls()
    gate = asyncio.Semaphore(40)

    async def one():
        async with gate:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
        writer.write(first)
        return reader, writer

    return await asyncio.gather(*(one() for _ in range(count)))


async def drop(*writers):
    """Close without a goodbye, and wait until the loop has done it."""
    for writer in writers:
        writer.transport.abort()
    await asyncio.sleep(0.01)


async def ended(connections, seconds):
    """What the server said last on each connection that it ended within that time."""

    async def one(reader):
        said = b""
        with contextlib.suppress(OSError):
            while part := await reader.read(65536):
                said += part
        return said[:12]

    tasks = [asyncio.ensure_future(one(reader)) for reader, _ in connections]
    done, rest = await asyncio.wait(tasks, timeout=seconds)
    for task in rest:
        task.cancel()
    await drop(*(writer for _, writer in connections))
    return Counter(task.result() for task in done)


@pytest.mark.slow
def test_silent_and_half_sent_connections_hold_up_nobody_and_are_ended(own_server):
    server = own_server

    async def attack():
        silent = await opened(server, 500)
        heads = await opened(server, 100, b"POST /validate HTTP/1.1\r\nHost: loc")
        bodies = await opened(server, 100, posted(BODY[:20], length=len(BODY)))
        for chunk in ENDLESS:
            bodies += await opened(server, 1, CHUNKED + chunk)
        half = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(100)]
        for each in half:
            each.send(b"\x16\x03\x01\x02\x00")  # the first bytes of a ClientHello
        slowest = max([await asyncio.to_thread(answers, server) for _ in range(5)])
        resident = server.resident()
        said = await ended([*silent, *heads, *bodies], 14)
        for each in half:
            each.close()
        return slowest, resident, said

    slowest, resident, said = asyncio.run(attack())
    assert slowest < 1.0
    assert resident < 150
    assert said == {b"": 600, b"HTTP/1.1 408": 102}
    eventually(lambda: server.metric("evenspread_open_connections") == 0)
    assert answers(server) < 1.0


@pytest.mark.slow
def test_six_bursts_of_160_connections_lose_nothing(own_server):
    server = own_server

    async def one(context):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
        try:
            for _ in range(2):
                writer.write(posted(BODY))
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200 ")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                await reader.readexactly(length)
        finally:
            await drop(writer)

    async def burst():
        contexts = [server.tls() for _ in range(6)]
        made = (one(context) for context in contexts for _ in range(160))
        return await asyncio.gather(*made, return_exceptions=True)

    results = asyncio.run(burst())
    assert [result for result in results if result is not None] == []
    assert server.resident() < 150


@pytest.mark.slow
def test_exhausted_descriptors_recover(own_server):
    server = own_server
    resource.prlimit(server.worker, resource.RLIMIT_NOFILE, (256, 256))

    async def exhaust():
        connections = [socket.create_connection(("127.0.0.1", server.port), timeout=5) for _ in range(400)]
        await asyncio.sleep(2)
        return connections

    connections = asyncio.run(exhaust())
    for connection in connections:
        connection.close()
    eventually(lambda: _answers(server), 20)
    assert answers(server) < 1.0


def _answers(server):
    try:
        return answers(server) < 1.0
    except (OSError, ssl.SSLError):
        return False


def test_connections_beyond_the_limit_are_ended_and_health_still_answers():
    fewer = "from webhook.server.run import OPTIONS; OPTIONS['worker_connections'] = 20; "
    with serving(before=fewer) as server:
        context = server.tls()
        with contextlib.ExitStack() as stack:
            kept = [stack.enter_context(server.connect(context)) for _ in range(20)]
            eventually(lambda: server.metric("evenspread_open_connections") == 20)
            assert _ended(server, context)
            assert server.get("/healthz") == (200, "ok\n")
            kept[0].sendall(posted(BODY))
            with kept[0].makefile("rb") as stream:
                assert read_reply(stream).status == 200
        eventually(lambda: server.metric("evenspread_open_connections") == 0)
        assert answers(server) < 1.0


def _ended(server, context):
    """Whether a further connection comes to nothing."""
    with contextlib.suppress(OSError), server.connect(context) as extra:
        extra.sendall(posted(BODY))
        return extra.recv(1) == b""
    return True


def test_the_settings_that_kube_apiserver_needs():
    from webhook.server.run import OPTIONS  # noqa: PLC0415 only here

    assert OPTIONS["keepalive"] > 90, "kube-apiserver keeps idle connections for 90 s"
    assert OPTIONS["workers"] == 1
    assert OPTIONS["http_parser"] == "python"


def test_large_reviews_wait_in_two_threads_and_the_rest_is_refused_at_once(server):
    large = posted(review(size=6 * 1024 * 1024))

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
        return await asyncio.gather(*(one(context) for _ in range(40)))

    results = asyncio.run(storm())
    assert {status for status, _ in results} == {200, 429}
    assert not any(retry for _, retry in results)
    assert answers(server) < 1.0
