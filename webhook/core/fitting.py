"""Whether a number of equal pods all find a place, whatever the order they come in: what a fix has to show.

Room is counted per node (resources, host ports, anti-affinity), and constraints whose minimum cannot move while the
pods are placed are room too. What is left is decided by the closed form of one constraint, which holds in every order.
Two constraints that both move are not decided here: the answer is no, and the fix is not offered.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from webhook.core import bits, fit
from webhook.core.ceiling import Cell, addable
from webhook.core.places import APART, MOST_HOMES, Hard, Places, Tally, Terrain, tallies, terrain
from webhook.core.spread import Eligible
from webhook.core.storage import READ_WRITE_ONCE_POD
from webhook.core.verdict import Cycle
from webhook.core.volume_binding import VOLUME_BINDING
from webhook.core.volume_limits import NODE_VOLUME_LIMITS
from webhook.core.volumes import VOLUME_RESTRICTIONS, is_disk

# How many nodes are looked at before asking whether more are needed.
_AT_ONCE = 256
_FIRST = (1 << _AT_ONCE) - 1

_Room = Callable[[int], int]  # from a slot to how many of the pods the node takes


def present(places: Places) -> Terrain | None:
    """The nodes as they are now, those where only a pod of the workload's own keeps others away included.

    Shape: None where places depend on what is not counted here.
    """
    problem = places.problem
    cycle, volumes = Cycle(problem), problem.pod.pod_spec.volumes or ()
    alone = any(READ_WRITE_ONCE_POD in (claim.spec.access_modes or ()) for claim in problem.storage.claims.values())
    if alone or any(map(is_disk, volumes)) or cycle.ran(VOLUME_BINDING).before.rejected:
        return None
    if places.running and problem.neighbours.wanted and problem.neighbours.matches_itself:
        return None  # where its own pods stand now is not where they would have to
    here = terrain(places, present=True)
    nodes, left = problem.nodes, here.open
    if places.running and here.apart:
        left |= terrain(places, present=True, without=(APART,)).open & bits.from_slots([*places.running], nodes.size)
    if not all(nodes.column(key).one_each for key in here.apart):
        return None  # pods of several nodes are kept apart by one term
    if volumes:
        for plugin in (VOLUME_RESTRICTIONS, NODE_VOLUME_LIMITS):
            decide = cycle.ran(plugin).decide
            left &= ~sum(members for _, members in decide(left)) if decide is not None else -1
    if problem.ports:
        decide = cycle.ran(fit.NODE_PORTS).decide
        taken = sum(members for _, members in decide(left)) if decide is not None else 0
        left &= ~taken | bits.from_slots([*places.running], nodes.size)
    return replace(here, open=left)


def fits(places: Places, here: Terrain | None, hard: Sequence[Hard], replicas: int, *, lost: int = 0) -> bool:
    """Whether all replicas of the workload are placed in every order, under these constraints instead of the pod's.

    Shape: they are placed anew on ``here`` (see `present`): what the workload's own pods take counts as free. ``lost``
    are nodes that are gone from now on, with their pods; they carry a taint that the pod does not tolerate. False too
    where nothing is proven.
    """
    if here is None or not all(each.certain for each in hard):
        return False
    anew = [_without_own(each, lost) for each in hard]
    eligible = here.eligible
    left = replace(
        here,
        eligible=Eligible(eligible.nodes, eligible.usable, eligible.tolerated & ~lost),
        open=here.open & ~lost,
    )
    if here.together is None:
        return _fits(places, anew, left, replicas)
    # All have to be where the first one went, and nobody knows where that is.
    homes = eligible.nodes.column(here.together)
    chosen = homes.domains(left.open)
    if not 0 < len(chosen) <= MOST_HOMES:
        return False
    return all(_fits(places, anew, replace(left, open=left.open & homes.nodes(home)), replicas) for home in chosen)


def _without_own(hard: Hard, lost: int) -> Hard:
    """The constraint as if the workload's own pods, and all pods on lost nodes, were not there."""
    gone, own = bits.flags(lost, lost.bit_length()), hard.own
    counts = {
        slot: pods - own.get(slot, 0)
        for slot, pods in hard.counts.items()
        if own.get(slot) != pods and not (slot < len(gone) and gone[slot])
    }
    return replace(hard, counts=counts, own={})


def _fits(places: Places, hard: Sequence[Hard], here: Terrain, replicas: int) -> bool:
    """As `fits`, on nodes that are all open to all of the pods."""
    open_ = here.open
    moving: list[Tally] = []
    caps: list[tuple[Tally, int]] = []
    on_hosts: list[tuple[Tally, int]] = []
    for tally in tallies(hard, here, places.problem):
        open_ &= tally.open
        top = _fixed_top(tally, replicas)
        if max((cell.pods for cell in tally.cells), default=0) + replicas <= tally.limit.max_skew:
            continue  # no domain can ever have too many
        if top is None:
            moving.append(tally)
        else:
            (on_hosts if tally.column.one_each else caps).append((tally, top))
    if len(moving) + len(caps) > 1:
        return False
    room = _room(places, here, on_hosts, replicas)
    for tally in moving:
        cells = Counter(Cell(tally.count(number), room_in) for number, room_in in _rooms(tally, room, open_, replicas))
        return (addable(cells, tally.limit) or 0) >= replicas
    for tally, top in caps:
        rooms = _rooms(tally, room, open_, replicas)
        return sum(min(room_in, max(0, top - tally.count(number))) for number, room_in in rooms) >= replicas
    return _sum(room, open_, replicas) >= replicas


def _rooms(tally: Tally, room: _Room, open_: int, enough: int) -> Iterator[tuple[int, int]]:
    """The room in each domain that counts."""
    column, counting = tally.column, tally.domains.counting
    if column.one_each:
        is_open = bits.flags(open_, len(column.of))
        for slot in bits.to_slots(counting):
            yield column.of[slot], room(slot) if is_open[slot] else 0
    else:
        for number in column.domains(counting):
            yield number, _sum(room, column.nodes(number) & open_, enough)


def _fixed_top(tally: Tally, replicas: int) -> int | None:
    """The most pods that a domain may hold, where the minimum stays what it is; None where it may move."""
    if not tally.limit.enough:
        return tally.limit.max_skew
    lowest = min((cell.pods for cell in tally.cells), default=0)
    emptiest = {cell: domains for cell, domains in tally.cells.items() if cell.pods == lowest}
    held = any(cell.room == 0 for cell in emptiest)
    return lowest + tally.limit.max_skew if held or sum(emptiest.values()) > replicas else None


def _room(places: Places, here: Terrain, on_hosts: Sequence[tuple[Tally, int]], replicas: int) -> _Room:
    """How many of the pods a node takes, as long as the minima over hosts stay what they are."""
    single = bool(places.problem.ports or here.apart)
    tops = [(tally.column.of, tally.domains.match_num, top) for tally, top in on_hosts]
    free = [(places.free[name], amount) for name, amount in places.amounts]
    freed = places.freed

    def room(slot: int) -> int:
        found = 1 if single else replicas
        for of, pods, top in tops:
            found = min(found, top - pods.get(of[slot], 0))
        own = freed.get(slot)
        for place, (column, amount) in enumerate(free):
            found = min(found, (column[slot] if own is None else own[place]) // amount)
        return max(0, found)

    return room


def _sum(room: _Room, nodes: int, enough: int) -> int:
    """The room of these nodes, as far as it is of use: most often a few of them are enough."""
    total = base = 0
    while nodes:
        for slot in bits.to_slots(nodes & _FIRST):
            total += room(base + slot)
            if total >= enough:
                return enough
        nodes >>= _AT_ONCE
        base += _AT_ONCE
    return total
