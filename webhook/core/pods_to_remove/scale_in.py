"""The distributions over domains that a scale-in can leave.

    removal_of     RemovalGroups -> Removal         the pods removed in every order, and the tie group that is cut
    scale_in_of    one constraint, Removal -> ScaleIn
    worst_stop     one constraint, RemovalGroups -> WorstStop    over all numbers of pods in between

The controller removes whole tie groups, then chance selects pods of one more group, the cut group:

    pods of a domain afterwards = pods that stay in every order + kept pods of the cut group

All results are closed forms. No removal order is tried.
"""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush, nsmallest

from msgspec import Struct

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


class CutCounts(Struct, frozen=True, kw_only=True):
    """The pods of each eligible domain around a cut group.

    Attributes:
        staying: The matching pods that stay in every order.
        cut: The matching pods of the cut group.
        uncounted: The other pods of the cut group.
        kept: The number of kept pods of the cut group.
        too_few: Whether there are fewer domains than minDomains. The global minimum is 0 then.
    """

    staying: Sequence[int]
    cut: Sequence[int]
    uncounted: int = 0
    kept: int
    too_few: bool = False

    def skew(self, counts: Sequence[int]) -> int:
        """Source: kube-scheduler podtopologyspread/filtering.go ``minMatchNum``, ``Filter``."""
        return max(counts, default=0) - (0 if self.too_few else min(counts, default=0))

    def best(self) -> list[int]:
        """Return the counts with the smallest skew: each kept pod is in the lowest possible domain."""
        counts, left = [*self.staying], [*self.cut]
        lowest = [(pods, domain) for domain, pods in enumerate(counts) if left[domain]]
        heapify(lowest)
        # Uncounted pods can stay instead of counted pods. Fewer counted pods can have the smaller skew.
        answers = list[list[int]]()
        for number in range(self.kept + 1):
            if number >= self.kept - self.uncounted:
                answers.append([*counts])
            if not lowest:
                break
            pods, domain = heappop(lowest)
            counts[domain] += 1
            left[domain] -= 1
            if left[domain]:
                heappush(lowest, (pods + 1, domain))
        return min(reversed(answers), key=self.skew)

    def worst(self) -> list[int]:
        """Return the counts with the largest skew: one domain keeps the most pods, another the fewest."""
        _, most, fewest, low = self._extremes()
        counts, rest = [*self.staying], self.kept
        for domain, limit in self._turns(most, fewest, low):
            pods = min(limit, rest)
            rest -= pods
            if domain is not None:
                counts[domain] += pods
        return counts

    def worst_skew(self) -> int:
        """Return the skew of `worst`."""
        return self._extremes()[0]

    def _extremes(self) -> tuple[int, int, int, Sequence[int]]:
        """Return the largest skew, its domains with the most and the fewest pods, and the fewest pods of each domain.

        The domain with the fewest pods is -1 if the global minimum is 0, or if there is no other domain.
        """
        others = self.uncounted + sum(self.cut)
        high = [pods + min(cut, self.kept) for pods, cut in zip(self.staying, self.cut, strict=True)]
        low = [pods + max(0, self.kept - others + cut) for pods, cut in zip(self.staying, self.cut, strict=True)]
        domains = range(len(high))
        full = nsmallest(2, domains, key=lambda domain: -high[domain])
        if self.too_few:
            return max(high, default=0), next(iter(full), 0), -1, low
        bare = nsmallest(2, domains, key=low.__getitem__)
        pairs = [(high[most] - low[fewest], most, fewest) for most in full for fewest in bare if most != fewest]
        return *max(pairs, key=lambda pair: pair[0], default=(0, 0, -1)), low

    def _turns(self, most: int, fewest: int, low: Sequence[int]) -> list[tuple[int | None, int]]:
        """Return the domains in the order in which the worst case keeps their pods, each with its number of pods.

        After the two extremes, domains with a pod are first, so that many domains stay empty. None has uncounted pods.
        """
        rest = sorted(
            (domain for domain in range(len(self.cut)) if domain not in {most, fewest}),
            key=lambda domain: (not self.staying[domain], -self.cut[domain]),
        )
        first: list[tuple[int | None, int]] = []
        if fewest >= 0:
            first.append((fewest, low[fewest] - self.staying[fewest]))
        if most < len(self.cut):
            first.append((most, self.cut[most]))
        return [*first, (None, self.uncounted), *((domain, self.cut[domain]) for domain in rest)]

    def likely(self) -> list[int]:
        """Return the most probable counts, if each set of kept pods is equally probable.

        This is the mode of a multivariate hypergeometric distribution.
        """
        sizes, counts = [*self.cut, self.uncounted], [0] * (len(self.cut) + 1)
        # Of c pods, k+1 are kept (c-k)/(k+1) times as often as k.
        ratios = [(-float(size), domain) for domain, size in enumerate(sizes) if size]
        heapify(ratios)
        for _ in range(self.kept):
            _, domain = heappop(ratios)
            counts[domain] += 1
            if counts[domain] < sizes[domain]:
                ratio = (sizes[domain] - counts[domain]) / (counts[domain] + 1)
                heappush(ratios, (-ratio, domain))
        return [pods + kept for pods, kept in zip(self.staying, counts, strict=False)]

    def repair(self, counts: Sequence[int], max_skew: int, *, matches: bool) -> int | None:
        """Return the number of new pods until the skew is within maxSkew, if each goes to the lowest domain.

        None if the global minimum has to rise, and does not: new pods do not match, or there are too few domains.
        """
        if self.skew(counts) <= max_skew:
            return 0
        if self.too_few or not matches:
            return None
        return sum(max(0, max(counts) - max_skew - pods) for pods in counts)


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
                    too_few=len(numbers) < domains.constraint.min_domains,
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
        too_few=len(numbers) < constraint.min_domains,
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
