"""States of a game that are one: nothing but names of domains, or of crowds, tells them apart."""

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product
from math import factorial, prod

from webhook.core.placement.game import Game, Pods, State

# Crowds that may change places are tried in every order, up to this many orders.
_MAX_ORDERS = 24

_Domains = Sequence[tuple[int, tuple[int, ...]]]  # a number that equal domains share, and the classes of each


def canonical_form(game: Game) -> Callable[[State], object]:
    """A function that gives two states the same key only if their futures are alike but for names."""
    orders = tuple(orders_of_crowds(game))
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
    """What tells a class apart from others, its domain aside."""
    of = game.classes[number]
    counting = tuple(each.counting[number] for each in game.domain_spreads)
    turns = () if game.rollout is None else game.rollout.turns
    own = tuple(turn for turn, each in enumerate(turns) if each.place == number)
    return of.size, of.open, of.gates, of.start, of.held, counting, own


def _signature_of_domain(game: Game, domain: int) -> object:
    if domain < 0:
        return None
    spread = tuple((each.base[domain], domain in each.eligible) for each in game.domain_spreads)
    near = tuple(domain in base for each in game.crowds if each.near is not None for base in each.near.base)
    return spread, near


def orders_of_crowds(game: Game) -> Iterator[tuple[int, ...]]:
    """The orders of crowds that leave the game as it is, as long as these are few."""
    everyone = range(len(game.crowds))
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
    if game.rollout is not None or any(each.behind is not None for each in game.crowds):
        return False
    order = [*range(len(game.crowds))]
    order[one], order[other] = other, one
    return _described(game, range(len(order))) == _described(game, order)


def _described(game: Game, order: Sequence[int]) -> object:
    """All that keeps each crowd from a node, with the crowds in this order."""

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
            crowd.pods,
            crowd.in_turn,
            on_nodes(number),
            sorted(((nodes[spread], over) for spread, over in crowd.on_nodes), key=repr),
            sorted(((domains[spread], over) for spread, over in crowd.on_domains), key=repr),
            sorted((key, turned(weights)) for key, weights in crowd.apart),
            crowd.near and (crowd.near.keys, turned(crowd.near.weights), crowd.near.base, crowd.near.matches_itself),
        )
        for number, crowd in ((each, game.crowds[each]) for each in order)
    ]
