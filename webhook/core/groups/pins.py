"""Zones for each shard, so that every zone gets the number of pods that it is to have, whatever the order.

A shard whose pods share no zone, and that may use exactly as many zones as it has pods, puts one pod into each. So the
zones of the shards decide what every zone holds, and no pod takes the place of another zone's.

Pods that run stay where they are as far as that can be: of all ways, one in which the fewest shards get a zone that
none of their pods is in.
"""

from collections.abc import Iterable, Mapping, Sequence

from webhook.core.groups.group import Loads

# With more zones and many pods to move, the fewest moves would take seconds.
_MOST_ZONES = 16

_Step = tuple[int, str, str]  # a shard, the zone that it takes, the one that it leaves for it


def pin(
    shards: Sequence[Sequence[str]], pods: int, rooms: Mapping[str, int], running: Sequence[Sequence[str]] = ()
) -> Loads | None:
    """Give each shard of so many pods a zone for each of them. None if there is no way.

    Args:
        shards: The settled zones of each shard.
        pods: The pods of a shard.
        rooms: The most pods of each zone. Of equal zones, the first is taken.
        running: The zones of each shard's running pods, for more shards than these or for none.

    Returns:
        Pins that only depend on the shards before, the rooms, the number of shards and what runs. Every beginning of
        the list is about as even as the whole.
    """
    most = {zone: min(room, len(shards)) for zone, room in rooms.items()}
    if pods > len(rooms) or sum(most.values()) < pods * len(shards):
        return None  # a search would take long to find no way
    settled = [tuple(zone for zone in each if zone in rooms)[:pods] for each in shards]
    if any(running[: len(shards)]) and len(rooms) <= _MOST_ZONES:
        whole = _fewest_moves(settled, running, pods, rooms)
        settled = settled if whole is None else staying(whole, settled, running)
    loads = _loads(settled, rooms)
    targets = _targets(loads, pods * len(shards), most)
    if targets is None:
        return None
    found = _evenly(settled, pods, targets) or _fewest_moves(settled, ((),) * len(shards), pods, rooms)
    return None if found is None else Loads(tuple(tuple(sorted(each)) for each in found), _loads(found, rooms))


def staying(
    given: Iterable[Iterable[str]], settled: Iterable[Sequence[str]], running: Sequence[Sequence[str]]
) -> list[tuple[str, ...]]:
    """Of the zones that shards are given, those that were settled, and those in which their pods are."""
    return [
        (*known, *(zone for zone in runs if zone in zones and zone not in known))
        for zones, known, runs in zip(map(set, given), settled, running, strict=False)
    ]


def _loads(given: Iterable[Iterable[str]], rooms: Mapping[str, int]) -> dict[str, int]:
    held = [zone for each in given for zone in each]
    return {zone: held.count(zone) for zone in rooms}


def _evenly(settled: Sequence[Sequence[str]], pods: int, targets: Mapping[str, int]) -> list[list[str]] | None:
    """Zones by which each zone reaches its target. None if this greedy choice gets stuck."""
    given, loads = list[list[str]](), _loads(settled, targets)
    for number, known in enumerate(settled):
        chosen, left = list(known), sum(len(each) < pods for each in settled[number:])
        for _ in range(pods - len(known)):
            open_ = [each for each in targets if each not in chosen and loads[each] < targets[each]]
            if not open_:
                return None
            # A zone that needs a pod of each shard to come gets one now; else what lags behind its target most.
            zone = min(open_, key=lambda each: (targets[each] - loads[each] < left, loads[each] / targets[each]))
            loads[zone] += 1
            chosen.append(zone)
        given.append(chosen)
    return given


def _fewest_moves(
    settled: Sequence[Sequence[str]], running: Sequence[Sequence[str]], pods: int, rooms: Mapping[str, int]
) -> list[set[str]] | None:
    """Zones for all pods that move the fewest pods. None if there is no way."""
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
    """The fewest moves that give a shard one more zone, last step first. Empty if there are none.

    Each zone on the way is left by a pod of another shard, which takes the next; the last has room (Bellman-Ford).
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
    """By pair of zones, out of and into: the fewest additional moves, and the shard that makes them."""
    found = dict[tuple[str, str], tuple[int, int]]()
    for number, (has, stays, there) in enumerate(zip(taken, fixed, runs, strict=True)):
        for out in sorted(has - stays):
            for into in zones:
                cost = (out in there) - (into in there)
                if into not in has and cost < found.get((out, into), (2, 0))[0]:
                    found[out, into] = (cost, number)
    return found


def _targets(loads: Mapping[str, int], pods: int, most: Mapping[str, int]) -> dict[str, int] | None:
    """The target of each zone, as even as possible. None if a zone exceeds its limit."""
    targets = dict(loads)
    if any(targets[zone] > most[zone] for zone in targets):
        return None
    for _ in range(pods - sum(loads.values())):
        open_ = [zone for zone in targets if targets[zone] < most[zone]]
        targets[min(open_, key=targets.__getitem__)] += 1
    return targets
