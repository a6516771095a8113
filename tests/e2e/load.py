"""Many requests at once, each thread on a connection of its own."""

import base64
import concurrent.futures
import contextlib
import http.client
import itertools
import json
import threading
import time
import urllib.parse
from collections.abc import Iterator
from typing import NamedTuple

from e2e.controlplane.api import Answer
from e2e.controlplane.up import ControlPlane
from e2e.injected import RECORD
from e2e.objects import path, pod

# Of one length, so that one can be written over the other in what etcd holds.
_TURNS = (b"turn-to-left", b"turn-to-rght")
_WRITERS = 4


@contextlib.contextmanager
def creating_pods(
    plane: ControlPlane, namespace: str, *, count: int | None = None, concurrency: int = 10
) -> Iterator[list[Answer]]:
    """Pods that nothing schedules are created meanwhile: so many, or as long as the block takes.

    Shape: the answers so far; after the block, all of them.
    """
    numbers = itertools.count() if count is None else iter(range(count))
    answers: list[Answer] = []
    ended = threading.Event()

    def create() -> None:
        with contextlib.closing(plane.connect()) as api:
            for number in numbers:
                made = pod(f"load-{number}", schedulerName="none")
                answers.append(api.send("POST", path("Pod", namespace), made))
                if ended.is_set():
                    return

    with concurrent.futures.ThreadPoolExecutor(concurrency) as threads:
        futures = [threads.submit(create) for _ in range(concurrency)]
        try:
            yield answers
        finally:
            if count is None:
                ended.set()
        for future in futures:
            future.result()


@contextlib.contextmanager
def dry_runs(plane: ControlPlane, namespace: str, rate: float) -> Iterator[list[tuple[int, bool]]]:
    """Meanwhile so many pods a second would be created: for each the status, and whether it would get defaults."""
    ended = threading.Event()
    told: list[tuple[int, bool]] = []

    def ask(turns: Iterator[int]) -> None:
        with contextlib.closing(plane.connect()) as api:
            began = time.monotonic()
            for turn in turns:
                made = pod(f"load-{turn}")
                answer = api.send("POST", f"{path('Pod', namespace)}?dryRun=All", made)
                told.append((answer.status, RECORD in answer.body.get("metadata", {}).get("annotations", {})))
                if ended.wait(max(0.0, began + turn / rate - time.monotonic())):
                    return

    threads = [threading.Thread(target=ask, args=(itertools.count(first, 3),)) for first in range(3)]
    for each in threads:
        each.start()
    try:
        yield told
    finally:
        ended.set()
        for each in threads:
            each.join()


class Written(NamedTuple):
    """What was said to somebody who creates a workload. Unit: seconds, of the monotonic clock."""

    status: int
    message: str
    began: float
    took: float


@contextlib.contextmanager
def writing(plane: ControlPlane, namespace: str, made: dict) -> Iterator[list[Written]]:
    """Meanwhile somebody creates a workload all the time, one after the other, and only as a trial.

    Shape: what was said so far; after the block, all of it.
    """
    ended = threading.Event()
    said: list[Written] = []

    def work() -> None:
        with contextlib.closing(plane.connect()) as api:
            while not ended.wait(0.01):
                began = time.monotonic()
                answer = api.send("POST", f"{path(made['kind'], namespace)}?dryRun=All", made)
                said.append(Written(answer.status, answer.message, began, time.monotonic() - began))

    writer = threading.Thread(target=work)
    writer.start()
    try:
        yield said
    finally:
        ended.set()
        writer.join()


@contextlib.contextmanager
def relabelling_pods(plane: ControlPlane, namespace: str, rate: float, count: int = 48) -> Iterator[None]:
    """Labels of pods change, so many a second in all, or as many as the machine can.

    Written into etcd: what is wanted are the events of the API server's watches, and to have it change a pod costs
    client and server ten times as much. Nobody else writes these pods, which wait for a node for ever.
    """
    for number in range(count):
        made = pod(f"busy-{number}", schedulerName="none")
        made["metadata"]["labels"] = {"turn": _TURNS[0].decode()}
        plane.api.request("POST", path("Pod", namespace), made)
    ended, began = threading.Event(), time.monotonic()

    def change(writer: int) -> None:
        with contextlib.closing(_connect(plane)) as etcd:
            stored = _stored(etcd, f"/registry/pods/{namespace}/")[writer::_WRITERS]
            changed = [(key, value.replace(*_TURNS)) for key, value in stored]
            for done, (key, value) in enumerate(itertools.cycle((*changed, *stored)), 1):
                _ask(etcd, "put", {"key": key, "value": _base64(value)})
                if ended.wait(max(0.0, began + done * _WRITERS / rate - time.monotonic())):
                    return

    with concurrent.futures.ThreadPoolExecutor(_WRITERS) as threads:
        futures = [threads.submit(change, writer) for writer in range(_WRITERS)]
        try:
            yield
        finally:
            ended.set()
        for future in futures:
            future.result()


def _connect(plane: ControlPlane) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urllib.parse.urlsplit(plane.etcd).netloc, timeout=30)


def _stored(etcd: http.client.HTTPConnection, prefix: str) -> list[tuple[str, bytes]]:
    """What etcd holds below a key: keys in base64, and values."""
    last = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    found = json.loads(_ask(etcd, "range", {"key": _base64(prefix.encode()), "range_end": _base64(last.encode())}))
    return [(each["key"], base64.b64decode(each["value"])) for each in found["kvs"]]


def _ask(etcd: http.client.HTTPConnection, method: str, body: dict[str, str]) -> bytes:
    etcd.request("POST", f"/v3/kv/{method}", json.dumps(body))
    return etcd.getresponse().read()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def refusals(answers: list[Answer]) -> list[str]:
    """What was said of the pods that were not created."""
    return [answer.message for answer in answers if answer.status != 201]
