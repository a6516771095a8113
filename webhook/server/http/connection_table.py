"""Share scarce connections and body memory fairly among client addresses.

The port is open to the whole network, so a source is an address, or an IPv6 /64, the range of a single machine. While
the table has free entries, every connection is accepted, up to half of the table for a source. In a full table, a new
connection replaces the oldest idle connection of the largest source. Connections without a valid request are replaced
first.

Sources with a valid request are known, all others unknown. A full table first replaces connections of unknown sources,
down to an eighth of the table. This eighth is reserved for unknown sources. A flood of unknown sources therefore cannot
shut out kube-apiserver, and a new kube-apiserver, unknown at first, can still connect.

Body memory follows the same rule, in bytes instead of connections.
"""

import asyncio
import ipaddress
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from heapq import nlargest
from typing import Literal, Protocol

# Enough for four bodies of the largest size. While a body arrives and is decoded, it needs up to three times its size.
# Twice this limit took replicas past their memory limit after other attacks (docs/reliability.md).
_MAX_HELD_BYTES = 32 * 1024 * 1024
# Short bodies may use a quarter more, so that long bodies of any source leave room for them.
_SHORT_BODY_BYTES = 256 * 1024
# Remembered sources without connections. They are not strangers when they return.
_REMEMBERED = 1024
# Connections with large buffers, which cost up to 0.6 MiB each. Three API servers keep 75 idle connections.
MAX_BULKY = 128
_CONNECTION_BYTES = 24 * 1024  # measured: 2,000 connections leave 45 to 50 MiB with the C library
_LOG_SECONDS = 10.0  # between two log lines, for any number of connections

Reason = Literal["made-room", "over-share", "refused", "body-bytes", "late", "left", "buffers"]

_log = logging.getLogger(__name__)


class TrackedConnection(Protocol):
    """The table's view of a connection. ``source`` comes from `source_of`."""

    source: str
    held_bytes: int

    @property
    def idle(self) -> bool:
        """Whether no request is in progress."""

    @property
    def busy(self) -> bool:
        """Whether a complete request is being answered."""

    def overdue(self, now: float) -> bool:
        """Whether the client has exceeded its time limit. ``now`` is a time of the monotonic clock."""

    def close(self) -> None:
        """Send pending data, then end."""

    def end(self) -> None:
        """End at once, without waiting."""

    def give_way(self) -> None:
        """Release the memory of the request body."""


class _SourceConnections:
    """The connections of a source, least recently used first."""

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
    """The connections of a port, for a single event loop. ``ended`` gets each ended connection's port and reason."""

    def __init__(
        self,
        port: str,
        limit: int,
        *,
        budget: int = _MAX_HELD_BYTES,
        ended: Callable[[str, Reason], None] = lambda _port, _reason: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._port = port
        self._limit = limit
        self._budget = budget
        self._ended = ended
        self._clock = clock
        self._sources: dict[str, _SourceConnections] = {}
        self._remembered: OrderedDict[str, None] = OrderedDict()
        self._bulky: dict[TrackedConnection, None] = {}
        # Connections that wait for memory for a body, with its bytes.
        self._waiting: dict[TrackedConnection, tuple[int, asyncio.Future[None]]] = {}
        self._strangers = 0
        self.count = 0
        self.held_bytes = 0
        self._strangers_held = self._most_held = self._left = 0
        self._ended_since_logged = 0
        self._log_at = 0.0

    def __iter__(self) -> Iterator[TrackedConnection]:
        return iter([connection for source in self._sources.values() for connection in source])

    def admit(self, connection: TrackedConnection) -> bool:
        """Accept the connection. If the table is full, close another connection first.

        Returns False if no other connection can be closed.
        """
        name = connection.source
        source = self._sources.get(name)
        if source is None:
            source = _SourceConnections(proven=name in self._remembered)
        room = True
        # A source has at most half of the table, even in an empty table: the next kube-apiserver needs room.
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
        """Remove the connection, if it is in the table."""
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
        """Record a valid request on a connection, and mark its source as known.

        When the table must close connections of this source, this connection is closed last.
        """
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
        """Count a connection that now has large buffers.

        Above the limit of such connections, close one of them, from the client address with the most.
        """
        self._bulky[connection] = None
        if len(self._bulky) <= MAX_BULKY:
            return
        strangers = [member for member in self._bulky if not self.knows(member.source)]
        known = [member for member in self._bulky if self.knows(member.source)]
        group = strangers if len(strangers) > MAX_BULKY // 8 else known
        largest = Counter(member.source for member in group).most_common(1)[0][0]
        self._count_and_log(None)
        self.end(
            min((member for member in group if member.source == largest), key=lambda member: member.busy), "buffers"
        )

    def knows(self, name: str) -> bool:
        """Whether the source ``name`` has sent a valid request. A source is an address or an IPv6 /64."""
        source = self._sources.get(name)
        return source is not None and source.proven

    def hold(self, connection: TrackedConnection, size: int) -> bool:
        """Reserve memory for the connection's request body until `release`.

        To free memory, other sources' connections may have to give up their request bodies (`give_way`). Returns False
        if the memory is not enough.
        """
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
        """Reserve memory for a request body as `hold` does, or wait for free memory.

        Returns False if the wait reaches the time ``until`` of the event loop's clock.
        """
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
        budget = self._budget if size > _SHORT_BODY_BYTES else self._budget * 5 // 4
        return self.held_bytes + size <= budget

    def _wake(self) -> None:
        """Wake one connection among those waiting for memory, to try again.

        Prefer a connection with a fitting request body. Among equals, prefer a client address with an earlier valid
        request, then the client address with the least memory in use.
        """
        waiting = []
        for connection, (size, freed) in self._waiting.items():
            source = self._sources.get(connection.source)
            if source and not freed.done():
                waiting.append(((not self._fits(size), not source.proven, source.held_bytes), freed))
        if waiting:
            min(waiting, key=lambda entry: entry[0])[1].set_result(None)

    def release(self, connection: TrackedConnection) -> None:
        source = self._sources.get(connection.source)
        if source is not None and connection.held_bytes:
            self._count_bytes(connection, source, -connection.held_bytes)
            self._wake()

    def drained(self, much: int) -> bool:
        """Whether to return unused memory to the system.

        True if no request body is in memory and at least ``much`` bytes were used since the last True. Restarts the
        count of used bytes if true.
        """
        if self.held_bytes or self._most_held + self._left * _CONNECTION_BYTES < much:
            return False
        self._most_held = self._left = 0
        return True

    def end(self, connection: TrackedConnection, reason: Reason) -> None:
        self.leave(connection)
        connection.end()
        self._ended(self._port, reason)

    def _count_bytes(self, connection: TrackedConnection, source: _SourceConnections, size: int) -> None:
        connection.held_bytes += size
        source.held_bytes += size
        self.held_bytes += size
        self._most_held = max(self._most_held, self.held_bytes)
        if not source.proven:
            self._strangers_held += size

    def _largest(self, newcomer: _SourceConnections) -> Iterable[_SourceConnections]:
        """Return up to three sources from which to close a connection for the newcomer.

        The largest source comes first.
        """
        strangers = self._strangers + (not newcomer.proven)
        proven = strangers <= self._limit // 8
        # Three, in case all connections of the largest are busy. A longer search would help attackers.
        return nlargest(3, (source for source in self._sources.values() if source.proven is proven), key=len)

    def _heaviest(self, mine: _SourceConnections, size: int) -> _SourceConnections | None:
        """Return the source whose body memory ``mine`` may take. None if there is none.

        Only the source with the most memory is considered. ``mine`` may take the memory if the other source would still
        hold more than ``mine``. It may also take the memory if only ``mine`` has sent a valid request.
        """
        strangers = self._strangers_held + (0 if mine.proven else size)
        proven = strangers <= self._budget // 8
        group = (source for source in self._sources.values() if source.proven is proven)
        heaviest = max(group, key=lambda source: source.held_bytes, default=mine)
        # A stranger always gives way to a known caller. Among equals, a source gives way only if it would still hold
        # more.
        weaker = mine.proven and not heaviest.proven
        if heaviest is mine or not (weaker or heaviest.held_bytes > mine.held_bytes + size):
            return None
        return heaviest

    def _end_oldest(self, sources: Iterable[_SourceConnections], reason: Reason) -> bool:
        """End a connection that is not busy, and return whether there was one.

        This is the least recently used connection of the first client (``sources``) with such a connection. For the
        reason ``body-bytes``, the connection must also hold memory. It then only gives up its request body
        (`give_way`).
        """
        for source in sources:
            for connection in source:
                if not connection.busy and (reason != "body-bytes" or connection.held_bytes):
                    self._count_and_log(None)
                    if reason == "body-bytes":
                        self.release(connection)
                        connection.give_way()
                        self._ended(self._port, reason)
                    else:
                        self.end(connection, reason)
                    return True
        return False

    def _remember(self, name: str) -> None:
        self._remembered[name] = None
        self._remembered.move_to_end(name)
        if len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)

    def _count_and_log(self, refused: Reason | None) -> None:
        """Count an ended or refused connection. Log at most a line in ten seconds."""
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
        _log.warning(
            "the port has reached its connection limit: ending or refusing connections", extra={"fields": fields}
        )


def source_of(host: str) -> str:
    """Return the source of an address: an IPv4 address, or the /64 of an IPv6 address."""
    if ":" not in host:
        return host
    address = ipaddress.IPv6Address(host.partition("%")[0])
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, 64), strict=False))
