"""Bounds on the placed pods of all orders under two crossing topology keys.

The nodes form a grid, as in `grid`. A row or a column (a line) is a domain of one key. A cell is the nodes of one
row and one column. A minimum is the global minimum of one topology key. The top of a line is its highest allowed number
of pods.

Upper bound: Each pod raises a minimum by at most one. When a minimum rises, every line has at least the new minimum and
at most its old top. `reachable_minima` only follows steps with such a distribution of pods. The distribution with the
most pods at reachable minima is the upper bound.

Lower bound: A line at its top is blocked. Some pod stays Pending only in a stuck state: every cell is full, or its row
or its column is blocked. `stuck_states` searches for the stuck states with the fewest pods (branch and bound, best
first). The search fixes the minima, and a row and a column at these minima. Then it decides for each row whether the
row is blocked. A column with a cell in an open row must be blocked, or these cells must be full. Without a stuck state
every order places all pods.

Possibly no order leads to a stuck state. So the result is a bound and not a proof. `crossing_orders` searches for an
order to the stuck state.
"""

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush
from itertools import count, product
from typing import NamedTuple

from msgspec import Struct

from webhook.core.placement.grid import Demand, Grid, Minima


class ReachableMinima(Struct, frozen=True):
    """The reachable global minima of two crossing topology keys (see `grid`).

    A key of both mappings has three global minima: of hostname, of the first key (rows) and of the second key
    (columns).

    Attributes:
        before: The preceding three minima. None for the start.
        pods: The fewest and the most placed pods at these minima.
    """

    before: Mapping[Minima, Minima | None]
    pods: Mapping[Minima, tuple[int, int]]

    @property
    def most(self) -> int:
        """An upper bound on the pods placed by any order."""
        return max((most for _, most in self.pods.values()), default=0)

    def way(self, minima: Minima) -> list[Minima]:
        """Return the steps from the start to these global minima, both included."""
        way, at = [minima], self.before[minima]
        while at is not None:
            way.append(at)
            at = self.before[at]
        return way[::-1]


def reachable_minima(grid: Grid) -> ReachableMinima | None:
    """Find the combinations of global minima that an order can reach on the grid.

    None if the search takes too much work.
    """
    possible = [*grid.cells], [*grid.rows.minima(grid.wanted)], [*grid.cols.minima(grid.wanted)]
    start = possible[0][0], possible[1][0], possible[2][0]
    before: dict[Minima, Minima | None] = {start: None}
    left, pods = [start], dict[Minima, tuple[int, int]]()
    while left:
        at = left.pop()
        totals = grid.totals(grid.between(at, at))
        if totals is None:
            continue
        pods[at] = totals
        for rise in product((0, 1), repeat=3):
            after = at[0] + rise[0], at[1] + rise[1], at[2] + rise[2]
            if after in before or any(minimum > known[-1] for minimum, known in zip(after, possible, strict=True)):
                continue
            if grid.work < 0:
                return None
            if grid.totals(grid.between(at, after)) is not None:
                before[after] = at
                left.append(after)
    return ReachableMinima(before, pods)


class _StuckBound(NamedTuple):
    """A lower bound on the number of placed pods in a set of stuck states.

    Attributes:
        pods: The lower bound.
        demand: The bounds on the rows, columns and cells in these states. None if the search ended before it decided
            every row and column.
    """

    pods: int
    demand: Demand | None


def stuck_states(grid: Grid, reached: ReachableMinima) -> Iterator[_StuckBound]:
    """Yield lower bounds on the placed pods in stuck states, the lowest first.

    In a stuck state, pods wait and none of them can be placed. Only states with fewer placed pods than wanted are
    considered.
    """
    tie = count()
    heap: list[tuple[int, int, Minima | Demand, bool]] = [
        (fewest, next(tie), minima, False) for minima, (fewest, _) in sorted(reached.pods.items())
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


def _with_holders(grid: Grid, minima: Minima) -> Iterator[Demand]:
    """Yield bounds (`Demand`) for each row and column that can keep the global minima.

    The row has the fewest pods of all rows, and the column the fewest of all columns. Neither of them is blocked, so
    their common cell is full or does not exist.
    """
    at = grid.between(minima, minima)
    undecided = sum(1 << row for row, base in enumerate(grid.rows.base) if base < minima[1] + grid.rows.max_skew)
    for row, column in product(grid.rows.holders(minima[1]), grid.cols.holders(minima[2])):
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
    """Raise the fewest pods of each column with cells in open rows.

    Cells in open rows must be full. A column is blocked if its cells would then hold at least the column's top. The
    second value is whether any row, or any such column, is still undecided.
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
    """Yield two demands for the next undecided row: blocked, and open.

    Without an undecided row, yield two demands for the next undecided column: one with a blocked column, one with full
    cells in open rows.
    """
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
