"""What ends leaves nothing behind, without the collector: it is off in the server of these tests.

Over a large index it hardly ever runs, since it would hold up every request.
"""

import asyncio
import contextlib
import socket
import time

import pytest
from server.attack import BODY
from server.conftest import eventually, posted, read_reply, review, serving

WITHOUT_COLLECTOR = "import gc; gc.disable(); gc.enable = lambda: None; "
LARGE = review(size=7 * 1024 * 1024 - 4096)
# What a request of its kind needs once, and the allocator keeps; of large ones for each thread that has read one.
MOST_GROWTH_MIB = 10
MOST_OF_A_SOURCE = 1000
MOST_GROWTH_OF_PUSHED_OUT_MIB = 20  # they would take 44 if they stayed
MOST_GROWTH_OF_LARGE_MIB = 40  # they would take twice as much if they stayed


@pytest.fixture(name="server", scope="module")
def _server():
    with serving(before=WITHOUT_COLLECTOR) as running:
        for attack in (handshakes, reviews, probes, large_reviews, half_bodies):
            attack(running, 2)
        yield running


def handshakes(server, count):
    """28 KiB each, if they stayed."""

    async def one(gate, context):
        async with gate:
            _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
            writer.transport.abort()

    async def all_of_them():
        gate, context = asyncio.Semaphore(20), server.tls()
        await asyncio.gather(*(one(gate, context) for _ in range(count)))

    asyncio.run(all_of_them())


def pushed_out(server, count):
    """Silent connections that give way to newer ones in the middle of their handshake: 4 KiB each, if they stayed."""
    with contextlib.ExitStack() as held:
        for _ in range(MOST_OF_A_SOURCE + count):
            held.enter_context(socket.create_connection(("127.0.0.1", server.port)))


def reviews(server, count, body=BODY):
    context = server.tls()
    for _ in range(count):
        with server.connect(context) as connection, connection.makefile("rb") as stream:
            connection.sendall(posted(body))
            assert read_reply(stream).status == 200


def probes(server, count):
    for _ in range(count):
        assert server.get("/healthz")[0] == server.get("/metrics")[0] == 200


def large_reviews(server, count):
    """7 MiB each, if they stayed."""
    reviews(server, count, LARGE)


def half_bodies(server, count):
    context = server.tls()
    for _ in range(count):
        with server.connect(context) as connection, contextlib.suppress(OSError):
            connection.sendall(posted(LARGE)[: len(LARGE) // 2])


def storm(server, count):
    """Large reviews all at once; most are refused."""
    sent = posted(LARGE)

    async def one(context):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            for at in range(0, len(sent), 65536):
                writer.write(sent[at : at + 65536])
                await writer.drain()
            await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    async def all_of_them():
        context = server.tls()
        most = server.resident()
        tasks = [asyncio.ensure_future(one(context)) for _ in range(count)]
        while not all(task.done() for task in tasks):
            most = max(most, server.resident())
            await asyncio.sleep(0.05)
        return most

    return asyncio.run(all_of_them())


@pytest.mark.slow
def test_bodies_stay_within_their_budget_and_are_given_back():
    """32 MiB, what two threads make of a body each, and what 40 connections have on their way."""
    with serving() as server:
        reviews(server, 5)
        before = server.resident()
        assert storm(server, 40) - before < 32 + 32 + 40 * 2
        eventually(lambda: server.resident() - before < 20)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attack", "count", "most"),
    [
        (handshakes, 600, MOST_GROWTH_MIB),
        (reviews, 300, MOST_GROWTH_MIB),
        (probes, 100, MOST_GROWTH_MIB),
        (large_reviews, 12, MOST_GROWTH_OF_LARGE_MIB),
        (half_bodies, 24, MOST_GROWTH_OF_LARGE_MIB),
    ],
)
def test_nothing_that_ends_waits_for_the_collector(server, attack, count, most):
    before = server.resident()
    attack(server, count)
    # The last connections end, and freed memory goes back, a moment after the last answer.
    eventually(lambda: server.resident() - before < most, 10)


@pytest.mark.slow
def test_nothing_that_is_pushed_out_waits_for_the_collector():
    with serving(before=WITHOUT_COLLECTOR) as server:
        pushed_out(server, 0)
        before = settled(server)
        pushed_out(server, 10_000)
        assert settled(server) - before < MOST_GROWTH_OF_PUSHED_OUT_MIB


def settled(server):
    """Resident, MiB, once all connections have ended: then it is looked once a second what can be given back."""
    eventually(lambda: "evenspread_open_connections 0.0" in server.get("/metrics")[1], 10)
    time.sleep(2)
    return server.resident()
