"""Many creations at once, each thread on a connection of its own."""

import concurrent.futures
import contextlib
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from e2e.controlplane.api import Answer
from e2e.controlplane.up import ControlPlane
from e2e.objects import path, pod


class Created(NamedTuple):
    at: float  # seconds since the first was asked for
    took: float
    answer: Answer


def create_pods(
    plane: ControlPlane,
    namespace: str,
    count: int,
    concurrency: int = 10,
    *,
    meanwhile: Callable[[], None] | None = None,
) -> list[Created]:
    """Create pods that nothing schedules; `meanwhile` runs beside, from when a tenth of them is there."""
    kept = threading.local()
    lock = threading.Lock()
    done: list[Created] = []
    begun = time.monotonic()

    def create(number: int) -> None:
        if not hasattr(kept, "api"):
            kept.api = stack.enter_context(contextlib.closing(plane.connect()))
        at = time.monotonic()
        answer = kept.api.send("POST", path("Pod", namespace), pod(f"load-{number}", schedulerName="none"))
        with lock:
            done.append(Created(at - begun, time.monotonic() - at, answer))

    with contextlib.ExitStack() as stack, concurrent.futures.ThreadPoolExecutor(concurrency) as threads:
        futures = [threads.submit(create, number) for number in range(count)]
        if meanwhile is not None:
            while len(done) < count // 10:
                time.sleep(0.005)
            meanwhile()
        for future in futures:
            future.result()
    return done
