"""How many pods hard spread constraints can ever admit: closed forms over domains, without a search.

All pods are alike and match the selectors that count them, so only numbers matter. For one constraint, with c matching
pods in a domain and room for k more there (k = 0 if no node of the domain admits the pod),

    minimum that can be reached = min(c + k) over the domains, 0 if they are fewer than minDomains
    pods that can be added      = sum of max(0, min(c + k, minimum + maxSkew) - c)

Every order of placing reaches that number, and none exceeds it. A domain without room keeps its count, and so limits
all others. The other functions give upper bounds: no order does better. Tests compare all with exhaustive searches.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

# Pods on one host up to which proofs are tried; kubelets run 110 by default.
_MAX_PODS_ON_A_HOST = 256


class Cell(NamedTuple):
    """What equal domains have in common: matching pods, and how many more pods each can take (None for any number)."""

    pods: int
    room: int | None = None


class Zone(NamedTuple):
    """A domain of one constraint that contains hosts, the domains of a second one.

    Args:
        pods: The pods that the first constraint counts in the zone.
        hosts: The number of equal hosts; ``Cell.pods`` is the second constraint's count.
    """

    pods: int
    hosts: Mapping[Cell, int]


class Home(NamedTuple):
    """A domain: its matching pods, the pods to be placed that can go nowhere else, and whether others can go there."""

    pods: int
    pinned: int
    is_open: bool = True


class Limit(NamedTuple):
    """A constraint's numbers.

    Shape: ``enough`` is whether there are at least minDomains domains; if not, the global minimum is 0.
    """

    max_skew: int
    enough: bool = True


def reachable_minimum(cells: Mapping[Cell, int], limit: Limit) -> int | None:
    """The highest global minimum that can be reached; None if nothing bounds it."""
    if not limit.enough:
        return 0
    return min((cell.pods + cell.room for cell in cells if cell.room is not None), default=None)


def addable(cells: Mapping[Cell, int], limit: Limit) -> int | None:
    """How many pods one constraint lets be added, exactly and in every order; None for any number.

    Shape: ``cells`` maps equal domains to their number.
    """
    minimum = reachable_minimum(cells, limit)
    if minimum is None:
        return None if cells else 0
    top = minimum + limit.max_skew
    total = 0
    for (count, room), domains in cells.items():
        reached = top if room is None else min(count + room, top)
        if reached > count:
            total += domains * (reached - count)
    return total


class Ends(NamedTuple):
    """How orders may end: with so many pods placed and no place for more, the fewest first, or with all of them."""

    stuck: tuple[int, ...]
    fits: bool


def ends_on_hosts(zones: Sequence[Zone], floor: int | None, of_zones: Limit, max_skew: int, wanted: int) -> Ends | None:
    """How orders may end under a constraint on zones and one on hosts; not all of these ends need come about.

    The minimum over hosts rises level by level. At the end each host of a zone is full or maxSkew above that minimum,
    or the zone is maxSkew above the minimum over zones. The zone with the fewest pods is of the first kind, so the
    level determines how many pods each zone has. The next level needs zones that may take all pods up to it.

    Args:
        zones: The eligible zones. A zone without hosts takes no pod.
        floor: The lowest count on eligible hosts that do not admit the pod. None if every host does.
        of_zones: The constraint on zones.
        max_skew: That of the constraint on hosts.
        wanted: The number of pods to place.

    Returns:
        None if hosts would take more pods than are tried.
    """
    level = min((cell.pods for zone in zones for cell in zone.hosts), default=0)
    most = [2**31 if cell.room is None else cell.pods + cell.room for zone in zones for cell in zone.hosts]
    highest, stuck = min(most, default=0), list[int]()
    if floor is not None:
        level, highest = min(level, floor) if most else floor, min(highest, floor) if most else floor
    for _ in range(_MAX_PODS_ON_A_HOST):
        rooms = [_below(zone, level + max_skew) for zone in zones]
        filled = (zone.pods + room for zone, room in zip(zones, rooms, strict=True))
        # The zone that can be filled least holds down the minimum, and with it every other zone.
        top = (min(filled, default=0) if of_zones.enough else 0) + of_zones.max_skew
        gains = [min(room, max(0, top - zone.pods)) for zone, room in zip(zones, rooms, strict=True)]
        if sum(gains) >= wanted:
            return Ends(tuple(stuck), fits=True)
        if floor == level or any(
            gain <= room - _least_gap(zone, level, max_skew)
            for zone, room, gain in zip(zones, rooms, gains, strict=True)
        ):
            stuck.append(sum(gains))
        level += 1
        if level > highest or any(_below(zone, level) > gain for zone, gain in zip(zones, gains, strict=True)):
            return Ends(tuple(stuck) or (0,), fits=False)
    return None


def addable_on_hosts(
    zones: Sequence[Zone], held: int | None, of_zones: Limit, of_hosts: Limit, wanted: int
) -> int | None:
    """The most pods of any end of `ends_on_hosts`; None for ``wanted`` or more, and where that is not known."""
    ends = ends_on_hosts(zones, held if of_hosts.enough else 0, of_zones, of_hosts.max_skew, wanted)
    return None if ends is None or ends.fits else ends.stuck[-1]


def _below(zone: Zone, level: int) -> int:
    """How many pods it takes until every host of the zone is at the level or full."""
    return sum(
        hosts * (level - cell.pods if cell.room is None else min(level - cell.pods, cell.room))
        for cell, hosts in zone.hosts.items()
        if cell.pods < level
    )


def _least_gap(zone: Zone, level: int, max_skew: int) -> int:
    """The fewest pods by which one host of the zone falls short of what it could have, if it stays at the level."""
    return min(
        (
            max_skew if cell.room is None else min(max_skew, cell.pods + cell.room - level)
            for cell in zone.hosts
            if cell.pods <= level
        ),
        default=2**31,
    )


def addable_pinned(homes: Sequence[Home], limit: Limit, free: int) -> int:
    """The most pods that one constraint admits if some of them can go to one domain only, where their volumes are.

    Shape: ``homes`` are all eligible domains; ``free`` is the number of pods that can go to any open one.
    """
    level = 0
    if limit.enough and homes:
        level = min(home.pods for home in homes)
        while _reaches(homes, level + 1, free):
            level += 1
    top = level + limit.max_skew
    pinned = rest = 0
    for home in homes:
        if home.is_open:
            left = max(0, top - home.pods)
            pinned += min(home.pinned, left)
            rest += max(0, left - home.pinned)
    return pinned + min(free, rest)


def _reaches(homes: Sequence[Home], level: int, free: int) -> bool:
    if any(home.pods < level and not home.is_open for home in homes):
        return False
    # Pinned pods fill their own domains; free ones have to bring up what is still missing.
    return sum(max(0, level - home.pods - home.pinned) for home in homes) <= free


@lru_cache(maxsize=1024)  # zones differ in their names more than in these numbers
def stranded(replicas: int, max_skew: int, staying: int, lost: int, *, pinned: bool) -> int:
    """The fewest pods that stay without a node after domains were lost whose nodes still count, with 0 pods.

    Shape: the replicas were spread over ``staying`` + ``lost`` domains, in any way that maxSkew allows. ``pinned`` says
    that the minimum was 0 before. The result is 0 also if nothing is proven.
    """
    if replicas <= max_skew * staying:
        return 0
    domains = staying + lost
    most = 0 if pinned else replicas // domains
    if min(max_skew, most) > _MAX_PODS_ON_A_HOST:
        return 0
    # With a minimum of ``level``, the lost domains had at least level * lost pods, and at least all that the staying
    # ones could not hold, replicas - (level + maxSkew) * staying. Above maxSkew, the fewest pods are lost where the two
    # are equal; levels up to maxSkew are all tried.
    equal = (replicas - max_skew * staying) // domains
    minima = {*range(min(max_skew, most) + 1), *(level for level in (equal, equal + 1, most) if level <= most)}
    waiting = [
        replicas - _left(replicas, level, max_skew, staying, lost)
        for level in minima
        if replicas <= (level + max_skew) * domains
    ]
    return max(0, min(waiting, default=0))


def _left(replicas: int, level: int, max_skew: int, staying: int, lost: int) -> int:
    """The most pods that run after the loss, including replacements, if the minimum was ``level`` before."""
    survivors = replicas - max(level * lost, replicas - (level + max_skew) * staying)
    if level >= max_skew:
        return survivors
    # With a minimum of 0, a domain takes replacements up to maxSkew. The best case is the most uneven one: as many
    # domains as possible already above maxSkew, and the others with as few pods as possible.
    full, rest = divmod(survivors - level * staying, max_skew)
    if full >= staying:
        return survivors
    return full * (level + max_skew) + (staying - full - 1) * max_skew + max(level + rest, max_skew)
