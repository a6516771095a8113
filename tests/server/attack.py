"""Loads and attacks on a running server; loopback only, and bounded. `make test` runs them small, e2e whole."""

import asyncio
import contextlib
import resource
import signal
import socket
import threading
import time
from collections import Counter

from server.conftest import eventually, posted, read_reply, review

BODY = review()
_CHUNKED = b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
_ENDLESS = (b"ffffffffffffffff\r\nx\r\n", b"5\r\nabc")


def answers(server):
    """Seconds that one review takes on a new connection."""
    began = time.monotonic()
    with server.connect() as connection, connection.makefile("rb") as stream:
        connection.sendall(posted(BODY))
        assert read_reply(stream).status == 200
    return time.monotonic() - began


def answers_soon(server):
    """Whether a review is answered at all within 5 s; anything else is a no."""
    try:
        return answers(server) < 5.0
    except OSError:
        return False


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


def silence(server, *, silent, half, seconds):
    """Silent connections, half heads, bodies, handshakes: the slowest of five reviews, MiB, and what was said."""

    async def attack():
        quiet = await opened(server, silent)
        heads = await opened(server, half, b"POST /validate HTTP/1.1\r\nHost: loc")
        bodies = await opened(server, half, posted(BODY[:20], length=len(BODY)))
        for chunk in _ENDLESS:
            bodies += await opened(server, 1, _CHUNKED + chunk)
        hellos = half_handshakes(server, half)
        slowest = max([await asyncio.to_thread(answers, server) for _ in range(5)])
        resident = server.resident()
        said = await ended([*quiet, *heads, *bodies], seconds)
        for each in hellos:
            each.close()
        return slowest, resident, said

    return asyncio.run(attack())


def half_handshakes(server, count):
    """Sockets that have sent the first bytes of a ClientHello."""
    made = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(count)]
    for each in made:
        each.send(b"\x16\x03\x01\x02\x00")
    return made


def burst(server, *, transports, connections):
    """Two reviews on each of so many connections, all at once: the failures."""

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

    async def all_of_them():
        contexts = [server.tls() for _ in range(transports)]
        made = (one(context) for context in contexts for _ in range(connections))
        return await asyncio.gather(*made, return_exceptions=True)

    return [failure for failure in asyncio.run(all_of_them()) if failure is not None]


def exhaust_descriptors(server, *, limit, sockets):
    """More silent sockets than the process may have descriptors, for two seconds."""
    resource.prlimit(server.worker, resource.RLIMIT_NOFILE, (limit, limit))
    connections = [socket.create_connection(("127.0.0.1", server.port), timeout=5) for _ in range(sockets)]
    time.sleep(2)
    for connection in connections:
        connection.close()


def stop_under_load(server, *, clients, noticed):
    """SIGTERM while clients ask, who stop dialling after so many seconds: failures, late answers, exit code, time."""
    failures, answered, stop = [], [], threading.Event()
    threads = [threading.Thread(target=_talk, args=(server, failures, answered, stop)) for _ in range(clients)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(answered) > 5 * clients)
    server.process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    time.sleep(noticed)
    stop.set()
    code = server.process.wait(20)
    took = time.monotonic() - began
    for thread in threads:
        thread.join(10)
    return failures, [at for at in answered if at > began], code, took


def _talk(server, failures, answered, stop):
    """Ask on kept connections; a new one when the server says goodbye. Retries nothing."""
    context = server.tls()
    while not stop.is_set():
        try:
            with server.connect(context) as connection, connection.makefile("rb") as stream:
                goodbye = False
                while not goodbye:
                    connection.sendall(posted(BODY))
                    reply = read_reply(stream)
                    assert reply is not None, "closed without an answer"
                    assert reply.status == 200
                    answered.append(time.monotonic())
                    goodbye = reply.headers.get("connection") == "close"
                    time.sleep(0.02)
        except Exception as error:  # noqa: BLE001 every kind of failure counts
            failures.append(f"{type(error).__name__}: {error}")
            return
