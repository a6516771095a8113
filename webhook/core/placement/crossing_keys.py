"""Bounds on the placed pods of all orders under two crossing topology keys (see `grid`).

Upper bound: Each pod raises a level by at most one. When a level rises, every line has at least the new level and at
most its old top. `reachable_levels` only follows steps with such a state. The state with the most pods at reachable
levels is the upper bound.

Lower bound: A line at its top is blocked. An order leaves a pod over only in a stuck state: every cell is full, or its
row or its column is blocked. `stuck_states` searches for the stuck states with the fewest pods (branch and bound, best
first). It fixes the levels, and a row and a column at these levels. Then it decides for each row whether the row is
blocked. A column with a cell in an open row must be blocked, or these cells must be full. Without a stuck state every
order places all pods.

No order may lead to a possible state. A stuck state is therefore a bound and not a proof. `crossing_orders` looks for
an order to it.
"""

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush
from itertools import count, product
from typing import NamedTuple

from msgspec import Struct

from webhook.core.placement.grid import Demand, Grid, Levels


class ReachableLevels(Struct, frozen=True):
    """The reachable levels of a grid.

    Attributes:
        before: For each reachable level, the levels one step earlier. None for the start.
        pods: For each reachable level, the fewest and the most pods of its states.
    """

    before: Mapping[Levels, Levels | None]
    pods: Mapping[Levels, tuple[int, int]]

    @property
    def most(self) -> int:
        """An upper bound on the pods placed by any order."""
        return max((most for _, most in self.pods.values()), default=0)

    def way(self, levels: Levels) -> list[Levels]:
        """Return the levels on the way from the start to ``levels``."""
        way, at = [levels], self.before[levels]
        while at is not None:
            way.append(at)
            at = self.before[at]
        return way[::-1]


def reachable_levels(grid: Grid) -> ReachableLevels | None:
    """Find all reachable levels. None if the search takes too much work."""
    possible = [*grid.cells], [*grid.rows.levels(grid.wanted)], [*grid.cols.levels(grid.wanted)]
    start = possible[0][0], possible[1][0], possible[2][0]
    before: dict[Levels, Levels | None] = {start: None}
    left, pods = [start], dict[Levels, tuple[int, int]]()
    while left:
        at = left.pop()
        totals = grid.totals(grid.between(at, at))
        if totals is None:
            continue
        pods[at] = totals
        for rise in product((0, 1), repeat=3):
            after = at[0] + rise[0], at[1] + rise[1], at[2] + rise[2]
            if after in before or any(level > levels[-1] for level, levels in zip(after, possible, strict=True)):
                continue
            if grid.work < 0:
                return None
            if grid.totals(grid.between(at, after)) is not None:
                before[after] = at
                left.append(after)
    return ReachableLevels(before, pods)


class _StuckBound(NamedTuple):
    """A lower bound on the pods of some stuck states. ``demand`` describes these states, or is None if undecided."""

    pods: int
    demand: Demand | None


def stuck_states(grid: Grid, reached: ReachableLevels) -> Iterator[_StuckBound]:
    """Yield stuck states with fewer pods than wanted, the states with the fewest pods first."""
    tie = count()
    heap: list[tuple[int, int, Levels | Demand, bool]] = [
        (fewest, next(tie), levels, False) for levels, (fewest, _) in sorted(reached.pods.items())
    ]
    heap.sort()
    while heap and heap[0][0] < grid.wanted:
        pods, _, at, is_decided = heappop(heap)
        if is_decided or grid.work < 0:
            yield _StuckBound(pods, at if isinstance(at, Demand) and is_decided else None)
            if grid.work < 0:
                return
            continue
        for each in _decided(at) if isinstance(at, Demand) else _with_holders(grid, at):
            settled = _with_columns(grid, each)
            totals = None if settled is None else grid.totals(settled[0])
            if settled is not None and totals is not None and totals[0] <= settled[0].cells.every:
                demand, is_open = settled
                heappush(heap, (totals[0], next(tie), demand, not is_open))


def _with_holders(grid: Grid, levels: Levels) -> Iterator[Demand]:
    """Choose a row and a column that stay at the levels.

    Neither of them is blocked, so their common cell is full or does not exist.
    """
    at = grid.between(levels, levels)
    undecided = sum(1 << row for row, base in enumerate(grid.rows.base) if base < levels[1] + grid.rows.max_skew)
    for row, column in product(grid.rows.holders(levels[1]), grid.cols.holders(levels[2])):
        low, high, tops, left = [*at.rows_low], [*at.rows_high], [*at.cols_high], undecided
        if row is not None:
            high[row] = low[row]
            left &= ~(1 << row)
        if column is not None:
            tops[column] = at.cols_low[column]
            # A cell with room left must be in a blocked row.
            fixed = [each for each in range(len(low)) if at.cells.most[column][1 << each] > tops[column]]
            if row in fixed:
                continue
            for filled_row in fixed:
                low[filled_row] = high[filled_row]
                left &= ~(1 << filled_row)
        yield at._replace(
            rows_low=low,
            rows_high=high,
            cols_high=tops,
            open=0 if row is None else 1 << row,
            full=0 if column is None else 1 << column,
            undecided=left,
        )


def _with_columns(grid: Grid, demand: Demand) -> tuple[Demand, bool] | None:
    """Require more pods in the columns with cells in open rows. None if impossible.

    A column that would reach its top with these cells full is blocked. The second value is whether another such column
    is undecided.
    """
    low, is_open = [*demand.cols_low], demand.undecided > 0
    for column, top in enumerate(demand.blocked):
        inside = demand.cells.most[column][demand.open]
        if demand.full >> column & 1 or not inside or low[column] == top:
            continue
        filled = inside + demand.cells.least[column][grid.every & ~demand.open]
        if filled >= top:
            low[column] = top
        else:
            low[column] = max(low[column], filled)
            is_open = True
    return demand._replace(cols_low=low), is_open


def _decided(demand: Demand) -> Iterator[Demand]:
    """Yield both decisions for another row (blocked or open), or for another column (blocked or full)."""
    if demand.undecided:
        bit = demand.undecided & -demand.undecided
        row, left = bit.bit_length() - 1, demand.undecided ^ bit
        low, high = [*demand.rows_low], [*demand.rows_high]
        low[row] = high[row]
        yield demand._replace(rows_low=low, undecided=left)
        high[row] -= 1
        yield demand._replace(rows_high=high, undecided=left, open=demand.open | bit)
        return
    column = next(
        number
        for number, top in enumerate(demand.blocked)
        if not demand.full >> number & 1 and demand.cells.most[number][demand.open] and demand.cols_low[number] != top
    )
    low, high = [*demand.cols_low], [*demand.cols_high]
    low[column] = demand.blocked[column]
    yield demand._replace(cols_low=low)
    high[column] -= 1
    yield demand._replace(cols_high=high, full=demand.full | 1 << column)
