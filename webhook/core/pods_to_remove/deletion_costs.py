"""Pod deletion costs for an even scale-in of a ReplicaSet.

    spread_limits     constraints, ready pods -> SpreadLimits
    removal_plan      SpreadLimits -> RemovalPlan              the order of removal, fullest domains first
    deletion_costs    RemovalPlan -> a cost for each pod       as few changed costs as possible

The ReplicaSet controller removes pods that are not ready first, in any case. Costs order the ready pods after them.
"""

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from webhook.core.api.types import DO_NOT_SCHEDULE
from webhook.core.explain.explanation import Balance
from webhook.core.pods_to_remove.running_pod import RunningPod
from webhook.core.pods_to_remove.scale_in import counted_domain

# Between two costs: room for ten pods that come later, each halving a gap.
_GAP = 1024
_BEFORE_FIRST = 1 << 20  # room below for pods that are removed earlier
_MOST_COST = 2**31 - 1


class SpreadLimit(Struct, frozen=True, kw_only=True):
    """A constraint, with the domains of a ReplicaSet's ready pods.

    Attributes:
        counts: The matching pods of every eligible domain, without the ReplicaSet's pods that are not ready.
        domain_of: The domain of each ready pod by name: an index in ``counts``. Uncounted pods are absent.
        too_few: Whether there are fewer domains than minDomains. The global minimum is 0 then.
    """

    max_skew: int
    hard: bool
    counts: tuple[int, ...]
    domain_of: Mapping[str, int]
    too_few: bool = False


class RemovalPlan(Struct, frozen=True):
    """Ready pods in their order of removal.

    Attributes:
        worst_skew: The largest skew after any removal, over all constraints.
        above: Whether a removal leaves a skew above maxSkew.
    """

    order: tuple[RunningPod, ...]
    worst_skew: int
    above: bool


def spread_limits(
    balances: Iterable[Balance], active: Sequence[RunningPod], slots: Mapping[str, int]
) -> tuple[SpreadLimit, ...] | None:
    """Return the limits of the ready pods, hard constraints first. None if the cluster has fewer pods than ``active``.

    Args:
        balances: The constraints of the pods, with their present counts.
        active: The active pods of the ReplicaSet.
        slots: The slot of each node, by name.
    """
    limits = list[SpreadLimit]()
    for balance in balances:
        domains, hard = balance.domains, balance.written.when_unsatisfiable == DO_NOT_SCHEDULE
        numbers = sorted(domains.column.domains(domains.counting))
        places, domain_of = {number: place for place, number in enumerate(numbers)}, dict[str, int]()
        counts = [domains.match_num.get(number, 0) for number in numbers]
        staying = [*counts]
        for pod in active:
            number = counted_domain(domains, pod, slots)
            if number is None:
                continue
            domain = places[number]
            staying[domain] -= 1
            if pod.ready:
                domain_of[pod.name] = domain
            else:
                counts[domain] -= 1
        if min(staying, default=0) < 0:
            return None
        if not domain_of:
            continue  # No order of removal changes its counts.
        limits.append(
            SpreadLimit(
                max_skew=domains.constraint.max_skew,
                hard=hard,
                counts=tuple(counts),
                domain_of=domain_of,
                too_few=domains.too_few,
            )
        )
    return tuple(sorted(limits, key=lambda limit: not limit.hard))


def removal_plan(ready: Iterable[RunningPod], limits: Sequence[SpreadLimit]) -> RemovalPlan:
    """Return an order of removal with each prefix within maxSkew, as far as possible.

    Each step removes the pod that leaves the smallest excess over hard constraints, then over soft ones, then a pod of
    the fullest domains. Equal pods keep the order of their present costs, then upstream's: the newest first.
    """
    states = [_Domains(limit) for limit in limits]
    classes: dict[tuple[int | None, ...], list[RunningPod]] = {}
    for pod in sorted(ready, key=_preference, reverse=True):
        classes.setdefault(tuple(limit.domain_of.get(pod.name) for limit in limits), []).append(pod)
    order, worst, above = list[RunningPod](), 0, False
    while classes:
        place = min(classes, key=lambda place: (*_effect(states, place), _preference(classes[place][-1])))
        order.append(classes[place].pop())
        if not classes[place]:
            del classes[place]
        for state, domain in zip(states, place, strict=True):
            state.remove(domain)
            skew = state.skew(None)
            worst, above = max(worst, skew), above or skew > state.limit.max_skew
    return RemovalPlan(tuple(order), worst, above)


def deletion_costs(order: Sequence[RunningPod]) -> dict[str, int]:
    """Return increasing costs for pods in this order, by name. Most pods keep their present cost.

    A pod's cost of 0 counts as absent, so that a new pod gets a cost of its own.
    """
    kept = [-1, *_longest_increasing([pod.deletion_cost for pod in order]), len(order)]
    costs: dict[str, int] = {}
    for before, after in itertools.pairwise(kept):
        between = order[before + 1 : after]
        low = None if before < 0 else order[before].deletion_cost
        high = None if after == len(order) else order[after].deletion_cost
        if high is None:
            steps = range(1, len(between) + 1)
            values = [(_BEFORE_FIRST if low is None else low) + _GAP * step for step in steps]
        elif low is None:
            values = [high - _GAP * step for step in range(len(between), 0, -1)]
        else:
            values = [low + (high - low) * step // (len(between) + 1) for step in range(1, len(between) + 1)]
        costs |= {pod.name: value for pod, value in zip(between, values, strict=True)}
        if after < len(order):
            costs[order[after].name] = order[after].deletion_cost
    values = [*costs.values()]
    if 0 in values or sorted({*values}) != values or max(map(abs, values), default=0) > _MOST_COST:
        return {pod.name: _BEFORE_FIRST + _GAP * number for number, pod in enumerate(order, 1)}
    return costs


def _longest_increasing(costs: Sequence[int]) -> list[int]:
    """Return the indexes of a longest strictly increasing subsequence, without costs of 0."""
    lows, ends = list[int](), list[int]()
    before = dict[int, int]()
    for index, cost in enumerate(costs):
        if not cost:
            continue
        place = bisect_left(lows, cost)
        lows[place : place + 1], ends[place : place + 1] = [cost], [index]
        before[index] = ends[place - 1] if place else -1
    chain, index = list[int](), ends[-1] if ends else -1
    while index >= 0:
        chain.append(index)
        index = before[index]
    return chain[::-1]


def _preference(pod: RunningPod) -> tuple[int, int, str]:
    return pod.deletion_cost, -(pod.ready_since or 0), pod.name


def _effect(states: Sequence["_Domains"], place: tuple[int | None, ...]) -> tuple[int, ...]:
    """Return the excess over hard, then soft constraints after a removal, then the fullness of the pod's domains."""
    hard = soft = 0
    fullness = list[int]()
    for state, domain in zip(states, place, strict=True):
        excess = max(0, state.skew(domain) - state.limit.max_skew)
        hard, soft = hard + excess * state.limit.hard, soft + excess * (not state.limit.hard)
        fullness.append(0 if domain is None else -state.counts[domain])
    return hard, soft, *fullness


class _Domains:
    """The counts of a constraint while pods are removed."""

    def __init__(self, limit: SpreadLimit) -> None:
        self.limit = limit
        self.counts = [*limit.counts]
        self._most, self._fewest = max(self.counts, default=0), min(self.counts, default=0)
        self._fullest = self.counts.count(self._most)

    def skew(self, removed: int | None) -> int:
        """Return the skew after the removal of a pod in this domain. None for no removal."""
        most, fewest = self._most, self._fewest
        if removed is not None:
            most -= self.counts[removed] == most and self._fullest == 1
            fewest = min(fewest, self.counts[removed] - 1)
        return most - (0 if self.limit.too_few else fewest)

    def remove(self, domain: int | None) -> None:
        if domain is not None:
            self.counts[domain] -= 1
            self._most, self._fewest = max(self.counts), min(self.counts)
            self._fullest = self.counts.count(self._most)
