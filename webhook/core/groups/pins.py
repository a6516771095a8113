"""Zones for each shard, so that every zone gets the number of pods that it is to have, whatever the order.

A shard whose pods share no zone, and that may use exactly as many zones as it has pods, puts one pod into each. So the
zones of the shards decide what every zone holds, and no pod takes the place of another zone's.
"""

from collections.abc import Mapping, Sequence

from webhook.core.groups.group import Loads


def pin(shards: Sequence[Sequence[str]], pods: int, rooms: Mapping[str, int]) -> Loads | None:
    """Give each shard of so many pods a zone for each of them; None if there is no way.

    Shape: ``shards`` has the zones that are settled already for each of them. ``rooms`` are the most pods of each
    zone, in the order in which equal ones are taken. A shard's zones depend on the shards before it, the rooms and the
    number of shards alone, and every beginning of the list is about as even as the whole.
    """
    settled = [tuple(zone for zone in each if zone in rooms)[:pods] for each in shards]
    loads = {zone: sum(zone in each for each in settled) for zone in rooms}
    targets = _targets(loads, pods * len(shards), {zone: min(room, len(shards)) for zone, room in rooms.items()})
    if targets is None or pods > len(rooms):
        return None
    given = []
    for number, known in enumerate(settled):
        chosen, left = list(known), sum(len(each) < pods for each in settled[number:])
        for _ in range(pods - len(known)):
            open_ = [each for each in rooms if each not in chosen and loads[each] < targets[each]]
            if not open_:
                return None  # what is settled leaves no way
            # A zone that needs a pod of each shard to come gets one now; else what lags behind its target most.
            zone = min(open_, key=lambda each: (targets[each] - loads[each] < left, loads[each] / targets[each]))
            loads[zone] += 1
            chosen.append(zone)
        given.append(tuple(sorted(chosen)))
    return Loads(tuple(given), loads)


def _targets(loads: Mapping[str, int], pods: int, most: Mapping[str, int]) -> dict[str, int] | None:
    """How many of so many pods each zone gets, as evenly as can be; None if these zones do not take them all."""
    targets = dict(loads)
    if sum(most.values()) < pods or any(targets[zone] > most[zone] for zone in targets):
        return None
    for _ in range(pods - sum(loads.values())):
        open_ = [zone for zone in targets if targets[zone] < most[zone]]
        targets[min(open_, key=targets.__getitem__)] += 1
    return targets
