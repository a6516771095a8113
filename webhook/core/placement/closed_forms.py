"""How many pods of a game are placed, where every order ends with the same number.

So it is with pods that are alike and count themselves under one constraint (`bounds.addable`). So it is also with a
second one over nodes whose maxSkew is 1: then only the emptiest nodes take a pod, so it matters how many pods are in
which zone and not on which of its nodes, and a pod in one zone takes no place from another zone. With a larger maxSkew
over nodes, all are placed in every order if they are too few for any order to get stuck.
"""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from webhook.core.placement.bounds import Cell, addable
from webhook.core.placement.bounds import Limit as Bound
from webhook.core.placement.game import DomainSpread, Game, Limit, NodeClass, NodeSpread


def same_in_every_order(game: Game) -> int | None:
    """How many pods every order places; None where it is not known that they all place as many."""
    if len(game.crowds) != 1 or game.rollout is not None:
        return None
    (crowd,) = game.crowds
    if crowd.apart or crowd.near is not None:
        return None
    most: int | None
    if not crowd.on_nodes and not crowd.on_domains:
        most = _total([_room(of) for of in game.classes])
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

    Shape: so it is if nothing but one constraint is in their way, and each domain that counts has a node with room for
    any number: that of the domain with the fewest pods. False also where that is not known.
    """
    if game.rollout is None or game.rollout.turns:
        return False
    new = game.rollout.new
    crowd = game.crowds[new]
    limits = (*crowd.on_nodes, *crowd.on_domains)
    if crowd.apart or crowd.near is not None or len(limits) > 1 or any(each.over < 0 for each in limits):
        return False
    free = [of for of in game.classes if of.open[new] and not of.gates[new]]
    if not free:
        return False
    if crowd.on_domains:
        over = game.domain_spreads[limits[0].spread]
        return over.enough and {of.domains[over.key] for of in free} >= {*over.eligible}
    if crowd.on_nodes:
        hosts = game.node_spreads[limits[0].spread]
        counting = [of for of in game.classes if of.held[limits[0].spread] is not None]
        return hosts.floor is None and all(of in free for of in counting)
    return True


def _room(of: NodeClass) -> int | None:
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
        rooms.setdefault(of.domains[spread.key], []).append(_times(of.size, _room(of)))
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
            cells[Cell(held, _room(of))] += of.size
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
            self.hosts[cell] -= taken
            self.hosts[Cell(cell.pods + 1, None if cell.room is None else cell.room - 1)] += taken
            pods -= taken


def _over_both(game: Game, zone: Limit, host: Limit) -> int | None:
    """Fill level by level: a host takes its next pod once none has fewer."""
    zones, hosts = game.domain_spreads[zone.spread], game.node_spreads[host.spread]
    if not zones.weights[0]:
        return None
    inside = {each: _Zone(zones.base[each], Counter()) for each in zones.eligible}
    for of in game.classes:
        held = of.held[host.spread]
        if held is None or of.domains[0] not in inside:
            return None
        inside[of.domains[0]].hosts[Cell(held, _room(of))] += of.size
    every, left = list(inside.values()), game.crowds[0].pods
    if host.over:
        return left if zones.enough and left <= _fewest_stuck(every, host.over + 1) else None
    level = _level(every, hosts)
    while left:
        placed = _filled(every, level, zones, zone.over, left)
        left -= placed
        if not placed or level == (level := _level(every, hosts)):
            break
    return game.crowds[0].pods - left


def _fewest_stuck(zones: Sequence[_Zone], max_skew: int) -> int:
    """How many pods have to be placed at least before an order can get stuck.

    The zone with the fewest pods is open, so each of its hosts is full or at least maxSkew above the minimum over
    hosts; and every other zone has as many pods as that zone.
    """
    found = []
    for lowest in zones:
        filled = lowest.pods
        for cell, many in lowest.hosts.items():
            up = max(0, max_skew - cell.pods)
            filled += many * (up if cell.room is None else min(up, cell.room))
        found.append(sum(max(0, filled - each.pods) for each in zones))
    return min(found, default=0)


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
