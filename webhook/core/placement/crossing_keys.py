"""Two crossing keys, for example zones and racks that span zones, as rows, columns and cells.

The domains of the key with fewer domains are rows, those of the other key are columns. The nodes in one row and one
column are a cell. A state says how many pods each cell got. Each key has a level, its global minimum. A line (a row or
a column) never holds more than its top: level + maxSkew, or the pods that it held at the start if these are more.

A constraint on hosts adds a third level. It only bounds the cells: each host holds at least the level, and at most
level + maxSkew.

"Each row, column and cell has between so many and so many pods" is a transportation problem. By Hoffman's circulation
theorem it has a solution in integers if and only if, for each set of rows, what must go in fits (`Board.totals`). With
many rows only some sets are checked. Then more states seem possible than there are, and bounds are weaker, yet valid.

Bounds on the ends of all orders:

Most. Pods come one by one, so each level rises by at most one with each pod. At that moment every line has at least its
new level and at most its old top. `reached_levels` follows only steps for which such a state exists. The most pods of
any state at these levels are an upper bound.

Fewest. A line at its top is blocked. An order leaves a pod over only in a stuck state: every cell is full, or its row
or its column is blocked. `stuck_states` searches for the stuck states with the fewest pods (branch and bound, best
first). It fixes the levels, a row and a column that hold them, and then decides for each row whether it is blocked. A
column with a cell in an open row must be blocked, or those cells must be full. Without a stuck state every order places
all pods.

A state with possible numbers may still be out of reach. So a stuck state bounds all orders, and proves none.
`crossing_orders` looks for an order that ends there.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count, product
from typing import NamedTuple

from msgspec import Struct

from webhook.core.cached_property import cached_property
from webhook.core.placement.closed_forms import room_of
from webhook.core.placement.game import DomainSpread, Game, Limit

_UNWEIGHTED = (1,)
_MOST_PODS = 20_000
_ALL_SETS = 8  # rows up to which every set of rows is checked

At = tuple[int, int]  # the row and the column of a cell
Levels = tuple[int, int, int]  # of hosts, rows and columns


class _Sums(dict[int, int]):
    """The sums of some numbers, by set of their positions (a bit each)."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__({0: 0})
        self._numbers = numbers

    def __missing__(self, chosen: int) -> int:
        first = chosen & -chosen
        self[chosen] = found = self[chosen ^ first] + self._numbers[first.bit_length() - 1]
        return found


class Key(Struct, frozen=True):
    """One spread constraint over domains.

    Shape: ``base`` has the pods of each domain with an open node at the start; ``floor`` is the lowest count of the
    eligible domains without one. Without ``enough`` domains for minDomains the level stays 0.
    """

    base: tuple[int, ...]
    skew: int
    enough: bool
    floor: int | None

    def levels(self, pods: int) -> Iterator[int]:
        """The levels that so many more pods can reach, lowest first."""
        level = min(self.base if self.floor is None else (*self.base, self.floor)) if self.enough else 0
        yield level
        while self.enough and level != self.floor and sum(self.lows(level + 1)) <= pods:
            level += 1
            yield level

    def lows(self, level: int) -> list[int]:
        """The fewest pods that each domain got."""
        return [max(0, level - each) for each in self.base] if self.enough else [0] * len(self.base)

    def tops(self, level: int) -> list[int]:
        """The most pods that each domain can get."""
        return [max(0, level + self.skew - each) for each in self.base]

    def holders(self, level: int) -> Sequence[int | None]:
        """The domains that may hold the level; None where it is held anyway."""
        if not self.enough or self.floor == level:
            return [None]
        return [number for number, each in enumerate(self.base) if each <= level]


class _Hosts(NamedTuple):
    """Equal hosts of a cell: the pods on each, the pods that each takes (None for any number), and how many hosts."""

    held: int
    room: int | None
    many: int


class Cells(NamedTuple):
    """The cells at one level of hosts.

    Shape: by column, the most and the least pods of each set of its cells. All cells together have at most ``every``.
    """

    most: Sequence[_Sums]
    least: Sequence[_Sums]
    every: int

    def with_bounds(self, most: Sequence[Sequence[int]], least: Sequence[Sequence[int]]) -> "Cells":
        """Other bounds, by column and row."""
        return Cells([*map(_Sums, most)], [*map(_Sums, least)], self.every)


class Demand(NamedTuple):
    """What is asked of a state: the least and the most pods of each row, column and cell.

    Shape: ``blocked`` are the most pods of each column. In columns of ``full``, cells in rows of ``open`` are full.
    Rows of ``undecided`` may be blocked. All three are sets, a bit each.
    """

    cells: Cells
    rows_low: Sequence[int]
    rows_high: Sequence[int]
    cols_low: Sequence[int]
    cols_high: Sequence[int]
    levels: Levels = (0, 0, 0)
    blocked: Sequence[int] = ()
    open: int = 0
    undecided: int = 0
    full: int = 0


class Board:
    """A game as rows, columns and cells.

    Shape: ``work`` are the columns that may still be looked at. ``at`` has the cell of each open class of nodes, and
    ``cells`` all cells by level of hosts.
    """

    def __init__(self, game: Game, keys: Sequence[Key], at: Mapping[int, At], *, work: int) -> None:
        (pod_class,) = game.pod_classes
        self.game, (self.rows, self.cols), self.at, self.work = game, keys, at, work
        self._limit = pod_class.on_nodes[0] if pod_class.on_nodes else None
        self._hosts: dict[At, list[_Hosts]] = {}
        rooms = list[int | None]()
        for number, cell in at.items():
            of, room = game.classes[number], room_of(game.classes[number])
            rooms.append(room and room * of.size)
            self._hosts.setdefault(cell, []).append(_Hosts(self.held(number), room, of.size))
        total = None if None in rooms else sum(each or 0 for each in rooms)
        self.wanted = pod_class.pods if total is None else min(pod_class.pods, total + 1)
        self.every = (1 << len(self.rows.base)) - 1
        few = len(self.rows.base) <= _ALL_SETS
        ones = [1 << number for number in range(len(self.rows.base))]
        self.sets = range(self.every + 1) if few else [0, self.every, *ones, *(self.every ^ each for each in ones)]
        self.cells = self._levels_of_hosts()

    def held(self, number: int) -> int:
        """The pods that the constraint on hosts counts on a node of a class at the start."""
        return 0 if self._limit is None else self.game.classes[number].held[self._limit.spread] or 0

    @cached_property
    def crossed(self) -> Counter[int]:
        """In how many rows each column has a cell."""
        return Counter(column for _, column in self._hosts)

    def _levels_of_hosts(self) -> dict[int, Cells]:
        """The cells at each level of hosts that the pods can reach, the lowest first."""
        if self._limit is None:
            return {0: self._cells(0, None)}
        floor = self.game.node_spreads[self._limit.spread].floor
        counts = [each.held for hosts in self._hosts.values() for each in hosts]
        level, found = min(counts if floor is None else [*counts, floor]), dict[int, Cells]()
        while self._reaches(level) and (not found or level - 1 != floor):
            cells = found[level] = self._cells(level, floor)
            if sum(each[self.every] for each in cells.least) > self.wanted:
                break
            level += 1
        return found

    def _reaches(self, level: int) -> bool:
        every = [each for hosts in self._hosts.values() for each in hosts]
        return all(each.room is None or each.held + each.room >= level for each in every)

    def _cells(self, level: int, floor: int | None) -> Cells:
        columns, rows = range(len(self.cols.base)), range(len(self.rows.base))
        most, least = ([[0 for _ in rows] for _ in columns] for _ in range(2))
        every, gaps = 0, list[int]()
        for (row, column), hosts in self._hosts.items():
            for held, room, many in hosts:
                low, top = 0, self.wanted if room is None else room
                if self._limit is not None:
                    low, top = max(0, level - held), min(top, max(0, level + self._limit.over + 1 - held))
                    gaps += [top - low] * (held <= level)
                every += many * top
                most[column][row] += min(self.wanted, many * top)
                least[column][row] += many * low
        # Some host stays at the level.
        held_anyway = self._limit is None or floor == level
        return Cells([*map(_Sums, most)], [*map(_Sums, least)], every if held_anyway else every - min(gaps, default=0))

    def between(self, before: Levels, after: Levels) -> Demand:
        """States with at least the levels ``after``, in which no count exceeds the tops of ``before``."""
        low, high, tops = self.cells[after[0]], self.cells[before[0]], self.cols.tops(before[2])
        return Demand(
            cells=Cells(high.most, low.least, high.every),
            rows_low=self.rows.lows(after[1]),
            rows_high=self.rows.tops(before[1]),
            cols_low=self.cols.lows(after[2]),
            cols_high=tops,
            levels=after,
            blocked=tops,
        )

    def totals(self, of: Demand) -> tuple[int, int] | None:
        """The fewest and the most pods of such a state; None where there is none.

        For each set of rows, a column is either on the side of the set or on the other, whichever asks for more.
        """
        low, high = _Sums(of.rows_low), _Sums(of.rows_high)
        fewest, most = 0, self.wanted
        columns = [
            (up, least, p, q, of.open if of.full >> number & 1 else 0)
            for number, (up, least, p, q) in enumerate(
                zip(of.cells.most, of.cells.least, of.cols_low, of.cols_high, strict=True)
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


def board_of(game: Game, work: int) -> Board | None:
    """The board of equal pods that count themselves under two constraints on domains; None for any other game.

    Shape: ``work`` is how many columns are looked at.
    """
    if len(game.pod_classes) != 1 or game.rollout is not None:
        return None
    (pod_class,) = game.pod_classes
    spreads = [game.domain_spreads[each.spread] for each in pod_class.on_domains]
    hosts = [game.node_spreads[each.spread] for each in pod_class.on_nodes]
    fitting = len(spreads) == 2 and len(hosts) <= 1 and not pod_class.apart and pod_class.near is None
    weights = [each.weights for each in spreads] + [each.weights for each in hosts]
    if not fitting or pod_class.pods > _MOST_PODS or any(each != _UNWEIGHTED for each in weights):
        return None
    open_ = {number: of for number, of in enumerate(game.classes) if of.open[0] and room_of(of) != 0}
    for number, of in open_.items():
        if not all(each.counting[number] for each in spreads) or None in (
            of.held[each.spread] for each in pod_class.on_nodes
        ):
            return None
    homes = [sorted({of.domains[each.key] for of in open_.values()}) for each in spreads]
    if not open_:
        return None
    keys = [_key(*each) for each in zip(spreads, pod_class.on_domains, homes, strict=True)]
    order = sorted(range(2), key=lambda each: len(homes[each]))
    places = [{domain: number for number, domain in enumerate(home)} for home in homes]
    at = {number: [places[each][of.domains[spreads[each].key]] for each in order] for number, of in open_.items()}
    return Board(
        game, [keys[each] for each in order], {number: (row, column) for number, (row, column) in at.items()}, work=work
    )


def _key(spread: DomainSpread, limit: Limit, inside: Sequence[int]) -> Key:
    closed = [spread.base[each] for each in spread.eligible if each not in inside]
    base = tuple(spread.base[each] for each in inside)
    return Key(base, limit.over + 1, spread.enough, min(closed, default=None))


class Reached(Struct, frozen=True):
    """The reachable levels.

    Shape: ``before`` maps levels to those one step earlier, ``pods`` to the fewest and the most pods of their states.
    """

    before: Mapping[Levels, Levels | None]
    pods: Mapping[Levels, tuple[int, int]]

    @property
    def most(self) -> int:
        """An upper bound on the pods of any order."""
        return max((most for _, most in self.pods.values()), default=0)

    def way(self, levels: Levels) -> list[Levels]:
        """The levels on one way from the start."""
        found, at = [levels], self.before[levels]
        while at is not None:
            found.append(at)
            at = self.before[at]
        return found[::-1]


def reached_levels(board: Board) -> Reached | None:
    """All reachable levels. None if the search takes too much work."""
    ladders = [*board.cells], [*board.rows.levels(board.wanted)], [*board.cols.levels(board.wanted)]
    start = ladders[0][0], ladders[1][0], ladders[2][0]
    before: dict[Levels, Levels | None] = {start: None}
    left, pods = [start], dict[Levels, tuple[int, int]]()
    while left:
        at = left.pop()
        totals = board.totals(board.between(at, at))
        if totals is None:
            continue
        pods[at] = totals
        for rise in product((0, 1), repeat=3):
            after = at[0] + rise[0], at[1] + rise[1], at[2] + rise[2]
            if after in before or any(level > ladder[-1] for level, ladder in zip(after, ladders, strict=True)):
                continue
            if board.work < 0:
                return None
            if board.totals(board.between(at, after)) is not None:
                before[after] = at
                left.append(after)
    return Reached(before, pods)


class Stuck(NamedTuple):
    """The fewest pods of some stuck states; the demand is None where they are only known to have at least as many."""

    pods: int
    demand: Demand | None


def stuck_states(board: Board, reached: Reached) -> Iterator[Stuck]:
    """Stuck states with fewer pods than are wanted, those with the fewest first."""
    tie = count()
    heap: list[tuple[int, int, Levels | Demand, bool]] = [
        (fewest, next(tie), levels, False) for levels, (fewest, _) in sorted(reached.pods.items())
    ]
    heap.sort()
    while heap and heap[0][0] < board.wanted:
        pods, _, at, is_decided = heappop(heap)
        if is_decided or board.work < 0:
            yield Stuck(pods, at if isinstance(at, Demand) and is_decided else None)
            if board.work < 0:
                return
            continue
        for each in _decided(at) if isinstance(at, Demand) else _with_holders(board, at):
            settled = _with_columns(board, each)
            totals = None if settled is None else board.totals(settled[0])
            if settled is not None and totals is not None and totals[0] <= settled[0].cells.every:
                demand, is_open = settled
                heappush(heap, (totals[0], next(tie), demand, not is_open))


def _with_holders(board: Board, levels: Levels) -> Iterator[Demand]:
    """A row and a column that hold the levels: neither is blocked, so their common cell is full or does not exist."""
    at = board.between(levels, levels)
    undecided = sum(1 << row for row, base in enumerate(board.rows.base) if base < levels[1] + board.rows.skew)
    for row, column in product(board.rows.holders(levels[1]), board.cols.holders(levels[2])):
        low, high, tops, left = [*at.rows_low], [*at.rows_high], [*at.cols_high], undecided
        if row is not None:
            high[row] = low[row]
            left &= ~(1 << row)
        if column is not None:
            tops[column] = at.cols_low[column]
            # A cell that cannot be full is in a blocked row.
            fixed = [each for each in range(len(low)) if at.cells.most[column][1 << each] > tops[column]]
            if row in fixed:
                continue
            for each in fixed:
                low[each] = high[each]
                left &= ~(1 << each)
        yield at._replace(
            rows_low=low,
            rows_high=high,
            cols_high=tops,
            open=0 if row is None else 1 << row,
            full=0 if column is None else 1 << column,
            undecided=left,
        )


def _with_columns(board: Board, of: Demand) -> tuple[Demand, bool] | None:
    """What the open rows ask of the columns, and whether something is still to be decided; None if it cannot be.

    A column whose cells in open rows would reach its top, were they full, is blocked in any case.
    """
    low, is_open = [*of.cols_low], of.undecided > 0
    for column, top in enumerate(of.blocked):
        inside = of.cells.most[column][of.open]
        if of.full >> column & 1 or not inside or low[column] == top:
            continue
        filled = inside + of.cells.least[column][board.every & ~of.open]
        if filled >= top:
            low[column] = top
        else:
            low[column] = max(low[column], filled)
            is_open = True
    return of._replace(cols_low=low), is_open


def _decided(of: Demand) -> Iterator[Demand]:
    """One more row that is blocked or open, or, if no row is left, one more column that is blocked or full."""
    if of.undecided:
        bit = of.undecided & -of.undecided
        row, left = bit.bit_length() - 1, of.undecided ^ bit
        low, high = [*of.rows_low], [*of.rows_high]
        low[row] = high[row]
        yield of._replace(rows_low=low, undecided=left)
        high[row] -= 1
        yield of._replace(rows_high=high, undecided=left, open=of.open | bit)
        return
    column = next(
        number
        for number, top in enumerate(of.blocked)
        if not of.full >> number & 1 and of.cells.most[number][of.open] and of.cols_low[number] != top
    )
    low, high = [*of.cols_low], [*of.cols_high]
    low[column] = of.blocked[column]
    yield of._replace(cols_low=low)
    high[column] -= 1
    yield of._replace(cols_high=high, full=of.full | 1 << column)
