"""The smallest changes to a pod's own hard constraints after which some node admits it.

Each was evaluated: the same filters, run again with the changed constraints, leave a node. This is about one pod;
whether the pods after it fit too is not evaluated.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import LabelSelector, Pod
from webhook.core.changes.change import (
    NODE_AFFINITY_POLICY,
    NODE_TAINTS_POLICY,
    Change,
    Changes,
    hard_after,
    honored,
    softened,
    with_changes,
)
from webhook.core.index.key_suggestions import meant_by, near
from webhook.core.index.tables.node_table import NodeView
from webhook.core.scheduler.cycle import Cycle, decide
from webhook.core.scheduler.plugins.pod_topology_spread import Counted, Domains
from webhook.core.scheduler.problem import Problem

# The largest maxSkew that the API accepts stands for no limit.
_NO_LIMIT = 2**31 - 1


class PodFix(Struct, frozen=True):
    """Changes after which some node admits the pod; ``open`` are those nodes."""

    changes: Changes
    open: int

    @property
    def nodes(self) -> int:
        """How many nodes then admit the pod."""
        return self.open.bit_count()


class Narrowing(Struct, frozen=True, kw_only=True):
    """Constraints that count pods of other workloads, and selectors with which they count only the pod's own workload.

    Shape: by the constraint's index in the pod. For ``agreed`` ones the other workloads are spread over the same key,
    so that counting them may be intended. ``take`` makes the problem of a pod with other selectors.
    """

    selectors: Mapping[int, LabelSelector]
    agreed: frozenset[int]
    take: Callable[[Pod], Problem]


def changed(problem: Problem, change: Callable[[Problem], Problem]) -> Problem:
    """The problem with a change, also where nominated pods are counted."""
    nominated = {slot: change(each) for slot, each in problem.nominated.items()}
    return replace(change(problem), nominated=nominated)


def fixes(problem: Problem, narrowing: Narrowing | None = None, *, well_known: bool = False) -> Iterator[PodFix]:
    """Fixes for a pod that no node admits, smallest first; none if only a change of the cluster helps.

    Shape: first the correction of misspelt keys, with one of the other changes if need be. Then changes of one
    constraint; if none of these helps, the same change of all constraints. Each is evaluated when it is taken from the
    iterator. ``well_known`` as in `near`.
    """
    declared = [index for index, each in enumerate(problem.pod.pod_spec.constraints) if each.hard]
    if len(declared) != len(problem.hard.constraints):
        return  # the constraints are the cluster's defaults, or have an invalid selector
    yield from _respelt(problem, declared, well_known=well_known)
    # A selector that others chose too is meant to count their pods, and is narrowed only after all else.
    meant = narrowing and {*narrowing.selectors} - narrowing.agreed
    if narrowing and meant:
        yield from _narrowed(problem.pod, narrowing, sorted(meant))
    yield from _loosened(problem, declared)
    if narrowing and narrowing.agreed:
        yield from _narrowed(problem.pod, narrowing, sorted(narrowing.selectors))


def _loosened(problem: Problem, declared: Sequence[int]) -> Iterator[PodFix]:
    domains = dict(zip(declared, Cycle(problem).domains, strict=True))
    alone = [[index] for index in declared]
    # One constraint at a time, since a change of all gives up more than most pods need.
    for groups in (alone, [declared] if len(declared) > 1 else []):
        helped = False
        for candidates, group in product(_CANDIDATES, groups):
            changes = candidates(problem, domains, group)
            fix = _proven(problem, declared, changes) if changes else None
            if fix is not None:
                helped = True
                yield fix
        if helped:
            return


def meant_on(key: str, nodes: NodeView, *, well_known: bool = False) -> str | None:
    """For a key that no node has: the nodes' key that was probably meant, if any; ``well_known`` as in `near`."""
    if key in nodes.keys:
        return None
    meant = meant_by(key)
    return meant if meant in nodes.keys else near(key, nodes, well_known=well_known)


def _respelt(problem: Problem, declared: Sequence[int], *, well_known: bool) -> Iterator[PodFix]:
    """Correct the keys of all constraints whose key no node has; if that is not enough, with one more change."""
    constraints = problem.pod.pod_spec.constraints
    keys = {index: constraints[index].topology_key or "" for index in declared}
    guesses = {index: meant_on(key, problem.nodes, well_known=well_known) for index, key in keys.items()}
    meant = {index: key for index, key in guesses.items() if key is not None}
    there = {(each.topology_key, each.hard) for each in constraints}
    if not meant or len({*meant.values()}) < len(meant) or any((key, True) in there for key in meant.values()):
        return  # kube-apiserver refuses two constraints with the same key and whenUnsatisfiable
    changes = tuple(Change(index, "topologyKey", key) for index, key in meant.items())
    fix = _proven(problem, declared, changes)
    if fix is not None:
        yield fix
        return

    def with_keys(each: Problem) -> Problem:
        return replace(each, pod=_with(each.pod, changes), hard=_applied(each.hard, declared, changes))

    for more in _loosened(changed(problem, with_keys), declared):
        yield PodFix((*changes, *more.changes), more.open)


def _narrowed(pod: Pod, narrowing: Narrowing, places: Sequence[int]) -> Iterator[PodFix]:
    """Narrow the selector of one constraint; if that is not enough, of all that count other workloads."""
    helping = [fix for index in places if (fix := _with_selectors(pod, narrowing, [index]))]
    if not helping and len(places) > 1:
        helping = [fix for fix in [_with_selectors(pod, narrowing, places)] if fix]
    yield from helping


def _with_selectors(pod: Pod, narrowing: Narrowing, places: Sequence[int]) -> PodFix | None:
    changes = tuple(Change(index, "labelSelector", narrowing.selectors[index]) for index in places)
    feasible = decide(narrowing.take(_with(pod, changes))).feasible
    return PodFix(changes, feasible) if feasible else None


def _with(pod: Pod, changes: Changes) -> Pod:
    constraints = with_changes(pod.pod_spec.constraints, changes)
    return replace(pod, spec=replace(pod.pod_spec, topology_spread_constraints=constraints))


# The domains of each hard constraint, by its index in the pod.
_Domains = Mapping[int, Domains]


def _honored(field: str) -> Callable[..., Changes]:
    def changes(problem: Problem, _: _Domains, group: Sequence[int]) -> Changes:
        constraints = problem.pod.pod_spec.constraints
        return tuple(each for index in group for each in honored(constraints, index, field))

    return changes


def _fewer(_: Problem, domains: _Domains, group: Sequence[int]) -> Changes:
    """Lower minDomains to the number of eligible domains."""
    eligible = {index: domains[index].column.domain_count(domains[index].counting) for index in group}
    return tuple(
        Change(index, "minDomains", there)
        for index, there in eligible.items()
        if 0 < there < domains[index].constraint.min_domains
    )


def _widened(problem: Problem, domains: _Domains, group: Sequence[int]) -> Changes:
    """Raise maxSkew as little as possible, so that some node that passes all other filters is admitted."""
    unlimited = tuple(Change(index, "maxSkew", _NO_LIMIT) for index in group)
    open_ = decide(_changed(problem, [*domains], unlimited)).feasible
    combinations = []
    for slot, beside in problem.nominated.items():  # on these nodes, nominated pods count too
        known = dict(zip(domains, Cycle(beside).domains, strict=True))
        combinations += _needed([known[index] for index in group], open_ & 1 << slot)
        open_ &= ~(1 << slot)
    combinations += _needed([domains[index] for index in group], open_)
    # The least in all: of two constraints neither is raised for the sake of the other.
    _, needed = min(((sum(skews), skews) for skews in combinations), default=(0, ()))
    return tuple(
        Change(index, "maxSkew", skew)
        for index, skew in zip(group, needed, strict=False)
        if skew > domains[index].constraint.max_skew
    )


def _needed(several: Sequence[Domains], nodes: int) -> list[tuple[int, ...]]:
    """The combinations of maxSkew that these nodes need: one value for each constraint."""
    parts: list[tuple[tuple[int, ...], int]] = [((), nodes)] if nodes else []
    for domains in several:
        levels = [*_skews(domains)]
        parts = [
            ((*skews, skew), nodes & at_level)
            for skews, nodes in parts
            for skew, at_level in levels
            if nodes & at_level
        ]
    return [skews for skews, _ in parts]


def _skews(domains: Domains) -> Iterator[tuple[int, int]]:
    """The lowest maxSkew that admits the pod, with the nodes for which it does.

    Shape: the first entry has all nodes whose domains have no matching pod, including nodes without the key.
    """
    column, least = domains.column, domains.constraint.max_skew
    above: dict[int, list[int]] = {}
    rest = -1
    for number, pods in domains.match_num.items():
        # From the filter's formula: matching pods + self match - minimum <= maxSkew.
        above.setdefault(max(least, pods + domains.self_match - domains.global_minimum), []).append(number)
    crowded = {skew: column.nodes_of(numbers) for skew, numbers in above.items() if skew > least}
    for nodes in crowded.values():
        rest &= ~nodes
    yield max(least, domains.self_match - domains.global_minimum), rest
    yield from crowded.items()


def _softened(problem: Problem, _: _Domains, group: Sequence[int]) -> Changes:
    constraints = problem.pod.pod_spec.constraints
    return tuple(each for index in group for each in softened(constraints, index))


# From changes that still spread the pods over the nodes they can use to the one that gives up the guarantee.
_CANDIDATES: Sequence[Callable[[Problem, _Domains, Sequence[int]], Changes]] = (
    _honored(NODE_TAINTS_POLICY),
    _honored(NODE_AFFINITY_POLICY),
    _fewer,
    _widened,
    _softened,
)


def _proven(problem: Problem, declared: Sequence[int], changes: Changes) -> PodFix | None:
    """The changes as a fix, if some node then admits the pod."""
    feasible = decide(_changed(problem, declared, changes)).feasible
    return PodFix(changes, feasible) if feasible else None


def _changed(problem: Problem, declared: Sequence[int], changes: Changes) -> Problem:
    return changed(problem, lambda each: replace(each, hard=_applied(each.hard, declared, changes)))


def _applied(counted: Counted, declared: Sequence[int], changes: Changes) -> Counted:
    """The hard constraints after the changes, without those that became soft or were removed."""
    kept = [
        (after, counts)
        for index, parsed, counts in zip(declared, counted.constraints, counted.counts, strict=True)
        if (after := hard_after(parsed, index, changes)) is not None
    ]
    return replace(counted, constraints=tuple(each for each, _ in kept), counts=tuple(each for _, each in kept))
