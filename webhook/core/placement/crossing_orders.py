"""Bound the number of placed pods under two crossing topology keys.

Lower and upper bounds hold for every placement order. Lower bounds come from `stuck_states`. Example orders prove that
pods can be left over, or that all pods can fit. They use only moves of the game (`Game.moves`), so they are possible.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from webhook.core.placement.crossing_keys import ReachableMinima, reachable_minima, stuck_states
from webhook.core.placement.game import Game, Move, State
from webhook.core.placement.grid import Demand, Grid, Minima, Position, grid_of

_Target = dict[Position, int]  # The new pods of each cell.
# The sort keys of moves: the pods in its row, the pods in its column, the cells of the column.
_RANKS: tuple[Callable[[int, int, int], tuple[int, ...]], ...] = (
    lambda row, column, cells: (column, cells, row),
    lambda row, column, cells: (row, column, cells),
    lambda row, column, cells: (row, cells, column),
    lambda row, column, cells: (row + column, cells),
)


_STUCK_STATES = 6  # Look for an order to this number of stuck states.
_GOALS = 4  # Look for an order placing all pods at this number of minima, the highest first.


class CrossingEnds(NamedTuple):
    """Bounds on all orders: each order places at least ``fewest`` and at most ``most`` pods.

    Attributes:
        stuck: An order that leaves a pod without a node. None if not found.
        fits: Whether an order placing all pods was found.
    """

    fewest: int
    most: int
    stuck: "_Order | None"
    fits: bool


def crossing_ends(game: Game, *, work: int, moves: int) -> CrossingEnds | None:
    """Bound the number of placed pods in a game with two crossing topology keys.

    None for other games, or after too much work. ``work`` is the number of grid columns to check at most. ``moves`` is
    the number of pod placements to try at most, in all orders together.
    """
    grid = grid_of(game, work)
    reached = None if grid is None else reachable_minima(grid)
    if grid is None or reached is None:
        return None
    wanted = game.pod_classes[0].pods
    most, orders = min(wanted, reached.most), _Orders(grid, moves)
    fewest, stuck = wanted, None
    for pods, demand in islice(stuck_states(grid, reached), _STUCK_STATES):
        fewest = min(fewest, pods)  # The first one has the fewest.
        order = demand and orders.toward(reached.way(demand.minima), pods, demand)
        if order and not game.moves(order.state):
            stuck = order
            break
    fits = fewest == wanted or (most == wanted and _fits(orders, reached))
    return CrossingEnds(min(fewest, most), most, stuck, fits=fits)


def never_stuck(game: Game, work: int) -> bool:
    """Whether every order is known to place all pods of a game with two crossing keys."""
    grid = grid_of(game, work)
    reached = None if grid is None else reachable_minima(grid)
    return grid is not None and reached is not None and next(stuck_states(grid, reached), None) is None


def _fits(orders: "_Orders", reached: ReachableMinima) -> bool:
    wanted = orders.grid.game.pod_classes[0].pods
    even = orders.fill_emptiest()
    if even is not None and len(even.moves) == wanted:
        return True
    goals = sorted((minima for minima, (low, high) in reached.pods.items() if low <= wanted <= high), reverse=True)
    return any(orders.toward(reached.way(goal), wanted) is not None for goal in goals[:_GOALS])


class _Order(NamedTuple):
    """An order of placing pods.

    Attributes:
        state: The pods on every node after the last move.
        moves: The placements of single pods, in order.
        target: The number of placed pods in each cell of the grid.
    """

    state: State
    moves: tuple[Move, ...]
    target: _Target


class _Orders:
    """Searches orders of placing pods on a grid (see `grid`). Gives up after ``moves`` moves in all orders together."""

    def __init__(self, grid: Grid, moves: int) -> None:
        self.grid, self.moves = grid, moves
        self._begin = _Order(grid.game.start, (), {})

    def fill_emptiest(self) -> _Order | None:
        """Return the longest found order. Each tried order always fills the emptiest rows or columns first."""
        host = max(self.grid.cells)
        orders = [order for rank in _RANKS if (order := self._follow(self._begin, rank, host)) is not None]
        return max(orders, key=lambda each: len(each.moves), default=None)

    def toward(self, way: Sequence[Minima], pods: int, end: Demand | None = None) -> _Order | None:
        """Find an order through the given minima to a final state with ``pods`` pods.

        None if not found. The final state meets the demand ``end``, if ``end`` is given.
        """
        target = None if end is None else _filled(end, pods)
        if end is not None and target is None:
            return None
        if target is not None and (order := self._hop(self._begin, target, way[-1][0])) is not None:
            return order
        at = self._begin
        for before, after in pairwise(way):
            between = self._within(self.grid.between(before, after), at.target, target)
            totals = between and self.grid.totals(between)
            step = _filled(between, totals[0]) if between and totals else None
            at = (step and self._hop(at, step, after[0])) or at
        if target is None:
            last = self._within(self.grid.between(way[-1], way[-1]), at.target, None)
            totals = last and self.grid.totals(last)
            target = _filled(last, pods) if last and totals and totals[0] <= pods <= totals[1] else None
        return None if target is None else self._hop(at, target, way[-1][0])

    def _within(self, demand: Demand, least: _Target, most: _Target | None) -> Demand | None:
        """Tighten the demand's bounds on the pods of each cell to ``least`` and ``most``.

        None if a lower bound is above its upper bound.
        """
        rows, columns = range(len(demand.rows_low)), range(len(demand.cols_low))
        low = [
            [max(least.get((row, column), 0), demand.cells.least[column][1 << row]) for row in rows]
            for column in columns
        ]
        high = [[demand.cells.most[column][1 << row] for row in rows] for column in columns]
        if most is not None:
            high = [[min(high[column][row], most.get((row, column), 0)) for row in rows] for column in columns]
        if any(low[column][row] > high[column][row] for row in rows for column in columns):
            return None
        return demand._replace(cells=demand.cells.with_bounds(high, low))

    def _hop(self, at: _Order, target: _Target, host: int) -> _Order | None:
        for rank in _RANKS:
            order = self._follow(at, rank, host, target)
            if order is not None and order.target == target:
                return order
        return None

    def _follow(
        self, at: _Order, rank: Callable[[int, int, int], tuple[int, ...]], host: int, target: _Target | None = None
    ) -> _Order | None:
        """Extend the order until no move is left, or up to the pods of ``target``.

        None after too many moves. ``rank`` sorts the hosts first. Of hosts with equal rank and fewer than ``host``
        pods, the emptiest is filled first. Of the other hosts with equal rank, the fullest is filled first, so that
        another host stays at the minimum.
        """
        grid, state, moves, there = self.grid, at.state, [*at.moves], dict(at.target)
        rows, cols = [*grid.rows.base], [*grid.cols.base]
        for (row, column), pods in there.items():
            rows[row] += pods
            cols[column] += pods

        def key(move: Move) -> tuple[int, ...]:
            row, column = grid.at[move.number]
            held = grid.held(move.number) + move.before[0]
            return (*rank(rows[row], cols[column], grid.crossed[column]), held if held < host else -held, move.number)

        while self.moves > 0:
            self.moves -= grid.game.cost
            allowed = grid.game.moves(state)
            if target is not None:
                allowed = [
                    move for move in allowed if there.get(grid.at[move.number], 0) < target.get(grid.at[move.number], 0)
                ]
            if not allowed:
                return _Order(state, tuple(moves), there)
            move = min(allowed, key=key)
            row, column = grid.at[move.number]
            rows[row], cols[column] = rows[row] + 1, cols[column] + 1
            there[row, column] = there.get((row, column), 0) + 1
            state = grid.game.after(state, move)
            moves.append(move)
        return None


def _filled(demand: Demand, pods: int) -> _Target | None:
    """Return the number of pods for each cell of the grid. None if impossible.

    The numbers add up to ``pods``. They are within the bounds of ``demand`` for each row, column and cell. They are
    computed as a network flow from a source to a sink. The flow goes through the rows, then through the columns. Lower
    bounds are satisfied first.
    """
    rows, columns = len(demand.rows_low), len(demand.cols_low)
    source, sink, supply, need = range(rows + columns, rows + columns + 4)
    left: list[dict[int, int]] = [{} for _ in range(rows + columns + 4)]
    least: dict[Position, int] = {}

    def arc(tail: int, head: int, low: int, high: int) -> None:
        left[tail][head] = high - low
        left[head].setdefault(tail, 0)
        for at, into in ((supply, head), (tail, need)):
            left[at][into] = left[at].get(into, 0) + low
            left[into].setdefault(at, 0)

    for row in range(rows):
        arc(source, row, demand.rows_low[row], demand.rows_high[row])
    for column in range(columns):
        arc(rows + column, sink, demand.cols_low[column], min(pods, demand.cols_high[column]))
        for row in range(rows):
            most, low = demand.cells.most[column][1 << row], demand.cells.least[column][1 << row]
            if most:
                is_full = demand.full >> column & demand.open >> row & 1
                least[row, column] = most if is_full else low
                arc(row, rows + column, least[row, column], most)
    arc(sink, source, pods, pods)
    while _augment(left, supply, need):
        pass
    if any(left[supply].values()):
        return None
    numbers = {(row, column): low + left[rows + column][row] for (row, column), low in least.items()}
    return {at: many for at, many in numbers.items() if many}


def _augment(left: Sequence[dict[int, int]], start: int, end: int) -> bool:
    """Increase the flow from ``start`` to ``end`` along a shortest path with unused capacity.

    Return False without such a path.
    """
    came, queue = {start: start}, deque([start])
    while queue and end not in came:
        at = queue.popleft()
        for head, room in left[at].items():
            if room > 0 and head not in came:
                came[head] = at
                queue.append(head)
    if end not in came:
        return False
    path, at = [], end
    while at != start:
        path.append((came[at], at))
        at = came[at]
    most = min(left[tail][head] for tail, head in path)
    for tail, head in path:
        left[tail][head] -= most
        left[head][tail] += most
    return True
