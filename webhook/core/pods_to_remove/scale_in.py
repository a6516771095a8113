"""The distributions over domains that a scale-in can leave.

    removal_of     RemovalGroups -> Removal         the pods removed in every order, and the tie group that is cut
    scale_in_of    one constraint, Removal -> ScaleIn
    worst_stop     one constraint, RemovalGroups -> WorstStop    over all numbers of pods in between

The controller removes whole tie groups, then chance selects pods of one more group, the cut group.
All results are closed forms (`cut_counts.py`). No removal order is tried.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from webhook.core.pods_to_remove.cut_counts import CutCounts
from webhook.core.pods_to_remove.removal_order import RemovalGroups
from webhook.core.pods_to_remove.running_pod import RunningPod
from webhook.core.scheduler.plugins.pod_topology_spread import DomainCounts


class Removal(Struct, frozen=True, kw_only=True):
    """The pods removed by a scale-in.

    Attributes:
        removed: The pods removed in every order.
        cut: The tie group with both removed and kept pods. Empty if no group has both.
        kept: The number of kept pods of ``cut``.
    """

    removed: tuple[RunningPod, ...] = ()
    cut: tuple[RunningPod, ...] = ()
    kept: int = 0

    @property
    def number(self) -> int:
        """The number of removed pods."""
        return len(self.removed) + len(self.cut) - self.kept


class Distribution(Struct, frozen=True):
    """The matching pods of every eligible domain, by the topology key's value. ``skew`` is None without a domain."""

    counts: Mapping[str, int]
    skew: int | None


class WorstStop(Struct, frozen=True, order=True):
    """A bound of the skew, if a scale-in can stop at every number of pods, and the highest such number.

    No series of scale-ins exceeds it. Some series reaches it if no pods share a node.
    """

    skew: int
    replicas: int


class ScaleIn(Struct, frozen=True, kw_only=True):
    """The distributions of a constraint before and after a scale-in.

    Attributes:
        best: The smallest skew of all removal orders.
        worst: The largest skew of all removal orders.
        likely: The most frequent distribution, if chance selects from the cut group.
        repair: The new pods that bring ``worst`` within maxSkew, if each goes to the domain with the fewest pods. None
            if no number of pods does.
        stop: The worst number of pods in between. None without an eligible domain, or without a removed pod.
    """

    today: Distribution
    best: Distribution
    likely: Distribution
    worst: Distribution
    repair: int | None
    stop: WorstStop | None = None

    @property
    def emptied(self) -> tuple[str, ...]:
        """The domains with a pod today, and without one in ``worst``."""
        left = self.worst.counts
        return tuple(value for value, pods in self.today.counts.items() if pods and not left[value])


def removal_of(groups: RemovalGroups, number: int) -> Removal:
    """Return the removal of the first ``number`` pods of the groups."""
    removed = list[RunningPod]()
    for group in groups:
        if len(removed) + len(group) > number:
            return Removal(removed=tuple(removed), cut=group, kept=len(removed) + len(group) - number)
        removed += group
    return Removal(removed=tuple(removed))


def counted_domain(domains: DomainCounts, pod: RunningPod, slots: Mapping[str, int]) -> int | None:
    """Return the number of the domain that counts the pod, or None. ``slots`` has the slot of each node by name."""
    slot = slots.get(pod.node)
    if slot is None or not domains.counting >> slot & 1 or not domains.constraint.selector.matches(pod.labels):
        return None
    return domains.column.domain_of[slot]


def _counted(
    domains: DomainCounts, numbers: Sequence[int], pods: Sequence[RunningPod], slots: Mapping[str, int]
) -> list[int]:
    """Count the pods in each of the domains."""
    by_domain = dict.fromkeys(numbers, 0)
    for pod in pods:
        number = counted_domain(domains, pod, slots)
        if number is not None:
            by_domain[number] += 1
    return [*by_domain.values()]


def worst_stop(
    domains: DomainCounts, groups: RemovalGroups, pods: int, fewest: int, slots: Mapping[str, int]
) -> WorstStop | None:
    """Return the worst number of pods from ``pods`` - 1 down to ``fewest``. None if there is none, or no domain.

    Args:
        domains: The constraint's counts in the present cluster.
        groups: The groups of removed pods, in every step of the scale-in.
        pods: The number of pods today.
        fewest: The number of pods at the end.
        slots: The slot of each node, by name.
    """
    numbers, left, worst = [*domains.column.domains(domains.counting)], pods, list[WorstStop]()
    staying = [domains.match_num.get(number, 0) for number in numbers]
    for group in groups if numbers else ():
        cut = _counted(domains, numbers, group, slots)
        staying = [max(0, now - maybe) for now, maybe in zip(staying, cut, strict=True)]
        left -= len(group)
        most, least = min(len(group), pods - 1 - left), max(0, fewest - left)
        # Between these numbers of kept pods, the skew of two domains is a linear function.
        turns = {most, least, *cut, *(len(group) - number for number in cut)}
        for kept in turns:
            if least <= kept <= most:
                counts = CutCounts(
                    staying=staying,
                    cut=cut,
                    uncounted=len(group) - sum(cut),
                    kept=kept,
                    too_few=domains.too_few,
                )
                worst.append(WorstStop(counts.worst_skew(), left + kept))
        if left <= fewest:
            break
    return max(worst, default=None)


def scale_in_of(
    domains: DomainCounts, removal: Removal, slots: Mapping[str, int], stop: WorstStop | None = None
) -> ScaleIn:
    """Compute the distributions of one constraint.

    Args:
        domains: The constraint's counts in the present cluster.
        removal: The removed pods. They are in the constraint's namespace.
        slots: The slot of each node, by name.
        stop: The result of `worst_stop`.
    """
    column, constraint = domains.column, domains.constraint
    numbers = sorted(column.domains(domains.counting), key=column.values.__getitem__)
    today = [domains.match_num.get(number, 0) for number in numbers]
    removed = _counted(domains, numbers, removal.removed, slots)
    cut = _counted(domains, numbers, removal.cut, slots)
    counts = CutCounts(
        staying=[max(0, now - gone - maybe) for now, gone, maybe in zip(today, removed, cut, strict=True)],
        cut=cut,
        uncounted=len(removal.cut) - sum(cut),
        kept=removal.kept,
        too_few=domains.too_few,
    )
    names = [column.values[number] for number in numbers]

    def distribution(pods: Sequence[int]) -> Distribution:
        return Distribution(dict(zip(names, pods, strict=True)), counts.skew(pods) if names else None)

    worst = counts.worst()
    return ScaleIn(
        today=distribution(today),
        best=distribution(counts.best()),
        likely=distribution(counts.likely()),
        worst=distribution(worst),
        repair=counts.repair(worst, constraint.max_skew, matches=bool(domains.self_match)),
        stop=stop,
    )
