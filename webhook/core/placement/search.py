"""Search every order of placing the pods of a game, up to a number of states.

The search is breadth-first: each layer holds the states after one more move. No state occurs in two layers. States
count as the same if they differ only by the names of domains or of equal pod classes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import permutations, product
from math import factorial, prod
from typing import NamedTuple

from msgspec import Struct

from webhook.core.placement.game import Game, Move, State
from webhook.core.placement.pod_limits import Pods


class _End(Struct, frozen=True):
    """A final placement: no pod can be placed or deleted any more.

    Attributes:
        placed: The number of placed pods by class.
        done: Whether all pods are placed and all replaced pods are deleted.
        moves: The moves from the start to this placement.
        state: The pods on every node.
    """

    placed: Pods
    done: bool
    moves: tuple[Move, ...]
    state: State


class SearchResult(Struct, frozen=True):
    """The result of searching the scheduling orders of a game.

    Attributes:
        ends: The final placements of all orders without duplicates, those with the fewest moves first. Empty unless
            ``exact``.
        chances: The probability of each final placement. Each move places a random waiting pod on a random admitting
            node.
        exact: Whether every order was searched.
        states: The number of distinct placements visited by the search.
    """

    ends: tuple[_End, ...]
    chances: tuple[float, ...]
    exact: bool
    states: int

    @property
    def stuck(self) -> float:
        """The probability that an order ends with a pod left over."""
        return sum(chance for end, chance in zip(self.ends, self.chances, strict=True) if not end.done)


class _Reached(NamedTuple):
    state: State
    before: object  # The key of the state before it, on the first path found.
    move: Move | None


def search(game: Game, most: int, *, tick: Callable[[int], None] = lambda _: None) -> SearchResult:
    """Search all scheduling orders of a game, up to ``most`` states.

    ``tick`` receives the number of states after each layer.
    """
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
                        return SearchResult((), (), exact=False, states=len(reached))
                    reached[name] = _Reached(after, key, move)
                following[name] = following.get(name, 0.0) + chance * share
        layer = following
        tick(len(reached))
    ends_found = tuple(_end(game, key, reached) for key, _ in ends)
    return SearchResult(ends_found, tuple(chance for _, chance in ends), exact=True, states=len(reached))


def _shares(waiting: Pods, moves: list[Move]) -> Mapping[Move, float]:
    """Return the probability of each move, for a random pod to place or delete, and a random node."""
    nodes: dict[tuple[int, bool], int] = {}
    for move in moves:
        chosen = move.pod_class, move.gone
        nodes[chosen] = nodes.get(chosen, 0) + move.ways
    pods = sum(1 if gone else waiting[pod_class] for pod_class, gone in nodes)
    return {
        move: (1 if move.gone else waiting[move.pod_class]) / pods * move.ways / nodes[move.pod_class, move.gone]
        for move in moves
    }


def _end(game: Game, key: object, reached: Mapping[object, _Reached]) -> _End:
    state, moves = reached[key].state, []
    while (step := reached[key]).move is not None:
        moves.append(step.move)
        key = step.before
    placed = game.placed(state)
    return _End(placed, game.is_done(placed), tuple(reversed(moves)), state)


def worst_skew(game: Game, pod_class: int, ends: Iterable[_End]) -> int | None:
    """Return the worst skew of a pod class over all final states with all pods placed.

    None without such a state. In a rolling update, a constraint can count the old pods too. Then new pods avoid the
    domains of old pods, and the skew appears when the old pods are gone.
    """
    done = [end for end in ends if end.done]
    every = [counts for end in done for counts in _counts(game, pod_class, end.state)]
    return max((max(counts) - min(counts) for counts in every if counts), default=0) if done else None


def _counts(game: Game, pod_class: int, state: State) -> Iterator[list[int]]:
    """Yield the pods of the class in each eligible domain, constraint by constraint."""
    for limit in game.pod_classes[pod_class].on_domains:
        spread = game.domain_spreads[limit.spread]
        counts = dict.fromkeys(spread.eligible, 0)
        for node_class, nodes in zip(game.classes, state, strict=True):
            if (domain := node_class.domains[spread.key]) in counts:
                counts[domain] += sum(pods[pod_class] * many for pods, many in nodes)
        yield [*counts.values()]
    for limit in game.pod_classes[pod_class].on_nodes:
        on_nodes = [0] if game.node_spreads[limit.spread].closed_minimum is not None else []
        for node_class, nodes in zip(game.classes, state, strict=True):
            if node_class.held[limit.spread] is not None:
                untouched = node_class.size - sum(many for _, many in nodes)
                on_nodes += [0] * (untouched > 0) + [pods[pod_class] for pods, _ in nodes]
        yield on_nodes


# Swap equal pod classes in every order, up to this number of orders: all orders of four classes (4!). Each state is
# rewritten in every order, so more orders cost more time than the states they save.
_MAX_ORDERS = 24

_Domains = Sequence[tuple[int, tuple[int, ...]]]  # Equal domains share a number. Each has its node classes.


def canonical_form(game: Game) -> Callable[[State], object]:
    """Return a function from a game's state to its key.

    States that differ only by the names of domains or pod classes get the same key.
    """
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
            tuple(sorted((tuple([pods[number] for number in order]), many) for pods, many in class_state))
            if class_state
            else class_state
            for class_state in state
        ]
    )


def _domains(game: Game) -> _Domains:
    members: dict[int, list[int]] = {}
    for number, node_class in enumerate(game.classes):
        members.setdefault(node_class.domains[0], []).append(number)
    signatures = [repr(_signature(game, number)) for number in range(len(game.classes))]
    kinds: dict[object, int] = {}
    domains = []
    for domain, classes in members.items():
        ordered = sorted(classes, key=signatures.__getitem__)
        alike = (_signature_of_domain(game, domain), *(signatures[number] for number in ordered))
        domains.append((kinds.setdefault(alike, len(kinds)), tuple(ordered)))
    return domains


def _signature(game: Game, number: int) -> object:
    node_class = game.classes[number]
    counting = tuple(spread.counting[number] for spread in game.domain_spreads)
    turns = () if game.rollout is None else game.rollout.turns
    own = tuple(turn for turn, each in enumerate(turns) if each.place == number)
    return node_class.size, node_class.open, node_class.node_limits, node_class.start, node_class.held, counting, own


def _signature_of_domain(game: Game, domain: int) -> object:
    if domain < 0:
        return None
    spread = tuple((spread.base[domain], domain in spread.eligible) for spread in game.domain_spreads)
    near = tuple(
        domain in base for pod_class in game.pod_classes if pod_class.near is not None for base in pod_class.near.base
    )
    return spread, near


def orders_of_pod_classes(game: Game) -> Iterator[tuple[int, ...]]:
    """Yield each permutation of the pod classes that leaves the simulation unchanged.

    With too many permutations, yield only the identity.
    """
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
    if game.rollout is not None or any(pod_class.behind is not None for pod_class in game.pod_classes):
        return False
    order = [*range(len(game.pod_classes))]
    order[one], order[other] = other, one
    return _described(game, range(len(order))) == _described(game, order)


def _described(game: Game, order: Sequence[int]) -> object:
    def turned(pods: Pods) -> Pods:
        return tuple(pods[number] for number in order)

    nodes = [
        (turned(spread.weights), spread.closed_minimum, [node_class.held[number] for node_class in game.classes])
        for number, spread in enumerate(game.node_spreads)
    ]
    domains = [
        (spread.key, turned(spread.weights), spread.base, spread.eligible, spread.counting, spread.enough)
        for spread in game.domain_spreads
    ]

    def on_nodes(number: int) -> list[object]:
        limits = [each.node_limits[number] for each in game.classes]
        turned_limits = [sorted((turned(limit.weights), limit.bound) for limit in own) for own in limits]
        return [
            (each.open[number], own, each.start[number]) for each, own in zip(game.classes, turned_limits, strict=True)
        ]

    return [
        (
            pod_class.pods,
            pod_class.in_turn,
            on_nodes(number),
            sorted(((nodes[spread], over) for spread, over in pod_class.on_nodes), key=repr),
            sorted(((domains[spread], over) for spread, over in pod_class.on_domains), key=repr),
            sorted((key, turned(weights)) for key, weights in pod_class.apart),
            (near := pod_class.near) and (near.keys, turned(near.weights), near.base, near.matches_itself),
        )
        for number, pod_class in ((number, game.pod_classes[number]) for number in order)
    ]
