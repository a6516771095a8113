"""Formulas for the number of placed pods, if every order places the same number.

They apply to equal pods under a single constraint that counts these pods (`bounds.addable`). They also apply to a
constraint on zones together with a constraint on hosts with maxSkew 1. With a larger maxSkew on hosts, a few numbers
describe all possible final placements (`possible_ends`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from webhook.core.placement.classes import NodeClass
from webhook.core.placement.game import Game
from webhook.core.placement.pod_limits import SpreadLimit
from webhook.core.placement.proofs.bounds import DomainState, addable
from webhook.core.placement.proofs.bounds import SkewLimit as Bound
from webhook.core.placement.proofs.host_bounds import PossibleEnds, Zone, ends_on_hosts


def same_in_every_order(game: Game) -> int | None:
    """Return the number of pods placed in every order. None if orders differ, or if unknown."""
    if len(game.pod_classes) != 1 or game.rollout is not None:
        return None
    (pod_class,) = game.pod_classes
    if pod_class.apart or pod_class.near is not None:
        return None
    most: int | None
    match len(pod_class.on_domains), len(pod_class.on_nodes):
        case 0, 0:
            most = _room(game.classes)
        case 1, 0:
            most = _over_domains(game, pod_class.on_domains[0])
        case 0, 1:
            most = _over_nodes(game, pod_class.on_nodes[0])
        case 1, 1:
            ends = possible_ends(game)
            if ends is None or len(ends.stuck) + ends.fits > 1:
                return None
            most = None if ends.fits else ends.stuck[0]
        case _:
            return None
    return pod_class.pods if most is None else min(pod_class.pods, most)


def takes_every_pod(game: Game) -> bool:
    """Whether each new pod of a rolling update is known to find a node in any order.

    This holds under a single constraint, if each eligible domain has room for all old and new pods. Then the domain
    with the fewest pods always admits a pod.
    """
    if game.rollout is None or (game.rollout.turns and len(game.pod_classes) > 2):
        return False
    new = 1 - game.rollout.old
    pod_class = game.pod_classes[new]
    every = sum(node_class.size * sum(node_class.start) for node_class in game.classes)
    limits = (*pod_class.on_nodes, *pod_class.on_domains)
    if pod_class.apart or pod_class.near is not None or len(limits) > 1 or any(limit.over < 0 for limit in limits):
        return False
    every += sum(pod_class.pods for pod_class in game.pod_classes)
    if pod_class.on_nodes:
        hosts = game.node_spreads[limits[0].spread]
        counting = [node_class for node_class in game.classes if node_class.held[limits[0].spread] is not None]
        return hosts.closed_minimum is None and all(_takes(node_class, new, every) >= every for node_class in counting)
    if pod_class.on_domains:
        over = game.domain_spreads[limits[0].spread]
        inside = [
            [node_class for node_class in game.classes if node_class.domains[over.key] == domain]
            for domain in over.eligible
        ]
        return over.enough and all(_take(classes, new, every) for classes in inside)
    return _take(game.classes, new, every)


def _take(classes: Sequence[NodeClass], pod_class: int, pods: int) -> bool:
    return sum(node_class.size * _takes(node_class, pod_class, pods) for node_class in classes) >= pods


def _takes(node_class: NodeClass, pod_class: int, most: int) -> int:
    """Return how many pods a node admits before it can reject this pod class.

    The pods can be of any class. The result is a lower bound, and at most ``most``.
    """
    if not node_class.open[pod_class]:
        return 0
    rooms = [limit.bound // max(1, *limit.weights) + 1 for limit in node_class.node_limits[pod_class]]
    return max(0, min([most, *rooms]))


def room_of(node_class: NodeClass) -> int | None:
    """Return how many more pods a node of this class admits. None if unlimited.

    For a class that pools several nodes, return the number for the whole pool.
    """
    if not node_class.open[0]:
        return 0
    # A limit unaffected by pods of this class admits all of them or none.
    places = [
        limit.bound // limit.weights[0] + 1 if limit.weights[0] else (0, None)[limit.bound >= 0]
        for limit in node_class.node_limits[0]
    ]
    return min((max(0, room) for room in places if room is not None), default=None)


def _room(classes: Iterable[NodeClass]) -> int | None:
    rooms = [(node_class.size, room_of(node_class)) for node_class in classes]
    return None if (None in [room for _, room in rooms]) else sum(size * (room or 0) for size, room in rooms)


def _over_domains(game: Game, limit: SpreadLimit) -> int | None:
    spread = game.domain_spreads[limit.spread]
    inside: dict[int, list[NodeClass]] = {domain: [] for domain in spread.eligible}
    for node_class in game.classes:
        if node_class.domains[spread.key] >= 0:
            inside.setdefault(node_class.domains[spread.key], []).append(node_class)
    if not spread.weights[0]:
        # No pod of the class counts, so open domains stay open.
        lowest = min((spread.base[domain] for domain in spread.eligible), default=0) if spread.enough else 0
        open_ = [nodes for domain, nodes in inside.items() if spread.base[domain] <= lowest + limit.over]
        return _room(node_class for nodes in open_ for node_class in nodes)
    cells = Counter(DomainState(spread.base[domain], _room(nodes)) for domain, nodes in inside.items())
    return addable(cells, Bound(limit.over + 1, spread.enough))


def _over_nodes(game: Game, limit: SpreadLimit) -> int | None:
    closed_minimum, cells = game.node_spreads[limit.spread].closed_minimum, Counter[DomainState]()
    for node_class in game.classes:
        held = node_class.held[limit.spread]
        if held is not None:
            cells[DomainState(held, room_of(node_class))] += node_class.size
    if closed_minimum is not None:
        cells[DomainState(closed_minimum, 0)] += 1
    return addable(cells, Bound(limit.over + 1))


def possible_ends(game: Game) -> PossibleEnds | None:
    """Return the possible final pod counts under one zone and one host constraint.

    None for a game with other constraints, or if unknown.
    """
    if len(game.pod_classes) != 1 or game.rollout is not None:
        return None
    (pod_class,) = game.pod_classes
    if pod_class.apart or pod_class.near is not None or not len(pod_class.on_nodes) == len(pod_class.on_domains) == 1:
        return None
    zone, host = pod_class.on_domains[0], pod_class.on_nodes[0]
    spread = game.domain_spreads[zone.spread]
    hosts: dict[int, Counter[DomainState]] = {domain: Counter() for domain in spread.eligible}
    for node_class in game.classes:
        held = node_class.held[host.spread]
        # The node counts for one of the constraints only.
        if held is None or node_class.domains[0] not in hosts:
            return None
        hosts[node_class.domains[0]][DomainState(held, room_of(node_class))] += node_class.size
    if not spread.weights[0]:
        return None
    zones = [Zone(spread.base[domain], cells) for domain, cells in hosts.items()]
    closed_minimum = game.node_spreads[host.spread].closed_minimum
    return ends_on_hosts(zones, closed_minimum, Bound(zone.over + 1, spread.enough), host.over + 1, pod_class.pods)
