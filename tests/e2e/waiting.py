"""Waiting for what a controller or a process does in its own time."""

import time
from collections.abc import Callable
from typing import TypeVar

Fact = TypeVar("Fact")

# How many times as long as an idle machine a busy one may take: these tests run beside each other, on two cores.
BUSY = 4


def eventually(fact: Callable[[], Fact], timeout: float = 10, every: float = 0.02) -> Fact:
    """The first truthy value of `fact`, of which nobody was promised when it comes.

    Unit: ``timeout`` is in seconds of an idle machine.
    Errors: AssertionError with its last value.
    """
    return within(BUSY * timeout, fact, every)


def within(seconds: float, fact: Callable[[], Fact], every: float = 0.02) -> Fact:
    """The first truthy value of `fact`, which is there in time however busy the machine is.

    Errors: AssertionError with its last value.
    """
    deadline = time.monotonic() + seconds
    while True:
        value = fact()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"still {value!r} after {seconds:g} s")
        time.sleep(every)
