"""How many pods hard spread constraints can ever admit: closed forms over domains, without a search.

All pods are alike and match the selectors that count them, so only numbers move. For one constraint with c matching
pods in each domain, and room for k more (0 where no node of it admits the pod),

    minimum that can be reached = min(c + k) over the domains, 0 if they are fewer than minDomains
    pods that can be added      = sum of max(0, min(c + k, minimum + maxSkew) - c)

which every order reaches and none exceeds. A domain without room keeps its count and holds all others down. The other
forms are bounds for their question: no order of placing does better. Tests compare all with exhaustive searches.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

# Past so many pods on a host nothing is proven; no node runs as many.
_MOST_LEVELS = 256


class Cell(NamedTuple):
    """Domains that are alike: their matching pods, and how many more each can take (None: no limit)."""

    pods: int
    room: int | None = None


class Zone(NamedTuple):
    """One domain of a constraint that has the hosts of another one in it.

    Shape: ``pods`` are those that the first constraint counts; ``hosts`` maps pods that the second counts to the
    number of hosts with so many, for hosts that admit the pod.
    """

    pods: int
    hosts: Mapping[int, int]


class Home(NamedTuple):
    """A domain with its matching pods, and the pods still to be placed that can be in no other one."""

    pods: int
    pinned: int
    is_open: bool = True


class Limit(NamedTuple):
    """What of a constraint decides how many pods it admits.

    Shape: ``enough`` is whether there are minDomains domains; if not, the minimum is 0.
    """

    max_skew: int
    enough: bool = True


def reachable_minimum(cells: Mapping[Cell, int], limit: Limit) -> int | None:
    """The most that the domain with the fewest pods can get to; None where nothing bounds it."""
    if not limit.enough:
        return 0
    return min((cell.pods + cell.room for cell in cells if cell.room is not None), default=None)


def addable(cells: Mapping[Cell, int], limit: Limit) -> int | None:
    """How many pods one constraint lets be added, exactly and in every order; None for any number.

    Shape: ``cells`` maps equal domains to how many there are of them.
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


def addable_on_hosts(
    zones: Sequence[Zone], held: int | None, of_zones: Limit, of_hosts: Limit, wanted: int
) -> int | None:
    """The most pods that a constraint on zones and one on hosts let be added together; None for ``wanted`` or more.

    Shape: ``zones`` are those that count; a zone without hosts in it takes no pod. ``held`` is the fewest pods on a
    host that counts and does not admit the pod, None where every host does.

    A level is a minimum over hosts. The next one can be reached only if every zone may take the pods that lift all its
    hosts that far, while no host has more than the level + maxSkew. The zone with the fewest hosts ends that.
    """
    level = 0
    if of_hosts.enough:
        counts = [count for zone in zones for count in zone.hosts]
        level = min(counts if held is None else [*counts, held], default=0)
    for _ in range(_MOST_LEVELS):
        rooms = [_below(zone, level + of_hosts.max_skew) for zone in zones]
        filled = (zone.pods + room for zone, room in zip(zones, rooms, strict=True))
        top = (min(filled, default=0) if of_zones.enough else 0) + of_zones.max_skew
        gains = [min(room, max(0, top - zone.pods)) for zone, room in zip(zones, rooms, strict=True)]
        total = sum(gains)
        if total >= wanted:
            return None
        if not of_hosts.enough or (held is not None and held <= level):
            return total
        if any(_below(zone, level + 1) > gain for zone, gain in zip(zones, gains, strict=True)):
            return total
        level += 1
    return None


def _below(zone: Zone, level: int) -> int:
    """How many pods bring every host of the zone that has fewer to the level."""
    return sum(hosts * (level - count) for count, hosts in zone.hosts.items() if count < level)


def addable_pinned(homes: Sequence[Home], limit: Limit, free: int) -> int:
    """The most pods that one constraint lets be added if some of them can be in one domain only, as with volumes.

    Shape: ``homes`` are all domains that count; ``free`` are the pods that may go to any open one.
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
    """Whether there are pods enough to bring every domain to the level."""
    if any(home.pods < level and not home.is_open for home in homes):
        return False
    return sum(max(0, level - home.pods - home.pinned) for home in homes) <= free


def stranded(replicas: int, max_skew: int, staying: int, lost: int, *, pinned: bool) -> int:
    """The fewest pods without a place after domains were lost that go on counting with 0 pods.

    Shape: ``staying`` domains are left of those that the replicas were spread over, in any way that maxSkew allows;
    ``pinned`` says that the minimum was 0 already. 0 too where nothing is proven.
    """
    if replicas <= max_skew * staying:
        return 0
    domains = staying + lost
    most = 0 if pinned else replicas // domains
    if min(max_skew, most) > _MOST_LEVELS:
        return 0
    # Above maxSkew the best minimum is where the pods lost by it and those that its top leaves over are equal.
    equal = (replicas - max_skew * staying) // domains
    minima = {*range(min(max_skew, most) + 1), *(level for level in (equal, equal + 1, most) if level <= most)}
    waiting = [
        replicas - _left(replicas, level, max_skew, staying, lost)
        for level in minima
        if replicas <= (level + max_skew) * domains
    ]
    return max(0, min(waiting, default=0))


def _left(replicas: int, level: int, max_skew: int, staying: int, lost: int) -> int:
    """The most pods that run after the loss, replacements included, if the minimum was ``level`` before it."""
    survivors = replicas - max(level * lost, replicas - (level + max_skew) * staying)
    if level >= max_skew:
        return survivors
    # A domain takes replacements up to maxSkew: the more uneven the survivors stand, the more of them find a place.
    full, rest = divmod(survivors - level * staying, max_skew)
    if full >= staying:
        return survivors
    return full * (level + max_skew) + (staying - full - 1) * max_skew + max(level + rest, max_skew)
