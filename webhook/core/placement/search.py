"""Every order in which the pods of a game can be placed, as far as a number of states allows.

States are looked at layer by layer, one move after the other; states that are one are looked at once. Every move
brings the end closer, so a layer is never met again.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from msgspec import Struct

from webhook.core.placement.game import Game, Move, Pods, State
from webhook.core.placement.symmetry import canonical_form


class End(Struct, frozen=True):
    """A terminal state: pods of each crowd with a node, whether nothing is missing, and the moves that lead there."""

    placed: Pods
    done: bool
    moves: tuple[Move, ...]
    state: State


class Found(Struct, frozen=True):
    """What the orders come to.

    Shape: ``ends`` are all terminal states, those with the fewest moves first; of states that are one, one.
    ``chances`` has how probable each is if every step takes a waiting pod that has a node, then one of its nodes, each
    with the same probability. ``exact`` says that every order was followed; else there are no ``ends``.
    """

    ends: tuple[End, ...]
    chances: tuple[float, ...]
    exact: bool
    states: int

    @property
    def stuck(self) -> float:
        """The probability of an end in which something is missing."""
        return sum(chance for end, chance in zip(self.ends, self.chances, strict=True) if not end.done)


class _Reached(NamedTuple):
    state: State
    before: object  # the key of the state that it was first reached from
    move: Move | None


def search(game: Game, most: int, *, tick: Callable[[int], None] = lambda _: None) -> Found:
    """Follow every order until more than ``most`` states were met; ``tick`` is told how many, layer by layer."""
    canonical = canonical_form(game)
    start = game.start
    key = canonical(start)
    reached: dict[object, _Reached] = {key: _Reached(start, None, None)}
    layer: dict[object, float] = {key: 1.0}
    ends: list[tuple[object, float]] = []
    while layer:
        following: dict[object, float] = {}
        for key, chance in layer.items():
            state = reached[key].state
            placed = game.placed(state)
            moves = game.moves(state, placed)
            if not moves:
                ends.append((key, chance))
            for move, share in _shares(game.waiting(placed), moves).items():
                after = game.after(state, move)
                name = canonical(after)
                if name not in reached:
                    if len(reached) > most:
                        return Found((), (), exact=False, states=len(reached))
                    reached[name] = _Reached(after, key, move)
                following[name] = following.get(name, 0.0) + chance * share
        layer = following
        tick(len(reached))
    found = tuple(_end(game, key, reached) for key, _ in ends)
    return Found(found, tuple(chance for _, chance in ends), exact=True, states=len(reached))


def _shares(waiting: Pods, moves: list[Move]) -> Mapping[Move, float]:
    """How probable each move is: of all waiting pods that have a node, and all pods that may go, one; then a node."""
    nodes: dict[tuple[int, bool], int] = {}
    for move in moves:
        chosen = move.crowd, move.gone
        nodes[chosen] = nodes.get(chosen, 0) + move.ways
    pods = sum(1 if gone else waiting[crowd] for crowd, gone in nodes)
    return {
        move: (1 if move.gone else waiting[move.crowd]) / pods * move.ways / nodes[move.crowd, move.gone]
        for move in moves
    }


def _end(game: Game, key: object, reached: Mapping[object, _Reached]) -> End:
    state, moves = reached[key].state, []
    while (step := reached[key]).move is not None:
        moves.append(step.move)
        key = step.before
    placed = game.placed(state)
    return End(placed, game.is_done(placed), tuple(reversed(moves)), state)
