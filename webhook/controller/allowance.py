"""How much may be written to the API server: so much a minute over time, and a share of it in one namespace.

A tenant who makes and deletes workloads as fast as possible uses up what its own namespace may have, and no more.
"""

import time
from collections.abc import Callable

from msgspec import Struct


class Rate(Struct, frozen=True, kw_only=True):
    """Unit: writes. ``burst`` is what may come at once after a time without any."""

    a_minute: float
    burst: float


class _Bucket:
    def __init__(self, rate: Rate, now: float) -> None:
        self._rate = rate
        self._left = rate.burst
        self._at = now

    def left(self, now: float) -> float:
        self._left = min(self._rate.burst, self._left + (now - self._at) * self._rate.a_minute / 60)
        self._at = now
        return self._left

    def take(self) -> None:
        self._left -= 1


class Allowance:
    """See the module; for one thread."""

    def __init__(self, everywhere: Rate, one_namespace: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._one_namespace = one_namespace
        self._everywhere = _Bucket(everywhere, clock())
        self._namespaces: dict[str, _Bucket] = {}

    def take(self, namespace: str) -> bool:
        """Whether one write may go there now; if so it is counted."""
        now = self._clock()
        own = self._namespaces.get(namespace)
        if own is None:
            own = self._namespaces[namespace] = _Bucket(self._one_namespace, now)
        if self._everywhere.left(now) < 1 or own.left(now) < 1:
            return False
        self._everywhere.take()
        own.take()
        return True

    def forget_idle(self) -> None:
        """Drop what is known of namespaces that have all of their share again."""
        now, full = self._clock(), self._one_namespace.burst
        self._namespaces = {name: each for name, each in self._namespaces.items() if each.left(now) < full}
