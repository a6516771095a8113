"""Every order in which the pods of a game can be placed, up to a number of states.

The search goes layer by layer, one move after the other. Every move brings the end closer, so no layer comes again.
States that differ only in names of domains, or of equal pod classes, count as one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import permutations, product
from math import factorial, prod
from typing import NamedTuple

from msgspec import Struct

from webhook.core.placement.game import Game, Move, Pods, State


class End(Struct, frozen=True):
    """A terminal state: the placed pods by class, whether nothing is missing, and the moves that lead there."""

    placed: Pods
    done: bool
    moves: tuple[Move, ...]
    state: State


class Found(Struct, frozen=True):
    """What the orders come to.

    ``ends`` are all terminal states, those with the fewest moves first, equal ones once; none unless ``exact``.
    ``chances`` has the probability of each if every step takes a waiting pod that has a node, then one of its nodes,
    all equally.
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
        chosen = move.pod_class, move.gone
        nodes[chosen] = nodes.get(chosen, 0) + move.ways
    pods = sum(1 if gone else waiting[pod_class] for pod_class, gone in nodes)
    return {
        move: (1 if move.gone else waiting[move.pod_class]) / pods * move.ways / nodes[move.pod_class, move.gone]
        for move in moves
    }


def _end(game: Game, key: object, reached: Mapping[object, _Reached]) -> End:
    state, moves = reached[key].state, []
    while (step := reached[key]).move is not None:
        moves.append(step.move)
        key = step.before
    placed = game.placed(state)
    return End(placed, game.is_done(placed), tuple(reversed(moves)), state)


def worst_skew(game: Game, pod_class: int, ends: Iterable[End]) -> int | None:
    """The worst skew of a pod class over the ends where nothing is missing; None if no order gets there.

    Where a constraint counts both revisions, new pods avoid the domains of old ones, and nobody moves them later.
    """
    done = [end for end in ends if end.done]
    counts = [each for end in done for each in _counts(game, pod_class, end.state)]
    return max((max(each) - min(each) for each in counts if each), default=0) if done else None


def _counts(game: Game, pod_class: int, state: State) -> Iterator[list[int]]:
    """The pods of the class in each domain that counts for the minimum, constraint by constraint."""
    for limit in game.pod_classes[pod_class].on_domains:
        spread = game.domain_spreads[limit.spread]
        found = dict.fromkeys(spread.eligible, 0)
        for of, nodes in zip(game.classes, state, strict=True):
            if (domain := of.domains[spread.key]) in found:
                found[domain] += sum(pods[pod_class] * many for pods, many in nodes)
        yield [*found.values()]
    for limit in game.pod_classes[pod_class].on_nodes:
        on_nodes = [0] if game.node_spreads[limit.spread].floor is not None else []
        for of, nodes in zip(game.classes, state, strict=True):
            if of.held[limit.spread] is not None:
                untouched = of.size - sum(many for _, many in nodes)
                on_nodes += [0] * (untouched > 0) + [pods[pod_class] for pods, _ in nodes]
        yield on_nodes


# Pod classes that may change places are tried in every order, up to this many orders.
_MAX_ORDERS = 24

_Domains = Sequence[tuple[int, tuple[int, ...]]]  # a number that equal domains share, and the classes of each


def canonical_form(game: Game) -> Callable[[State], object]:
    """A function that gives two states the same key only if their futures differ in nothing but names."""
    orders = tuple(orders_of_pod_classes(game))
    domains = _domains(game) if game.keys == 1 else None

    def by_domain(state: State) -> object:
        if domains is None:
            return state
        return tuple(sorted((kind, tuple([state[each] for each in classes])) for kind, classes in domains))

    if len(orders) < 2:
        return by_domain
    return lambda state: min(by_domain(_reordered(state, order)) for order in orders)  # type: ignore[type-var]


def _reordered(state: State, order: Sequence[int]) -> State:
    return tuple(
        [
            tuple(sorted((tuple([pods[each] for each in order]), many) for pods, many in of)) if of else of
            for of in state
        ]
    )


def _domains(game: Game) -> _Domains:
    members: dict[int, list[int]] = {}
    for number, of in enumerate(game.classes):
        members.setdefault(of.domains[0], []).append(number)
    signatures = [repr(_signature(game, number)) for number in range(len(game.classes))]
    kinds: dict[object, int] = {}
    found = []
    for domain, classes in members.items():
        ordered = sorted(classes, key=signatures.__getitem__)
        alike = (_signature_of_domain(game, domain), *(signatures[number] for number in ordered))
        found.append((kinds.setdefault(alike, len(kinds)), tuple(ordered)))
    return found


def _signature(game: Game, number: int) -> object:
    of = game.classes[number]
    counting = tuple(each.counting[number] for each in game.domain_spreads)
    turns = () if game.rollout is None else game.rollout.turns
    own = tuple(turn for turn, each in enumerate(turns) if each.place == number)
    return of.size, of.open, of.gates, of.start, of.held, counting, own


def _signature_of_domain(game: Game, domain: int) -> object:
    if domain < 0:
        return None
    spread = tuple((each.base[domain], domain in each.eligible) for each in game.domain_spreads)
    near = tuple(domain in base for each in game.pod_classes if each.near is not None for base in each.near.base)
    return spread, near


def orders_of_pod_classes(game: Game) -> Iterator[tuple[int, ...]]:
    """The orders of pod classes that leave the game as it is, if these are few."""
    everyone = range(len(game.pod_classes))
    groups: list[list[int]] = []
    for number in everyone:
        home = next((group for group in groups if _are_alike(game, group[0], number)), None)
        if home is None:
            groups.append([number])
        else:
            home.append(number)
    if prod(factorial(len(group)) for group in groups) > _MAX_ORDERS:
        groups = [[number] for number in everyone]
    for chosen in product(*map(permutations, groups)):
        order = [*everyone]
        for group, members in zip(groups, chosen, strict=True):
            for number, member in zip(group, members, strict=True):
                order[number] = member
        yield tuple(order)


def _are_alike(game: Game, one: int, other: int) -> bool:
    if game.rollout is not None or any(each.behind is not None for each in game.pod_classes):
        return False
    order = [*range(len(game.pod_classes))]
    order[one], order[other] = other, one
    return _described(game, range(len(order))) == _described(game, order)


def _described(game: Game, order: Sequence[int]) -> object:
    """All that keeps each pod class from a node, in this order of classes."""

    def turned(pods: Pods) -> Pods:
        return tuple(pods[each] for each in order)

    nodes = [
        (turned(each.weights), each.floor, [of.held[number] for of in game.classes])
        for number, each in enumerate(game.node_spreads)
    ]
    domains = [
        (each.key, turned(each.weights), each.base, each.eligible, each.counting, each.enough)
        for each in game.domain_spreads
    ]

    def on_nodes(number: int) -> list[object]:
        gates = [sorted((turned(gate.weights), gate.bound) for gate in of.gates[number]) for of in game.classes]
        return [(of.open[number], gate, of.start[number]) for of, gate in zip(game.classes, gates, strict=True)]

    return [
        (
            pod_class.pods,
            pod_class.in_turn,
            on_nodes(number),
            sorted(((nodes[spread], over) for spread, over in pod_class.on_nodes), key=repr),
            sorted(((domains[spread], over) for spread, over in pod_class.on_domains), key=repr),
            sorted((key, turned(weights)) for key, weights in pod_class.apart),
            pod_class.near
            and (
                pod_class.near.keys,
                turned(pod_class.near.weights),
                pod_class.near.base,
                pod_class.near.matches_itself,
            ),
        )
        for number, pod_class in ((each, game.pod_classes[each]) for each in order)
    ]
