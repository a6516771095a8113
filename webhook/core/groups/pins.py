"""Pin each shard to as many zones as the shard has pods.

Then every order fills the zones equally. Pods of a shard never share a zone, so each of the shard's zones gets one pod.
The pins alone decide the number of pods in each zone. A pod never uses up capacity meant for a pod of another zone.

Running pods stay in their zones if possible. As few shards as possible are pinned to a zone without a running pod of
the shard.
"""

from collections.abc import Iterable, Mapping, Sequence

from webhook.core.groups.group import ZonePins

# With more zones and many pods to move, the search for the fewest moves takes seconds.
_MOST_ZONES = 16

_Step = tuple[int, str, str]  # a shard, its new zone, the zone that it gives up


def pin_zones(
    shards: Sequence[Sequence[str]], pods: int, rooms: Mapping[str, int], running: Sequence[Sequence[str]] = ()
) -> ZonePins | None:
    """Choose a zone for each pod of each shard.

    The shards are spread about as evenly as possible. This also holds for the first shards alone, in any number. A
    shard's pins depend on ``rooms``, the number of shards, the running pods and the earlier shards, not on later
    shards.

    Args:
        shards: The zones already fixed for each shard.
        pods: The number of pods of a shard.
        rooms: The most pods of each zone. Among equally good zones, the first in ``rooms`` is chosen.
        running: The zones of each shard's running pods. Empty, or with an entry for at least each shard.

    Returns:
        The pins. None if impossible.
    """
    most = {zone: min(room, len(shards)) for zone, room in rooms.items()}
    if pods > len(rooms) or sum(most.values()) < pods * len(shards):
        return None  # Without this check, the search would take long to fail.
    settled = [tuple(zone for zone in shard if zone in rooms)[:pods] for shard in shards]
    if any(running[: len(shards)]) and len(rooms) <= _MOST_ZONES:
        whole = _fewest_moves(settled, running, pods, rooms)
        settled = settled if whole is None else kept_zones(whole, settled, running)
    loads = _loads(settled, rooms)
    targets = _targets(loads, pods * len(shards), most)
    if targets is None:
        return None
    zones = _evenly(settled, pods, targets) or _fewest_moves(settled, ((),) * len(shards), pods, rooms)
    return None if zones is None else ZonePins(tuple(tuple(sorted(own)) for own in zones), _loads(zones, rooms))


def kept_zones(
    given: Iterable[Iterable[str]], settled: Iterable[Sequence[str]], running: Sequence[Sequence[str]]
) -> list[tuple[str, ...]]:
    """Return the zones to keep for each shard.

    First come the shard's ``settled`` zones. Then come its ``given`` zones, if the shard has running pods there.
    """
    return [
        (*known, *(zone for zone in runs if zone in zones and zone not in known))
        for zones, known, runs in zip(map(set, given), settled, running, strict=False)
    ]


def _loads(given: Iterable[Iterable[str]], rooms: Mapping[str, int]) -> dict[str, int]:
    held = [zone for zones in given for zone in zones]
    return {zone: held.count(zone) for zone in rooms}


def _evenly(settled: Sequence[Sequence[str]], pods: int, targets: Mapping[str, int]) -> list[list[str]] | None:
    """Assign zones to each shard, until each zone has its target number of pods.

    A greedy choice. It returns the zones of each shard, or None if it fails. The result includes the zones in
    ``settled``.
    """
    given, loads = list[list[str]](), _loads(settled, targets)
    for number, known in enumerate(settled):
        chosen, left = list(known), sum(len(zones) < pods for zones in settled[number:])
        for _ in range(pods - len(known)):
            open_ = [zone for zone in targets if zone not in chosen and loads[zone] < targets[zone]]
            if not open_:
                return None
            # First a zone that needs a pod of every remaining shard, then the zone furthest from its target.
            zone = min(open_, key=lambda zone: (targets[zone] - loads[zone] < left, loads[zone] / targets[zone]))
            loads[zone] += 1
            chosen.append(zone)
        given.append(chosen)
    return given


def _fewest_moves(
    settled: Sequence[Sequence[str]], running: Sequence[Sequence[str]], pods: int, rooms: Mapping[str, int]
) -> list[set[str]] | None:
    """Choose zones for each shard, with the fewest moves of running pods.

    None if impossible. ``rooms`` is the most pods in each zone.
    """
    taken, fixed, runs = [*map(set, settled)], [*map(frozenset, settled)], [*map(frozenset, running)][: len(settled)]
    free = {zone: rooms[zone] - held for zone, held in _loads(settled, rooms).items()}
    if min(free.values(), default=0) < 0:
        return None
    for number, zones in enumerate(taken):
        while len(zones) < pods:
            steps = _shortest(number, taken, fixed, runs, free)
            if not steps:
                return None
            for shard, into, out in steps:
                taken[shard].discard(out)
                taken[shard].add(into)
            free[steps[0][1]] -= 1
    return taken


def _shortest(
    number: int,
    taken: Sequence[set[str]],
    fixed: Sequence[frozenset[str]],
    runs: Sequence[frozenset[str]],
    free: Mapping[str, int],
) -> list[_Step]:
    """Return the fewest moves that give a shard one more zone, the last move first.

    Empty if impossible. If all zones for the shard are full, pods of other shards must move. Each move frees a place in
    a zone, and the last move goes to a zone that is not full. The path of zones is found with Bellman-Ford.
    """
    wanted = runs[number] - taken[number] or free.keys() - taken[number]
    if at_once := [zone for zone in free if free[zone] and zone in wanted]:
        return [(number, max(at_once, key=free.__getitem__), "")]
    costs = {zone: int(zone not in runs[number]) for zone in free if zone not in taken[number]}
    last: dict[str, _Step] = {zone: (number, zone, "") for zone in costs}
    edges = _exchanges(taken, fixed, runs, free)
    for _ in free:
        for (out, into), (cost, shard) in edges.items():
            if out in costs and costs[out] + cost < costs.get(into, len(taken) + 1):
                costs[into], last[into] = costs[out] + cost, (shard, into, out)
    ends = [zone for zone in costs if free[zone]]
    steps, zone = list[_Step](), min(ends, key=costs.__getitem__) if ends else ""
    while zone:
        steps.append(last[zone])
        zone = last[zone][2]
    return steps


def _exchanges(
    taken: Sequence[set[str]], fixed: Sequence[frozenset[str]], runs: Sequence[frozenset[str]], zones: Iterable[str]
) -> dict[tuple[str, str], tuple[int, int]]:
    """Return the cheapest shard to move from one zone to another, for each pair.

    The result maps (old zone, new zone) to the additional number of moved pods, and the shard's number.
    """
    exchanges = dict[tuple[str, str], tuple[int, int]]()
    for number, (has, stays, there) in enumerate(zip(taken, fixed, runs, strict=True)):
        for out in sorted(has - stays):
            for into in zones:
                cost = (out in there) - (into in there)
                if into not in has and cost < exchanges.get((out, into), (2, 0))[0]:
                    exchanges[out, into] = (cost, number)
    return exchanges


def _targets(loads: Mapping[str, int], pods: int, most: Mapping[str, int]) -> dict[str, int] | None:
    """Return the wanted number of pods of each zone, as even as possible.

    ``loads`` are the pods already fixed in each zone. ``pods`` is the total. None if a zone exceeds its limit in
    ``most``.
    """
    targets = dict(loads)
    if any(targets[zone] > most[zone] for zone in targets):
        return None
    for _ in range(pods - sum(loads.values())):
        open_ = [zone for zone in targets if targets[zone] < most[zone]]
        targets[min(open_, key=targets.__getitem__)] += 1
    return targets
