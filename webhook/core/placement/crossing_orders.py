"""The ends of all orders under two crossing keys: bounds (`stuck_states`), and orders that prove what can happen.

The game itself says which moves are allowed (`Game.moves`), so every order found here is possible.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from webhook.core.placement.crossing_keys import (
    At,
    Board,
    Demand,
    Levels,
    Reached,
    board_of,
    reached_levels,
    stuck_states,
)
from webhook.core.placement.game import Game, Move, State

Target = dict[At, int]  # the pods that each cell got
# Which move comes first, by the pods in its row, those in its column, and how many cells the column has.
_RANKS: tuple[Callable[[int, int, int], tuple[int, ...]], ...] = (
    lambda row, column, cells: (column, cells, row),
    lambda row, column, cells: (row, column, cells),
    lambda row, column, cells: (row, cells, column),
    lambda row, column, cells: (row + column, cells),
)


_STUCK_STATES = 6  # toward which orders are looked for
_GOALS = 4  # levels at which all pods may have a node, the highest first


class CrossingEnds(NamedTuple):
    """The bounds of all orders: each places at least ``fewest`` and at most ``most`` pods.

    Shape: ``stuck`` is an order with a pod left over, None if none was found. ``fits`` is true if an order was found
    with all pods placed.
    """

    fewest: int
    most: int
    stuck: "Order | None"
    fits: bool


def crossing_ends(game: Game, *, work: int, moves: int) -> CrossingEnds | None:
    """The ends of a game with two crossing keys; None for any other game, and where bounds take too much work.

    Shape: ``work`` limits the columns checked, ``moves`` the moves of all orders.
    """
    board = board_of(game, work)
    reached = None if board is None else reached_levels(board)
    if board is None or reached is None:
        return None
    wanted = game.pod_classes[0].pods
    most, orders = min(wanted, reached.most), Orders(board, moves)
    fewest, stuck = wanted, None
    for pods, demand in islice(stuck_states(board, reached), _STUCK_STATES):
        fewest = min(fewest, pods)  # the first has the fewest
        order = demand and orders.toward(reached.way(demand.levels), pods, demand)
        if order and not game.moves(order.state):
            stuck = order
            break
    fits = fewest == wanted or (most == wanted and _fits(orders, reached))
    return CrossingEnds(min(fewest, most), most, stuck, fits=fits)


def never_stuck(game: Game, work: int) -> bool:
    """Whether every order places all pods of a game with two crossing keys; False also where that is not known."""
    board = board_of(game, work)
    reached = None if board is None else reached_levels(board)
    return board is not None and reached is not None and next(stuck_states(board, reached), None) is None


def _fits(orders: "Orders", reached: Reached) -> bool:
    wanted = orders.board.game.pod_classes[0].pods
    level = orders.level()
    if level is not None and len(level.moves) == wanted:
        return True
    goals = sorted((levels for levels, (low, high) in reached.pods.items() if low <= wanted <= high), reverse=True)
    return any(orders.toward(reached.way(goal), wanted) is not None for goal in goals[:_GOALS])


class Order(NamedTuple):
    """Moves from the start, and where they lead."""

    state: State
    moves: tuple[Move, ...]
    target: Target


class Orders:
    """Orders on a board.

    Shape: ``moves`` may still be tried; a move counts once per 20 classes.
    """

    def __init__(self, board: Board, moves: int) -> None:
        self.board, self.moves = board, moves
        self._cost = 1 + len(board.game.classes) // 20
        self._begin = Order(board.game.start, (), {})

    def level(self) -> Order | None:
        """Try orders that fill the emptiest lines first, and return the one with the most pods placed."""
        host = max(self.board.cells)
        found = [order for rank in _RANKS if (order := self._follow(self._begin, rank, host)) is not None]
        return max(found, key=lambda each: len(each.moves), default=None)

    def toward(self, way: Sequence[Levels], pods: int, end: Demand | None = None) -> Order | None:
        """An order to a state with so many pods at the last of these levels, or to one that meets the demand."""
        target = None if end is None else filled(end, pods)
        if end is not None and target is None:
            return None
        if target is not None and (order := self._hop(self._begin, target, way[-1][0])) is not None:
            return order
        at = self._begin
        for before, after in pairwise(way):
            between = self._within(self.board.between(before, after), at.target, target)
            totals = between and self.board.totals(between)
            step = filled(between, totals[0]) if between and totals else None
            at = (step and self._hop(at, step, after[0])) or at
        if target is None:
            last = self._within(self.board.between(way[-1], way[-1]), at.target, None)
            totals = last and self.board.totals(last)
            target = filled(last, pods) if last and totals and totals[0] <= pods <= totals[1] else None
        return None if target is None else self._hop(at, target, way[-1][0])

    def _within(self, of: Demand, least: Target, most: Target | None) -> Demand | None:
        """The demand with at least and at most these pods in each cell; None where both cannot be."""
        rows, columns = range(len(of.rows_low)), range(len(of.cols_low))
        low = [[max(least.get((row, each), 0), of.cells.least[each][1 << row]) for row in rows] for each in columns]
        high = [[of.cells.most[each][1 << row] for row in rows] for each in columns]
        if most is not None:
            high = [[min(high[each][row], most.get((row, each), 0)) for row in rows] for each in columns]
        if any(low[each][row] > high[each][row] for row in rows for each in columns):
            return None
        return of._replace(cells=of.cells.with_bounds(high, low))

    def _hop(self, at: Order, target: Target, host: int) -> Order | None:
        for rank in _RANKS:
            found = self._follow(at, rank, host, target)
            if found is not None and found.target == target:
                return found
        return None

    def _follow(
        self, at: Order, rank: Callable[[int, int, int], tuple[int, ...]], host: int, target: Target | None = None
    ) -> Order | None:
        """Move until no move, or none toward the target, is left. None if that takes too many moves.

        Hosts below the level ``host`` are filled up to it, the emptiest first. Above it the fullest come first, so that
        another one stays there.
        """
        board, state, moves, there = self.board, at.state, [*at.moves], dict(at.target)
        rows, cols = [*board.rows.base], [*board.cols.base]
        for (row, column), pods in there.items():
            rows[row] += pods
            cols[column] += pods

        def key(move: Move) -> tuple[int, ...]:
            row, column = board.at[move.number]
            held = board.held(move.number) + move.before[0]
            return (*rank(rows[row], cols[column], board.crossed[column]), held if held < host else -held, move.number)

        while self.moves > 0:
            self.moves -= self._cost
            allowed = board.game.moves(state)
            if target is not None:
                allowed = [
                    each
                    for each in allowed
                    if there.get(board.at[each.number], 0) < target.get(board.at[each.number], 0)
                ]
            if not allowed:
                return Order(state, tuple(moves), there)
            move = min(allowed, key=key)
            row, column = board.at[move.number]
            rows[row], cols[column] = rows[row] + 1, cols[column] + 1
            there[row, column] = there.get((row, column), 0) + 1
            state = board.game.after(state, move)
            moves.append(move)
        return None


def filled(of: Demand, pods: int) -> Target | None:
    """The pods of each cell in a state that meets the demand; None where there is none.

    Shape: a flow from a source through rows and columns to a sink, with the lower bounds met first.
    """
    rows, columns = len(of.rows_low), len(of.cols_low)
    source, sink, supply, need = range(rows + columns, rows + columns + 4)
    left: list[dict[int, int]] = [{} for _ in range(rows + columns + 4)]
    least: dict[At, int] = {}

    def arc(tail: int, head: int, low: int, high: int) -> None:
        left[tail][head] = high - low
        left[head].setdefault(tail, 0)
        for at, into in ((supply, head), (tail, need)):
            left[at][into] = left[at].get(into, 0) + low
            left[into].setdefault(at, 0)

    for row in range(rows):
        arc(source, row, of.rows_low[row], of.rows_high[row])
    for column in range(columns):
        arc(rows + column, sink, of.cols_low[column], min(pods, of.cols_high[column]))
        for row in range(rows):
            most, low = of.cells.most[column][1 << row], of.cells.least[column][1 << row]
            if most:
                is_full = of.full >> column & of.open >> row & 1
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
    """Send more along a shortest path with room left; False where there is none."""
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
