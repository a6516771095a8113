"""Many creations at once, each thread on a connection of its own."""

import concurrent.futures
import contextlib
import itertools
import threading
from collections.abc import Iterator

from e2e.controlplane.api import Answer
from e2e.controlplane.up import ControlPlane
from e2e.objects import path, pod


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


def refusals(answers: list[Answer]) -> list[str]:
    """What was said of the pods that were not created."""
    return [answer.message for answer in answers if answer.status != 201]
