"""How many pods of a game are placed, if every order ends with the same number.

Equal pods under one constraint that counts them always end with the same number (`bounds.addable`). So do equal pods
under a constraint on zones and one on hosts with maxSkew 1. With a larger maxSkew on hosts orders may differ. A few
numbers then describe all ends (`possible_ends`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from webhook.core.placement.game import Game, Limit, NodeClass
from webhook.core.placement.proofs.bounds import Cell, Ends, Zone, addable, ends_on_hosts
from webhook.core.placement.proofs.bounds import Limit as Bound


def same_in_every_order(game: Game) -> int | None:
    """How many pods every order places; None where it is not known that they all place as many."""
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
    """Whether the new pods of a rollout always have a node: then no order gets stuck. False also if not known.

    So it is if only one constraint is in their way and each domain that counts has room for all pods, old and new. The
    domain with the fewest pods is open, and has room.
    """
    if game.rollout is None or (game.rollout.turns and len(game.pod_classes) > 2):
        return False
    new = 1 - game.rollout.old
    pod_class, every = game.pod_classes[new], sum(of.size * sum(of.start) for of in game.classes)
    limits = (*pod_class.on_nodes, *pod_class.on_domains)
    if pod_class.apart or pod_class.near is not None or len(limits) > 1 or any(each.over < 0 for each in limits):
        return False
    every += sum(each.pods for each in game.pod_classes)
    if pod_class.on_nodes:
        hosts = game.node_spreads[limits[0].spread]
        counting = [of for of in game.classes if of.held[limits[0].spread] is not None]
        return hosts.floor is None and all(_takes(of, new, every) >= every for of in counting)
    if pod_class.on_domains:
        over = game.domain_spreads[limits[0].spread]
        inside = [[of for of in game.classes if of.domains[over.key] == each] for each in over.eligible]
        return over.enough and all(_take(classes, new, every) for classes in inside)
    return _take(game.classes, new, every)


def _take(classes: Sequence[NodeClass], pod_class: int, pods: int) -> bool:
    return sum(of.size * _takes(of, pod_class, pods) for of in classes) >= pods


def _takes(of: NodeClass, pod_class: int, most: int) -> int:
    """The number of pods of any class, at most ``most``, below which a node takes another of this class."""
    if not of.open[pod_class]:
        return 0
    rooms = [each.bound // max(1, *each.weights) + 1 for each in of.gates[pod_class]]
    return max(0, min([most, *rooms]))


def room_of(of: NodeClass) -> int | None:
    """How many pods one node of the class takes, or the pool; None for any number."""
    if not of.open[0]:
        return 0
    # What no pod of the pod class changes either lets all in or none.
    places = [
        gate.bound // gate.weights[0] + 1 if gate.weights[0] else (0, None)[gate.bound >= 0] for gate in of.gates[0]
    ]
    return min((max(0, each) for each in places if each is not None), default=None)


def _room(classes: Iterable[NodeClass]) -> int | None:
    """How many pods all of these nodes take; None for any number."""
    rooms = [(of.size, room_of(of)) for of in classes]
    return None if (None in [room for _, room in rooms]) else sum(size * (room or 0) for size, room in rooms)


def _over_domains(game: Game, limit: Limit) -> int | None:
    spread = game.domain_spreads[limit.spread]
    inside: dict[int, list[NodeClass]] = {each: [] for each in spread.eligible}
    for of in game.classes:
        if of.domains[spread.key] >= 0:
            inside.setdefault(of.domains[spread.key], []).append(of)
    if not spread.weights[0]:
        # No pod of the class counts: open domains stay open.
        lowest = min((spread.base[each] for each in spread.eligible), default=0) if spread.enough else 0
        open_ = [nodes for domain, nodes in inside.items() if spread.base[domain] <= lowest + limit.over]
        return _room(of for nodes in open_ for of in nodes)
    cells = Counter(Cell(spread.base[domain], _room(nodes)) for domain, nodes in inside.items())
    return addable(cells, Bound(limit.over + 1, spread.enough))


def _over_nodes(game: Game, limit: Limit) -> int | None:
    floor, cells = game.node_spreads[limit.spread].floor, Counter[Cell]()
    for of in game.classes:
        held = of.held[limit.spread]
        if held is not None:
            cells[Cell(held, room_of(of))] += of.size
    if floor is not None:
        cells[Cell(floor, 0)] += 1
    return addable(cells, Bound(limit.over + 1))


def possible_ends(game: Game) -> Ends | None:
    """How orders may end under one constraint over zones and one over hosts. None for any other game, or if unknown."""
    if len(game.pod_classes) != 1 or game.rollout is not None:
        return None
    (pod_class,) = game.pod_classes
    if pod_class.apart or pod_class.near is not None or not len(pod_class.on_nodes) == len(pod_class.on_domains) == 1:
        return None
    zone, host = pod_class.on_domains[0], pod_class.on_nodes[0]
    spread = game.domain_spreads[zone.spread]
    hosts: dict[int, Counter[Cell]] = {each: Counter() for each in spread.eligible}
    for of in game.classes:
        held = of.held[host.spread]
        # A node that counts for one constraint only.
        if held is None or of.domains[0] not in hosts:
            return None
        hosts[of.domains[0]][Cell(held, room_of(of))] += of.size
    if not spread.weights[0]:
        return None
    zones = [Zone(spread.base[domain], cells) for domain, cells in hosts.items()]
    floor = game.node_spreads[host.spread].floor
    return ends_on_hosts(zones, floor, Bound(zone.over + 1, spread.enough), host.over + 1, pod_class.pods)
