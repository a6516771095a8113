"""Bounds on the number of pods placed under a zone constraint and a host constraint together."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from webhook.core.placement.proofs.bounds import MAX_PODS_ON_A_HOST, DomainState, SkewLimit

_UNLIMITED = 2**31  # More than any number of replicas.


class Zone(NamedTuple):
    """A domain of a constraint, with its hosts as domains of a second constraint.

    Attributes:
        pods: The zone's pods counted by the first constraint.
        hosts: The number of hosts for each `DomainState`. The second constraint counts ``DomainState.pods``.
    """

    pods: int
    hosts: Mapping[DomainState, int]


class PossibleEnds(NamedTuple):
    """The possible numbers of placed pods at the end of a scheduling order.

    Attributes:
        stuck: The possible numbers if a pod stays Pending, ascending.
        fits: Whether an order may place all pods.
    """

    stuck: tuple[int, ...]
    fits: bool


def ends_on_hosts(
    zones: Sequence[Zone], closed_minimum: int | None, of_zones: SkewLimit, max_skew: int, wanted: int
) -> PossibleEnds | None:
    """Return the possible final pod counts under one zone and one host constraint.

    Some of these counts may be unreachable. The proof tries every global minimum over hosts, in ascending order. When
    no further pod can be placed, each zone is closed for one of two reasons:

    1. Every host of the zone is full, or maxSkew above the minimum over hosts.
    2. The zone is maxSkew above the minimum over zones.

    The zone with the fewest pods is closed for reason 1. Its number of pods thus follows from the minimum over hosts,
    and limits every other zone. The next minimum is reachable only if every zone can take enough pods to lift its
    hosts to it.

    Args:
        zones: The eligible zones. A zone without hosts takes no pod.
        closed_minimum: The lowest count on eligible hosts closed to the pod. None if every host is open.
        of_zones: The constraint on zones.
        max_skew: The maxSkew of the constraint on hosts.
        wanted: The number of pods to place.

    Returns:
        The final counts. None if hosts would take more pods than the proof tries.
    """
    minimum = min((cell.pods for zone in zones for cell in zone.hosts), default=0)
    most = [_UNLIMITED if cell.room is None else cell.pods + cell.room for zone in zones for cell in zone.hosts]
    highest, stuck = min(most, default=0), list[int]()
    if closed_minimum is not None:
        minimum = min(minimum, closed_minimum) if most else closed_minimum
        highest = min(highest, closed_minimum) if most else closed_minimum
    for _ in range(MAX_PODS_ON_A_HOST):
        rooms = [_below(zone, minimum + max_skew) for zone in zones]
        filled = (zone.pods + room for zone, room in zip(zones, rooms, strict=True))
        # The zone with the least room holds down the minimum, and with it every other zone.
        top = (min(filled, default=0) if of_zones.enough else 0) + of_zones.max_skew
        gains = [min(room, max(0, top - zone.pods)) for zone, room in zip(zones, rooms, strict=True)]
        if sum(gains) >= wanted:
            return PossibleEnds(tuple(stuck), fits=True)
        if closed_minimum == minimum or any(
            gain <= room - _least_gap(zone, minimum, max_skew)
            for zone, room, gain in zip(zones, rooms, gains, strict=True)
        ):
            stuck.append(sum(gains))
        minimum += 1
        if minimum > highest or any(_below(zone, minimum) > gain for zone, gain in zip(zones, gains, strict=True)):
            return PossibleEnds(tuple(stuck) or (0,), fits=False)
    return None


def addable_on_hosts(
    zones: Sequence[Zone], closed_minimum: int | None, of_zones: SkewLimit, of_hosts: SkewLimit, wanted: int
) -> int | None:
    """Return the most pods placed by any order.

    None if all ``wanted`` pods can fit, or if unknown. The arguments are those of `ends_on_hosts`. ``of_hosts`` is
    the constraint on hosts.
    """
    ends = ends_on_hosts(zones, closed_minimum if of_hosts.enough else 0, of_zones, of_hosts.max_skew, wanted)
    return None if ends is None or ends.fits else ends.stuck[-1]


def _below(zone: Zone, minimum: int) -> int:
    """Return how many pods the zone needs until each of its hosts is full or at the minimum."""
    return sum(
        hosts * (minimum - cell.pods if cell.room is None else min(minimum - cell.pods, cell.room))
        for cell, hosts in zone.hosts.items()
        if cell.pods < minimum
    )


def _least_gap(zone: Zone, minimum: int, max_skew: int) -> int:
    """Return by how few pods a zone can stay below its maximum.

    One host is assumed to stay emptiest. The emptiest host has ``minimum`` pods. At the zone's maximum, each host is
    full or has ``minimum + max_skew`` pods.
    """
    return min(
        (
            max_skew if cell.room is None else min(max_skew, cell.pods + cell.room - minimum)
            for cell in zone.hosts
            if cell.pods <= minimum
        ),
        default=_UNLIMITED,
    )
