"""Who may hold connections, and bytes of bodies, where there is not room for all.

The port is open to the whole network, so room is shared by source: an address, of IPv6 the /64 that one machine has to
itself. While there is room everybody is let in, up to half of it a source. In a full table whoever comes takes the
place of the oldest idle connection of the source that holds most; connections that have not sent a valid request go
first. Sources that have sent one and strangers are two groups: strangers are pushed out until an eighth is left to
them, which nobody takes from them. So no crowd of strangers shuts kube-apiserver out, and a new kube-apiserver, a
stranger at first, always gets in.

Bytes of bodies are shared by the same rule, where the table has connections.
"""

import asyncio
import ipaddress
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from heapq import nlargest
from typing import Literal, Protocol

# With the largest body allowed, four of them. A body costs up to three times its size while it arrives and is read:
# twice as many took replicas past their limit that had been attacked otherwise before (docs/reliability.md).
MAX_HELD_BYTES = 32 * 1024 * 1024
# Bodies up to this size may take a quarter more, so that long bodies of any source leave room for them.
SHORT_BODY_BYTES = 256 * 1024
# Sources whose connections have ended, and that are no strangers when they come back.
_REMEMBERED = 1024
# Connections with large buffers, which cost up to 0.6 MiB each. Three API servers keep 75 idle connections.
MAX_BULKY = 128
_CONNECTION_BYTES = 24 * 1024  # measured: what 2,000 at once took stays with the C library, 45 to 50 MiB
_LOG_SECONDS = 10.0  # between two log lines, however many connections arrive

Reason = Literal["made-room", "over-share", "refused", "body-bytes", "late", "left", "buffers"]

_log = logging.getLogger(__name__)


class TrackedConnection(Protocol):
    """What the table needs of a connection. ``source`` comes from `source_of`."""

    source: str
    held_bytes: int

    @property
    def idle(self) -> bool:
        """Whether no whole head has arrived that is not answered."""

    @property
    def busy(self) -> bool:
        """Whether a whole request has arrived and is being answered."""

    def overdue(self, now: float) -> bool:
        """Whether its peer has been waited for too long, by the monotonic clock."""

    def close(self) -> None:
        """Send what is to be sent, then end."""

    def end(self) -> None:
        """End at once; nothing is waited for."""

    def give_way(self) -> None:
        """Hold no bytes of a body any more."""


class _Source:
    """The connections of one source, the one used longest ago first."""

    def __init__(self, *, proven: bool) -> None:
        self.proven = proven
        self.unproven: OrderedDict[TrackedConnection, None] = OrderedDict()
        self.served: OrderedDict[TrackedConnection, None] = OrderedDict()
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self.unproven) + len(self.served)

    def __iter__(self) -> Iterator[TrackedConnection]:
        yield from self.unproven
        yield from self.served


class ConnectionTable:
    """The connections of one port, for one event loop. ``ended`` gets each that is ended from here, and why."""

    def __init__(
        self,
        port: str,
        limit: int,
        *,
        budget: int = MAX_HELD_BYTES,
        ended: Callable[[str, Reason], None] = lambda _port, _reason: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._port = port
        self._limit = limit
        self._budget = budget
        self._ended = ended
        self._clock = clock
        self._sources: dict[str, _Source] = {}
        self._remembered: OrderedDict[str, None] = OrderedDict()
        self._bulky: dict[TrackedConnection, None] = {}
        self._waiting: dict[
            TrackedConnection, tuple[int, asyncio.Future[None]]
        ] = {}  # for room for a body of so many bytes
        self._strangers = 0
        self.count = 0
        self.held_bytes = 0
        self._strangers_held = self._most_held = self._left = 0
        self._ended_since_logged = 0
        self._log_at = 0.0

    def __iter__(self) -> Iterator[TrackedConnection]:
        """All connections, as they were when asked for."""
        return iter([each for source in self._sources.values() for each in source])

    def admit(self, connection: TrackedConnection) -> bool:
        """Accept the connection, in place of another if need be; false if no other can make room."""
        name = connection.source
        source = self._sources.get(name)
        if source is None:
            source = _Source(proven=name in self._remembered)
        room = True
        # Half of the room is the most that one source has even in an empty table: the next kube-apiserver must find
        # some.
        if len(source) >= max(1, self._limit // 2):
            room = self._end_oldest([source], "over-share")
        elif self.count >= self._limit:
            room = self._end_oldest(self._largest(source), "made-room")
        if not room:
            self._count_and_log("refused")
            return False
        self._sources[name] = source
        source.unproven[connection] = None
        self.count += 1
        self._strangers += not source.proven
        return True

    def leave(self, connection: TrackedConnection) -> None:
        """Forget the connection, if it is known."""
        self._bulky.pop(connection, None)
        source = self._sources.get(connection.source)
        if source is None or (connection not in source.unproven and connection not in source.served):
            return
        self.release(connection)
        source.unproven.pop(connection, None)
        source.served.pop(connection, None)
        self.count -= 1
        self._left += 1
        self._strangers -= not source.proven
        if not source:
            del self._sources[connection.source]

    def served(self, connection: TrackedConnection) -> None:
        """The connection has sent a valid request: it is the last of its source to be ended, and that no stranger."""
        source = self._sources.get(connection.source)
        if source is None:
            return
        if connection in source.served:
            source.served.move_to_end(connection)
        elif connection in source.unproven:
            del source.unproven[connection]
            source.served[connection] = None
        if not source.proven:
            source.proven = True
            self._strangers -= len(source)
            self._strangers_held -= source.held_bytes
            self._remember(connection.source)

    def grown(self, connection: TrackedConnection) -> None:
        """Count a connection that keeps large buffers. If too many do, end one of the source that has most."""
        self._bulky[connection] = None
        if len(self._bulky) <= MAX_BULKY:
            return
        strangers = [each for each in self._bulky if not self.knows(each.source)]
        known = [each for each in self._bulky if self.knows(each.source)]
        group = strangers if len(strangers) > MAX_BULKY // 8 else known
        largest = Counter(each.source for each in group).most_common(1)[0][0]
        self._count_and_log(None)
        self.end(min((each for each in group if each.source == largest), key=lambda each: each.busy), "buffers")

    def knows(self, name: str) -> bool:
        """Whether the source has sent a valid request."""
        source = self._sources.get(name)
        return source is not None and source.proven

    def hold(self, connection: TrackedConnection, size: int) -> bool:
        """Count so many bytes as the connection's, until `release`; false if others have a better right to them."""
        source = self._sources.get(connection.source)
        if source is None or (connection not in source.unproven and connection not in source.served):
            return False
        while not self._fits(size):
            heaviest = self._heaviest(source, size)
            if heaviest is None or not self._end_oldest([heaviest], "body-bytes"):
                return False
        self._count_bytes(connection, source, size)
        return True

    async def hold_by(self, connection: TrackedConnection, size: int, until: float) -> bool:
        """As `hold`, but wait for room until the clock of the event loop shows ``until``."""
        try:
            async with asyncio.timeout_at(until):
                while not self.hold(connection, size):
                    freed = asyncio.get_running_loop().create_future()
                    self._waiting[connection] = size, freed
                    await freed
        except TimeoutError:
            self._count_and_log("body-bytes")
            return False
        finally:
            self._waiting.pop(connection, None)
            self._wake()
        return True

    def _fits(self, size: int) -> bool:
        budget = self._budget if size > SHORT_BODY_BYTES else self._budget * 5 // 4
        return self.held_bytes + size <= budget

    def _wake(self) -> None:
        """Let one waiting connection retry: one whose body fits, of a known caller, of the source with fewest bytes."""
        waiting = []
        for each, (size, freed) in self._waiting.items():
            source = self._sources.get(each.source)
            if source and not freed.done():
                waiting.append(((not self._fits(size), not source.proven, source.held_bytes), freed))
        if waiting:
            min(waiting, key=lambda each: each[0])[1].set_result(None)

    def release(self, connection: TrackedConnection) -> None:
        """The body is gone."""
        source = self._sources.get(connection.source)
        if source is not None and connection.held_bytes:
            self._count_bytes(connection, source, -connection.held_bytes)
            self._wake()

    def drained(self, much: int) -> bool:
        """Whether no body is held, and bodies and connections took so much since this was last true."""
        if self.held_bytes or self._most_held + self._left * _CONNECTION_BYTES < much:
            return False
        self._most_held = self._left = 0
        return True

    def end(self, connection: TrackedConnection, reason: Reason) -> None:
        """End the connection, and count why."""
        self.leave(connection)
        connection.end()
        self._ended(self._port, reason)

    def _count_bytes(self, connection: TrackedConnection, source: _Source, size: int) -> None:
        connection.held_bytes += size
        source.held_bytes += size
        self.held_bytes += size
        self._most_held = max(self._most_held, self.held_bytes)
        if not source.proven:
            self._strangers_held += size

    def _largest(self, newcomer: _Source) -> Iterable[_Source]:
        """Whose connections give way to the newcomer's: mostly the first's; the others where all of its are busy."""
        strangers = self._strangers + (not newcomer.proven)
        proven = strangers <= self._limit // 8
        # Three, in case all connections of the largest are busy. A longer search would help an attacker.
        return nlargest(3, (each for each in self._sources.values() if each.proven is proven), key=len)

    def _heaviest(self, mine: _Source, size: int) -> _Source | None:
        """Whose bytes give way to mine: a source that holds more than I would, unless I am known and it is not."""
        strangers = self._strangers_held + (0 if mine.proven else size)
        proven = strangers <= self._budget // 8
        group = (each for each in self._sources.values() if each.proven is proven)
        heaviest = max(group, key=lambda each: each.held_bytes, default=mine)
        # A stranger always gives way to a known caller. Among equals, only a source that would still hold more does.
        weaker = mine.proven and not heaviest.proven
        if heaviest is mine or not (weaker or heaviest.held_bytes > mine.held_bytes + size):
            return None
        return heaviest

    def _end_oldest(self, sources: Iterable[_Source], reason: Reason) -> bool:
        """End the connection that was used longest ago, of the first source that has one that is not busy."""
        for source in sources:
            for each in source:
                if not each.busy and (reason != "body-bytes" or each.held_bytes):
                    self._count_and_log(None)
                    if reason == "body-bytes":
                        self.release(each)
                        each.give_way()
                        self._ended(self._port, reason)
                    else:
                        self.end(each, reason)
                    return True
        return False

    def _remember(self, name: str) -> None:
        self._remembered[name] = None
        self._remembered.move_to_end(name)
        if len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)

    def _count_and_log(self, refused: Reason | None) -> None:
        """One line in ten seconds, however many come."""
        if refused is not None:
            self._ended(self._port, refused)
        self._ended_since_logged += 1
        now = self._clock()
        if now < self._log_at:
            return
        self._log_at = now + _LOG_SECONDS
        name, largest = max(self._sources.items(), key=lambda item: len(item[1]))
        fields = {
            "port": self._port,
            "connections": self.count,
            "bodyBytes": self.held_bytes,
            "sources": len(self._sources),
            "largestSource": name,
            "itsConnections": len(largest),
            "ended": self._ended_since_logged,
        }
        self._ended_since_logged = 0
        _log.warning("full: connections are ended or refused to make room for others", extra={"fields": fields})


def source_of(host: str) -> str:
    """The source that an address belongs to: an IPv4 address, or the /64 of an IPv6 one."""
    if ":" not in host:
        return host
    address = ipaddress.IPv6Address(host.partition("%")[0])
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, 64), strict=False))
