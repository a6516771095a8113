"""What requests take in one namespace and in another."""

import statistics
import time
from collections.abc import Callable, Iterator


def medians(create: Callable[[str], object], *namespaces: str) -> Iterator[float]:
    """The median milliseconds of a hundred calls for each namespace, in turns, so that both meet the same noise."""
    took: dict[str, list[float]] = {namespace: [] for namespace in namespaces}
    for _ in range(100):
        for namespace, each in took.items():
            began = time.perf_counter()
            create(namespace)
            each.append((time.perf_counter() - began) * 1e3)
    return map(statistics.median, took.values())
