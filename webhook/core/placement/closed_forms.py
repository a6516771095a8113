"""How many pods of a game are placed, where every order ends with the same number.

So it is with pods that are alike and count themselves under one constraint (`bounds.addable`). So it is also with a
second one over nodes whose maxSkew is 1: then only the emptiest nodes take a pod, so it matters how many pods are in
which zone and not on which of its nodes, and a pod in one zone takes no place from another zone. With a larger maxSkew
over nodes orders may differ, and few numbers tell how they can end (`possible_ends`).
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from webhook.core.placement.game import DomainSpread, Game, Limit, NodeClass, NodeSpread
from webhook.core.placement.proofs.bounds import Cell, addable
from webhook.core.placement.proofs.bounds import Limit as Bound

_NO_LEVEL = 2**31
# Of pods on one host, looked at one after the other. Where no resource limits them an author's replicas do: billions.
_MOST_LEVELS = 256


def same_in_every_order(game: Game) -> int | None:
    """How many pods every order places; None where it is not known that they all place as many."""
    if len(game.crowds) != 1 or game.rollout is not None:
        return None
    (crowd,) = game.crowds
    if crowd.apart or crowd.near is not None:
        return None
    most: int | None
    if not crowd.on_nodes and not crowd.on_domains:
        most = _total([_times(of.size, room_of(of)) for of in game.classes])
    elif len(crowd.on_domains) == 1 and not crowd.on_nodes:
        most = _over_domains(game, crowd.on_domains[0])
    elif len(crowd.on_nodes) == 1 and not crowd.on_domains:
        most = _over_nodes(game, crowd.on_nodes[0])
    elif len(crowd.on_nodes) == len(crowd.on_domains) == 1:
        return _over_both(game, crowd.on_domains[0], crowd.on_nodes[0])
    else:
        return None
    return crowd.pods if most is None else min(crowd.pods, most)


def takes_every_pod(game: Game) -> bool:
    """Whether the new pods of a rollout always have a node: then no order gets stuck, as old pods may go after each.

    Shape: so it is if nothing but one constraint is in their way, and there is room for all pods, old and new, in each
    domain that counts: so in that with the fewest pods, which is open. False also where that is not known.
    """
    if game.rollout is None or (game.rollout.turns and len(game.crowds) > 2):
        return False
    new = 1 - game.rollout.old
    crowd, every = game.crowds[new], sum(of.size * sum(of.start) for of in game.classes)
    limits = (*crowd.on_nodes, *crowd.on_domains)
    if crowd.apart or crowd.near is not None or len(limits) > 1 or any(each.over < 0 for each in limits):
        return False
    every += sum(each.pods for each in game.crowds)
    if crowd.on_nodes:
        hosts = game.node_spreads[limits[0].spread]
        counting = [of for of in game.classes if of.held[limits[0].spread] is not None]
        return hosts.floor is None and all(_takes(of, new, every) >= every for of in counting)
    if crowd.on_domains:
        over = game.domain_spreads[limits[0].spread]
        inside = [[of for of in game.classes if of.domains[over.key] == each] for each in over.eligible]
        return over.enough and all(_take(classes, new, every) for classes in inside)
    return _take(game.classes, new, every)


def _take(classes: Sequence[NodeClass], crowd: int, pods: int) -> bool:
    """Whether these nodes always have a place for one more of the crowd, of so many pods of all crowds."""
    return sum(of.size * _takes(of, crowd, pods) for of in classes) >= pods


def _takes(of: NodeClass, crowd: int, most: int) -> int:
    """So many pods of any crowds, at most ``most``, that a node with fewer of them takes another of this crowd."""
    if not of.open[crowd]:
        return 0
    rooms = [each.bound // max(1, *each.weights) + 1 for each in of.gates[crowd]]
    return max(0, min([most, *rooms]))


def room_of(of: NodeClass) -> int | None:
    """How many pods one node of the class takes, or the pool; None for any number."""
    if not of.open[0]:
        return 0
    # What no pod of the crowd changes either lets all in or none.
    places = [
        gate.bound // gate.weights[0] + 1 if gate.weights[0] else (0, None)[gate.bound >= 0] for gate in of.gates[0]
    ]
    return min((max(0, each) for each in places if each is not None), default=None)


def _total(rooms: list[int | None]) -> int | None:
    return None if None in rooms else sum(each for each in rooms if each is not None)


def _over_domains(game: Game, limit: Limit) -> int | None:
    spread = game.domain_spreads[limit.spread]
    rooms: dict[int, list[int | None]] = {each: [] for each in spread.eligible}
    for of in game.classes:
        rooms.setdefault(of.domains[spread.key], []).append(_times(of.size, room_of(of)))
    if not spread.weights[0]:
        return _uncounted(spread, limit, rooms)
    cells = Counter(Cell(spread.base[domain], _total(room)) for domain, room in rooms.items() if domain >= 0)
    return addable(cells, Bound(limit.over + 1, spread.enough))


def _times(nodes: int, room: int | None) -> int | None:
    return None if room is None else nodes * room


def _uncounted(spread: DomainSpread, limit: Limit, rooms: dict[int, list[int | None]]) -> int | None:
    """The room of the open domains, which stay open: no pod of the crowd counts."""
    lowest = min((spread.base[each] for each in spread.eligible), default=0) if spread.enough else 0
    inside = [room for domain, room in rooms.items() if domain >= 0 and spread.base[domain] <= lowest + limit.over]
    return _total([_total(each) for each in inside])


def _over_nodes(game: Game, limit: Limit) -> int | None:
    floor, cells = game.node_spreads[limit.spread].floor, Counter[Cell]()
    for of in game.classes:
        held = of.held[limit.spread]
        if held is not None:
            cells[Cell(held, room_of(of))] += of.size
    if floor is not None:
        cells[Cell(floor, 0)] += 1
    return addable(cells, Bound(limit.over + 1))


class _Zone(Struct):
    """A zone that is filled: its pods, and its hosts by their pods and the room that is left on them."""

    pods: int
    hosts: Counter[Cell]

    def open_hosts(self, level: int) -> int:
        return sum(many for cell, many in self.hosts.items() if cell.pods <= level and cell.room != 0)

    def take(self, pods: int, level: int) -> None:
        """Put a pod on each of so many of the hosts that take one; it does not matter on which."""
        self.pods += pods
        for cell, many in [each for each in self.hosts.items() if each[0].pods <= level and each[0].room != 0]:
            taken = min(many, pods)
            if taken == many:
                del self.hosts[cell]  # else each level is looked through for all those below
            else:
                self.hosts[cell] -= taken
            self.hosts[Cell(cell.pods + 1, None if cell.room is None else cell.room - 1)] += taken
            pods -= taken


class Ends(NamedTuple):
    """How orders may end: with so many pods placed and no place for more, the fewest first, or with all of them."""

    stuck: tuple[int, ...]
    fits: bool


def possible_ends(game: Game) -> Ends | None:
    """How orders may end under one constraint over zones and one over hosts; not all of that need come about.

    Shape: None for any other game, and where hosts would take more pods than are looked at.
    """
    if len(game.crowds) != 1 or game.rollout is not None:
        return None
    (crowd,) = game.crowds
    if crowd.apart or crowd.near is not None or not len(crowd.on_nodes) == len(crowd.on_domains) == 1:
        return None
    zone, host = crowd.on_domains[0], crowd.on_nodes[0]
    zones = _zones(game, zone, host)
    if zones is None:
        return None
    enough = game.domain_spreads[zone.spread].enough
    return _ends(zones, game.node_spreads[host.spread], Bound(zone.over + 1, enough), host.over + 1, crowd.pods)


def _zones(game: Game, zone: Limit, host: Limit) -> list[_Zone] | None:
    """The zones with their hosts; None where a host counts for one constraint only, or pods are not counted."""
    zones = game.domain_spreads[zone.spread]
    if not zones.weights[0]:
        return None
    inside = {each: _Zone(zones.base[each], Counter()) for each in zones.eligible}
    for of in game.classes:
        held = of.held[host.spread]
        if held is None or of.domains[0] not in inside:
            return None
        inside[of.domains[0]].hosts[Cell(held, room_of(of))] += of.size
    return list(inside.values())


def _ends(zones: Sequence[_Zone], hosts: NodeSpread, of_zones: Bound, max_skew: int, wanted: int) -> Ends | None:
    """Raise the minimum over hosts level by level.

    In an end each host of a zone is full or maxSkew above that minimum, or the zone is maxSkew above the minimum over
    zones. The zone with the fewest pods is of the first kind, so the level tells how many pods each zone has. It can
    be left once every zone may have the pods that bring all of its hosts to the next one. None where there are more
    levels than are looked at.
    """
    level, highest, stuck = _level(zones, hosts), _highest_level(zones, hosts), list[int]()
    for _ in range(_MOST_LEVELS):
        blocked = [_filled_up(each, level + max_skew) for each in zones]
        filled = (each.pods + room for each, room in zip(zones, blocked, strict=True))
        top = (min(filled, default=0) if of_zones.enough else 0) + of_zones.max_skew
        placed = [min(room, max(0, top - each.pods)) for each, room in zip(zones, blocked, strict=True)]
        if sum(placed) >= wanted:
            return Ends(tuple(stuck), fits=True)
        if hosts.floor == level or any(
            pods <= room - _least_gap(each, level, max_skew)
            for each, room, pods in zip(zones, blocked, placed, strict=True)
        ):
            stuck.append(sum(placed))
        level += 1
        if level > highest or any(_filled_up(each, level) > pods for each, pods in zip(zones, placed, strict=True)):
            return Ends(tuple(stuck), fits=False)
    return None


def _filled_up(zone: _Zone, level: int) -> int:
    """How many pods it takes until each host of the zone is at the level or full."""
    return sum(
        many * max(0, level - cell.pods if cell.room is None else min(level - cell.pods, cell.room))
        for cell, many in zone.hosts.items()
    )


def _highest_level(zones: Sequence[_Zone], hosts: NodeSpread) -> int:
    """The highest minimum over hosts that room allows."""
    most = [_NO_LEVEL if cell.room is None else cell.pods + cell.room for zone in zones for cell in zone.hosts]
    return min(most if hosts.floor is None else [*most, hosts.floor], default=0)


def _least_gap(zone: _Zone, level: int, max_skew: int) -> int:
    """The fewest pods by which one host of the zone falls short of what it could have, if it stays at the level."""
    return min(
        (
            max_skew if cell.room is None else min(max_skew, cell.pods + cell.room - level)
            for cell in zone.hosts
            if cell.pods <= level
        ),
        default=_NO_LEVEL,
    )


def _over_both(game: Game, zone: Limit, host: Limit) -> int | None:
    """Fill level by level: a host takes its next pod once none has fewer."""
    every, left = _zones(game, zone, host), game.crowds[0].pods
    if every is None:
        return None
    zones, hosts = game.domain_spreads[zone.spread], game.node_spreads[host.spread]
    if host.over:
        found = _ends(every, hosts, Bound(zone.over + 1, zones.enough), host.over + 1, left)
        if found is None:
            return None
        if found.fits:
            return None if found.stuck else left
        return found.stuck[0] if len(found.stuck) == 1 else None
    level = _level(every, hosts)
    for _ in range(_MOST_LEVELS):
        placed = _filled(every, level, zones, zone.over, left)
        left -= placed
        if not (left and placed) or level == (level := _level(every, hosts)):
            return game.crowds[0].pods - left
    return None


def _level(zones: Sequence[_Zone], hosts: NodeSpread) -> int:
    """The global minimum over hosts."""
    lowest = min((cell.pods for zone in zones for cell, many in zone.hosts.items() if many), default=0)
    return lowest if hosts.floor is None else min(lowest, hosts.floor)


def _filled(zones: Sequence[_Zone], level: int, spread: DomainSpread, over: int, most: int) -> int:
    """Place pods on the hosts of one level, until no zone takes another; at most so many."""
    taken, open_hosts = [0] * len(zones), [zone.open_hosts(level) for zone in zones]
    placed, moved = 0, True
    while moved and placed < most:
        moved = False
        lowest = min(zone.pods + each for zone, each in zip(zones, taken, strict=True)) if spread.enough else 0
        for number, zone in enumerate(zones):
            pods = min(open_hosts[number] - taken[number], lowest + over + 1 - zone.pods - taken[number], most - placed)
            if pods > 0:
                taken[number] += pods
                placed, moved = placed + pods, True
    for zone, pods in zip(zones, taken, strict=True):
        zone.take(pods, level)
    return placed
