"""Two crossing topology keys as a grid, for example zones, and racks with nodes in several zones.

The domains of the key with fewer domains are rows, the domains of the other key are columns. The nodes of a row and a
column form a cell. A state gives each cell a number of pods. Each key has a global minimum. A line (a row or a column)
never exceeds its top: minimum + maxSkew, or its pods at the start if these are more.

A constraint on hosts adds a third minimum. It bounds the cells: each host has at least the minimum, and at most
minimum + maxSkew.

To fill rows, columns and cells within bounds is a transportation problem. By Hoffman's circulation theorem it has an
integer solution if and only if the demand of each set of rows fits (`Grid.totals`). With many rows only some sets are
checked. The bounds are then weaker, and still valid.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from webhook.core.cached_property import cached_property
from webhook.core.placement.closed_forms import room_of
from webhook.core.placement.game import Game
from webhook.core.placement.pod_limits import DomainSpread, SpreadLimit

_UNWEIGHTED = (1,)  # The constraint counts the pods.
_MOST_PODS = 20_000  # More pods have too many global minima.
_ALL_SETS = 8  # Up to this number of rows, every set of rows is checked.
Position = tuple[int, int]  # The row and the column of a cell.
Minima = tuple[int, int, int]  # The global minima of hosts, rows and columns.


class _Sums(dict[int, int]):
    """Computes and caches sums of subsets of ``numbers``.

    The key is a bit set of positions in ``numbers``. The value is the sum of the numbers at these positions.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__({0: 0})
        self._numbers = numbers

    def __missing__(self, chosen: int) -> int:
        first = chosen & -chosen
        self[chosen] = found = self[chosen ^ first] + self._numbers[first.bit_length() - 1]
        return found


class _GridKey(Struct, frozen=True):
    """The rows or the columns of a grid: a spread constraint over domains of several nodes.

    Attributes:
        base: The pods at the start in each domain with a usable node.
        max_skew: The maxSkew of the constraint.
        enough: Whether there are at least minDomains domains. If not, the minimum stays 0.
        closed_minimum: The lowest count of the eligible domains without a usable node.
    """

    base: tuple[int, ...]
    max_skew: int
    enough: bool
    closed_minimum: int | None

    def minima(self, pods: int) -> Iterator[int]:
        """The global minima reachable with this number of new pods, the lowest first."""
        counts = self.base if self.closed_minimum is None else (*self.base, self.closed_minimum)
        minimum = min(counts) if self.enough else 0
        yield minimum
        while self.enough and minimum != self.closed_minimum and sum(self.lows(minimum + 1)) <= pods:
            minimum += 1
            yield minimum

    def lows(self, minimum: int) -> list[int]:
        """Return the fewest new pods each domain needs to reach the global minimum ``minimum``."""
        return [max(0, minimum - pods) for pods in self.base] if self.enough else [0] * len(self.base)

    def tops(self, minimum: int) -> list[int]:
        """Return the most new pods each domain admits if the global minimum is ``minimum``."""
        return [max(0, minimum + self.max_skew - pods) for pods in self.base]

    def holders(self, minimum: int) -> Sequence[int | None]:
        """Return the domains that can keep the global minimum at ``minimum``.

        Return ``[None]`` if something else keeps it: a domain without an open node, or fewer domains than minDomains.
        """
        if not self.enough or self.closed_minimum == minimum:
            return [None]
        return [number for number, pods in enumerate(self.base) if pods <= minimum]


class _Hosts(NamedTuple):
    """A group of equal hosts in a cell of the grid.

    Attributes:
        held: The pods on each host.
        room: How many more pods each host admits. None if unlimited.
        many: The number of hosts.
    """

    held: int
    room: int | None
    many: int


class _Cells(NamedTuple):
    """Bounds on the number of pods in each cell of a grid.

    They hold for one known global minimum on hosts. A set of cells in a column is a bit set of rows.

    Attributes:
        most: For each column, the most pods in any set of its cells.
        least: For each column, the fewest pods in any set of its cells.
        every: The most pods in all cells together.
    """

    most: Sequence[_Sums]
    least: Sequence[_Sums]
    every: int

    def with_bounds(self, most: Sequence[Sequence[int]], least: Sequence[Sequence[int]]) -> "_Cells":
        """Return a copy with other bounds on the pods of each cell.

        ``most`` and ``least`` have a list for each column, with a number for each row.
        """
        return _Cells([*map(_Sums, most)], [*map(_Sums, least)], self.every)


class Demand(NamedTuple):
    """Bounds on the pods of each row, column and cell of a grid.

    The top of a row or column is the most pods its constraint allows. With this many pods it is blocked, with fewer it
    is open.

    Attributes:
        cells: The bounds of the cells.
        blocked: For each column, its top.
        open: A bit set of the rows known to be open.
        undecided: A bit set of the rows not yet known to be blocked or open.
        full: A bit set of the columns without free capacity in the open rows.
    """

    cells: _Cells
    rows_low: Sequence[int]
    rows_high: Sequence[int]
    cols_low: Sequence[int]
    cols_high: Sequence[int]
    minima: Minima = (0, 0, 0)
    blocked: Sequence[int] = ()
    open: int = 0
    undecided: int = 0
    full: int = 0


class Grid:
    """A simulated placement as a grid over the domains of two topology keys.

    Each domain of one key is a row, and each domain of the other key is a column. A cell has the nodes in both domains.

    Attributes:
        work: The number of columns that may still be checked before the result is unknown.
        at: The cell of each node class that admits the pods.
        cells: For each possible global minimum on hosts, the bounds on the pods in all cells.
    """

    def __init__(self, game: Game, keys: Sequence[_GridKey], at: Mapping[int, Position], *, work: int) -> None:
        (pod_class,) = game.pod_classes
        self.game, (self.rows, self.cols), self.at, self.work = game, keys, at, work
        self._limit = pod_class.on_nodes[0] if pod_class.on_nodes else None
        self._hosts: dict[Position, list[_Hosts]] = {}
        rooms = list[int | None]()
        for number, cell in at.items():
            node_class, room = game.classes[number], room_of(game.classes[number])
            rooms.append(room and room * node_class.size)
            self._hosts.setdefault(cell, []).append(_Hosts(self.held(number), room, node_class.size))
        total = None if None in rooms else sum(room or 0 for room in rooms)
        self.wanted = pod_class.pods if total is None else min(pod_class.pods, total + 1)
        self.every = (1 << len(self.rows.base)) - 1
        few = len(self.rows.base) <= _ALL_SETS
        ones = [1 << number for number in range(len(self.rows.base))]
        self.sets = range(self.every + 1) if few else [0, self.every, *ones, *(self.every ^ row for row in ones)]
        self.cells = self._minima_of_hosts()

    def held(self, number: int) -> int:
        """Return the number of pods on a node of this class that the constraint on hosts counts at the start."""
        return 0 if self._limit is None else self.game.classes[number].held[self._limit.spread] or 0

    @cached_property
    def crossed(self) -> Counter[int]:
        """The number of cells with hosts, by column."""
        return Counter(column for _, column in self._hosts)

    def _minima_of_hosts(self) -> dict[int, _Cells]:
        """Return the pod bounds of the grid cells, by the global minimum on hosts.

        Contains every reachable minimum, the lowest first.
        """
        if self._limit is None:
            return {0: self._cells(0, None)}
        closed_minimum = self.game.node_spreads[self._limit.spread].closed_minimum
        counts = [host.held for hosts in self._hosts.values() for host in hosts]
        minimum = min(counts if closed_minimum is None else [*counts, closed_minimum])
        cells_by_minimum = dict[int, _Cells]()
        while self._reaches(minimum) and (not cells_by_minimum or minimum - 1 != closed_minimum):
            cells = cells_by_minimum[minimum] = self._cells(minimum, closed_minimum)
            if sum(sums[self.every] for sums in cells.least) > self.wanted:
                break
            minimum += 1
        return cells_by_minimum

    def _reaches(self, minimum: int) -> bool:
        every = [host for hosts in self._hosts.values() for host in hosts]
        return all(host.room is None or host.held + host.room >= minimum for host in every)

    def _cells(self, minimum: int, closed_minimum: int | None) -> _Cells:
        columns, rows = range(len(self.cols.base)), range(len(self.rows.base))
        most, least = ([[0 for _ in rows] for _ in columns] for _ in range(2))
        every, gaps = 0, list[int]()
        for (row, column), hosts in self._hosts.items():
            for held, room, many in hosts:
                low, top = 0, self.wanted if room is None else room
                if self._limit is not None:
                    low, top = max(0, minimum - held), min(top, max(0, minimum + self._limit.over + 1 - held))
                    gaps += [top - low] * (held <= minimum)
                every += many * top
                most[column][row] += min(self.wanted, many * top)
                least[column][row] += many * low
        # Some host stays at the minimum.
        held_anyway = self._limit is None or closed_minimum == minimum
        return _Cells([*map(_Sums, most)], [*map(_Sums, least)], every if held_anyway else every - min(gaps, default=0))

    def between(self, before: Minima, after: Minima) -> Demand:
        """Return the bounds on new pods if the minima rise from ``before`` to ``after``.

        Each row and column has at least its lower bound at the global minima ``after``, and at most its upper bound at
        the minima ``before``.
        """
        low, high, tops = self.cells[after[0]], self.cells[before[0]], self.cols.tops(before[2])
        return Demand(
            cells=_Cells(high.most, low.least, high.every),
            rows_low=self.rows.lows(after[1]),
            rows_high=self.rows.tops(before[1]),
            cols_low=self.cols.lows(after[2]),
            cols_high=tops,
            minima=after,
            blocked=tops,
        )

    def totals(self, demand: Demand) -> tuple[int, int] | None:
        """Return the fewest and the most pods of any state within the bounds.

        None if no state is within the bounds. Compares each set of rows with all columns. For each column, the stricter
        bound applies: the bound of the column itself, or the bounds of its cells.
        """
        low, high = _Sums(demand.rows_low), _Sums(demand.rows_high)
        fewest, most = 0, self.wanted
        columns = [
            (up, least, p, q, demand.open if demand.full >> number & 1 else 0)
            for number, (up, least, p, q) in enumerate(
                zip(demand.cells.most, demand.cells.least, demand.cols_low, demand.cols_high, strict=True)
            )
        ]
        if any(p > q for _, _, p, q, _ in columns):
            return None
        for chosen in self.sets:
            rest = self.every ^ chosen
            into = out = 0
            self.work -= len(columns)
            for up, least, p, q, full in columns:
                other = up[rest]
                own = up[chosen & full] + least[chosen & ~full] if full else least[chosen]
                into += max(p - other, own)
                out += min(other, q - own)
            if into > high[chosen] or low[rest] > out:
                return None
            fewest, most = max(fewest, low[rest] + into), min(most, high[chosen] + out)
        return (fewest, most) if fewest <= most else None


def grid_of(game: Game, work: int) -> Grid | None:
    """Return the grid (see the module) of a game of equal pods with two domain keys.

    None for other games. Each constraint must count the game's pods. ``work`` limits the checked columns.
    """
    if len(game.pod_classes) != 1 or game.rollout is not None:
        return None
    (pod_class,) = game.pod_classes
    spreads = [game.domain_spreads[limit.spread] for limit in pod_class.on_domains]
    hosts = [game.node_spreads[limit.spread] for limit in pod_class.on_nodes]
    fitting = len(spreads) == 2 and len(hosts) <= 1 and not pod_class.apart and pod_class.near is None
    weights = [spread.weights for spread in spreads] + [host.weights for host in hosts]
    if not fitting or pod_class.pods > _MOST_PODS or any(each != _UNWEIGHTED for each in weights):
        return None
    open_ = {
        number: node_class
        for number, node_class in enumerate(game.classes)
        if node_class.open[0] and room_of(node_class) != 0
    }
    for number, node_class in open_.items():
        if not all(spread.counting[number] for spread in spreads) or None in (
            node_class.held[limit.spread] for limit in pod_class.on_nodes
        ):
            return None
    homes = [sorted({node_class.domains[spread.key] for node_class in open_.values()}) for spread in spreads]
    if not open_:
        return None
    keys = [_key(*each) for each in zip(spreads, pod_class.on_domains, homes, strict=True)]
    order = sorted(range(2), key=lambda each: len(homes[each]))
    places = [{domain: number for number, domain in enumerate(home)} for home in homes]
    at = {
        number: [places[number][node_class.domains[spreads[number].key]] for number in order]
        for number, node_class in open_.items()
    }
    return Grid(
        game,
        [keys[number] for number in order],
        {number: (row, column) for number, (row, column) in at.items()},
        work=work,
    )


def _key(spread: DomainSpread, limit: SpreadLimit, inside: Sequence[int]) -> _GridKey:
    closed = [spread.base[domain] for domain in spread.eligible if domain not in inside]
    base = tuple(spread.base[each] for each in inside)
    return _GridKey(base, limit.over + 1, spread.enough, min(closed, default=None))
