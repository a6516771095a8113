"""What somebody does who reaches both ports from the pod network and has no credentials."""

import asyncio
import contextlib
import json
import resource
import ssl
import time
from collections import Counter
from typing import NamedTuple

from e2e.objects import constraint, costly
from server.conftest import posted, review

MIB = 1024 * 1024
AT_ONCE = 40  # handshakes at a time
PATIENCE = 5.0  # seconds for a connection to come about


class Habit(NamedTuple):
    """How each of so many connections is used, one after the other."""

    connections: int
    first: bytes  # what it says
    drip: bytes = b""  # and says again every second
    tls: bool = True
    health: bool = False  # on the plain port
    holds: bool = True  # else it hangs up once everything is said
    answered: bool = False  # it waits for the answer first


def named(made: dict, namespace: str, user: str) -> bytes:
    """The review of a Deployment that says to be somebody else's."""
    request = {
        "uid": "1",
        "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "namespace": namespace,
        "operation": "CREATE",
        "userInfo": {"username": user},
        "object": made,
    }
    body = json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}).encode()
    return posted(body, "/validate?timeout=30s")


VICTIM = ("shop", "admin")  # the namespace and the user of whoever else is there
COSTLY = costly("Deployment", constraint(labelSelector={"matchLabels": {"app": "other"}}))
LONG = costly("Deployment")
LONG["spec"]["template"]["spec"]["containers"][0]["args"] = ["x" * 105 * 1024]
LARGE = posted(review(size=7 * MIB - 4096))
# As many values as fit into what the API server takes: of a wrong type, or below more levels than a decoder follows.
LISTS = b"[" + b"[]," * MIB + b"[]]"
WRONG = review().replace(b'"padding": ""', b'"containers": 3, "topologySpreadConstraints": %b' % LISTS)
DEEP = review().replace(b'"padding": ""', b'"x": %b' % (b"[" * 9000 + LISTS + b"]" * 9000))
KEYS = review().replace(b'"padding": ""', b'"nodeSelector": {%b}' % b",".join([b'"a":1'] * (MIB // 2)))
HEAD = b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
HABITS = {
    "2,000 idle connections": Habit(2000, b"", tls=False),
    "2,000 idle on the plain port": Habit(2000, b"", tls=False, health=True),
    "half handshakes": Habit(1000, b"\x16\x03\x01\x02\x00", tls=False),
    "half heads on the plain port": Habit(500, b"GET /metrics HTTP/1.1\r\nHo", tls=False, health=True),
    "slow heads and bodies": Habit(300, HEAD + b"Content-Length: 1000\r\n\r\n{", b"x"),
    "handshakes": Habit(20, b"", holds=False),
    "bodies of 7 MiB": Habit(12, LARGE, holds=False, answered=True),
    "3 MiB of empty lists, of a wrong type": Habit(12, posted(WRONG), holds=False, answered=True),
    "3 MiB of empty lists, 9,000 levels deep": Habit(12, posted(DEEP), holds=False, answered=True),
    "3 MiB of one-byte keys": Habit(12, posted(KEYS), holds=False, answered=True),
    "halves of bodies of 7 MiB": Habit(12, LARGE[: len(LARGE) // 2], holds=False),
    "costly reviews in another's name": Habit(10, named(COSTLY, *VICTIM), holds=False, answered=True),
    "72 reviews of 105 KiB at once": Habit(72, named(LONG, *VICTIM), holds=False, answered=True),
    "bodies of 7 MiB that do not end": Habit(40, LARGE[:-1]),
}


class Peer(NamedTuple):
    address: str
    port: int
    health: int


class Dialling(NamedTuple):
    """What connections have in common."""

    source: str
    context: ssl.SSLContext
    gate: asyncio.Semaphore
    counts: Counter


def bother(name: str, peers: list[Peer], source: str, seconds: float) -> Counter:
    """How many connections came about, were ended by the other side, or failed."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return asyncio.run(_all(HABITS[name], peers, source, time.monotonic() + seconds))


async def _all(habit: Habit, peers: list[Peer], source: str, until: float) -> Counter:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    dialling = Dialling(source, context, asyncio.Semaphore(AT_ONCE), Counter())
    tasks = [
        asyncio.ensure_future(_again(habit, peers[number % len(peers)], dialling))
        for number in range(habit.connections * len(peers))
    ]
    await asyncio.wait(tasks, timeout=until - time.monotonic())
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return dialling.counts


async def _again(habit, peer, dialling):
    """One connection after the other."""
    port, context = (peer.health, None) if habit.health else (peer.port, dialling.context if habit.tls else None)
    counts = dialling.counts
    while True:
        try:
            async with dialling.gate, asyncio.timeout(PATIENCE):
                reader, writer = await asyncio.open_connection(
                    peer.address, port, ssl=context, local_addr=(dialling.source, 0)
                )
        except (OSError, TimeoutError):
            counts["failed"] += 1
            await asyncio.sleep(0.1)
            continue
        counts["connections"] += 1
        try:
            with contextlib.suppress(OSError):
                await _use(habit, reader, writer, counts)
        finally:
            writer.transport.abort()


async def _use(habit, reader, writer, counts):
    for at in range(0, len(habit.first), 65536):
        writer.write(habit.first[at : at + 65536])
        await writer.drain()
    if habit.answered:
        head = await reader.read(12)
        counts[f"answered {head[9:].decode() or 'nothing'}"] += 1
    if not habit.holds:
        return
    ended = asyncio.ensure_future(reader.read())
    try:
        while not (await asyncio.wait([ended], timeout=1.0))[0]:
            writer.write(habit.drip)
        counts["ended"] += 1
        await ended
    finally:
        ended.cancel()
