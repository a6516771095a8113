"""Bounds on the ends of all orders for equal pods under two crossing keys (`crossing_keys`).

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

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush
from itertools import count, product
from typing import NamedTuple

from msgspec import Struct

from webhook.core.placement.crossing_keys import Board, Demand, Levels


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
