"""Waiting for what a controller or a process does in its own time."""

import time
from collections.abc import Callable
from typing import TypeVar

Fact = TypeVar("Fact")


def eventually(fact: Callable[[], Fact], timeout: float = 10, every: float = 0.02) -> Fact:
    """The first truthy value of `fact`.

    Errors: AssertionError with its last value.
    """
    deadline = time.monotonic() + timeout
    while True:
        value = fact()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"still {value!r} after {timeout:g} s")
        time.sleep(every)
