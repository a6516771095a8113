"""The smallest changes to a pod's own hard constraints after which some node admits it.

Each was evaluated: the same filters, run again with the changed constraints, leave a node. This is about one pod;
whether the pods after it fit too is not evaluated.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import DO_NOT_SCHEDULE, HONOR, LabelSelector, Pod
from webhook.core.apiserver.validation import soft_fields
from webhook.core.index.meant_keys import meant_by, near
from webhook.core.index.tables.node_table import NodeView
from webhook.core.scheduler.cycle import Cycle, decide
from webhook.core.scheduler.plugins.pod_topology_spread import Constraint, Counted, Domains
from webhook.core.scheduler.problem import Problem

# The largest maxSkew that the API accepts stands for no limit.
_NO_LIMIT = 2**31 - 1


class Change(Struct, frozen=True):
    """One field of one constraint is set or removed; an empty ``field`` means that the whole constraint is removed.

    Shape: ``index`` is the constraint's index in the pod; ``value`` is None if the field is removed.
    """

    index: int
    field: str = ""
    value: int | str | tuple[str, ...] | LabelSelector | None = None


class PodFix(Struct, frozen=True):
    """Changes after which some node admits the pod; ``open`` are those nodes."""

    changes: tuple[Change, ...]
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
    declared = _hard_places(problem.pod)
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
    domains = Cycle(problem).domains
    alone = [[each] for each in enumerate(declared)]
    together = [[*enumerate(declared)]]
    # One constraint at a time, since a change of all gives up more than most pods need.
    for groups in (alone, together if len(declared) > 1 else []):
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
    places = {index: place for place, index in enumerate(declared)}
    wanted = {places[each.index]: [each] for each in changes}

    def with_keys(each: Problem) -> Problem:
        written = tuple(
            replace(one, topology_key=meant.get(index, one.topology_key)) for index, one in enumerate(constraints)
        )
        pod = replace(each.pod, spec=replace(each.pod.pod_spec, topology_spread_constraints=written))
        return replace(each, pod=pod, hard=_applied(each.hard, wanted))

    for more in _loosened(changed(problem, with_keys), declared):
        yield PodFix((*changes, *more.changes), more.open)


def _narrowed(pod: Pod, narrowing: Narrowing, places: Sequence[int]) -> Iterator[PodFix]:
    """Narrow the selector of one constraint; if that is not enough, of all that count other workloads."""
    helping = [fix for index in places if (fix := _with_selectors(pod, narrowing, [index]))]
    if not helping and len(places) > 1:
        helping = [fix for fix in [_with_selectors(pod, narrowing, places)] if fix]
    yield from helping


def _with_selectors(pod: Pod, narrowing: Narrowing, places: Sequence[int]) -> PodFix | None:
    constraints = [*pod.pod_spec.constraints]
    for index in places:
        constraints[index] = replace(constraints[index], label_selector=narrowing.selectors[index])
    spec = replace(pod.pod_spec, topology_spread_constraints=tuple(constraints))
    feasible = decide(narrowing.take(replace(pod, spec=spec))).feasible
    changes = tuple(Change(index, "labelSelector", narrowing.selectors[index]) for index in places)
    return PodFix(changes, feasible) if feasible else None


def _hard_places(pod: Pod) -> tuple[int, ...]:
    """The indices of the pod's hard constraints."""
    return tuple(n for n, each in enumerate(pod.pod_spec.constraints) if each.when_unsatisfiable == DO_NOT_SCHEDULE)


# Constraints by two indices: among the hard ones, and in the pod.
_Group = Sequence[tuple[int, int]]


def _honored(field: str, written: Callable[[Constraint], str]) -> Callable[..., tuple[Change, ...]]:
    """Set a node policy to Honor, so that only nodes count that the pod can use."""

    def changes(_: Problem, domains: Sequence[Domains], group: _Group) -> tuple[Change, ...]:
        return tuple(
            Change(index, field, HONOR) for place, index in group if written(domains[place].constraint) != HONOR
        )

    return changes


def _fewer(_: Problem, domains: Sequence[Domains], group: _Group) -> tuple[Change, ...]:
    """Lower minDomains to the number of eligible domains."""
    counted = [(index, domains[place]) for place, index in group]
    eligible = [
        (index, each.column.domain_count(each.counting), each.constraint.min_domains) for index, each in counted
    ]
    return tuple(Change(index, "minDomains", there) for index, there, least in eligible if 0 < there < least)


def _widened(problem: Problem, domains: Sequence[Domains], group: _Group) -> tuple[Change, ...]:
    """Raise maxSkew as little as possible, so that some node that passes all other filters is admitted."""
    places = [place for place, _ in group]
    open_ = decide(changed(problem, lambda each: _with_skews(each, dict.fromkeys(places, _NO_LIMIT)))).feasible
    combinations = []
    for slot, beside in problem.nominated.items():  # on these nodes, nominated pods count too
        combinations += _needed(Cycle(beside).domains, places, open_ & 1 << slot)
        open_ &= ~(1 << slot)
    combinations += _needed(domains, places, open_)
    # The least in all: of two constraints neither is raised for the sake of the other.
    _, needed = min(((sum(skews), skews) for skews in combinations), default=(0, ()))
    return tuple(
        Change(index, "maxSkew", skew)
        for (place, index), skew in zip(group, needed, strict=False)
        if skew > domains[place].constraint.max_skew
    )


def _needed(domains: Sequence[Domains], places: Sequence[int], nodes: int) -> list[tuple[int, ...]]:
    """The combinations of maxSkew that these nodes need: one value for each constraint."""
    parts: list[tuple[tuple[int, ...], int]] = [((), nodes)] if nodes else []
    for place in places:
        levels = [*_skews(domains[place])]
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


def _with_skews(problem: Problem, skews: Mapping[int, int]) -> Problem:
    constraints = tuple(
        replace(each, max_skew=skews.get(place, each.max_skew)) for place, each in enumerate(problem.hard.constraints)
    )
    return replace(problem, hard=replace(problem.hard, constraints=constraints))


def _softened(problem: Problem, _: Sequence[Domains], group: _Group) -> tuple[Change, ...]:
    """Set ScheduleAnyway, or remove a constraint that has a soft twin."""
    constraints = problem.pod.pod_spec.constraints
    changes: list[Change] = []
    for _place, index in group:
        fields = soft_fields(constraints[index], constraints)
        if fields is None:
            changes.append(Change(index))
        else:
            changes += (Change(index, name, value) for name, value in fields.items())
    return tuple(changes)


# From changes that still spread the pods over the nodes they can use to the one that gives up the guarantee.
_CANDIDATES: Sequence[Callable[[Problem, Sequence[Domains], _Group], tuple[Change, ...]]] = (
    _honored("nodeTaintsPolicy", lambda constraint: constraint.node_taints_policy),
    _honored("nodeAffinityPolicy", lambda constraint: constraint.node_affinity_policy),
    _fewer,
    _widened,
    _softened,
)


def _proven(problem: Problem, declared: Sequence[int], changes: Sequence[Change]) -> PodFix | None:
    """The changes as a fix, if some node then admits the pod."""
    places = {index: place for place, index in enumerate(declared)}
    wanted: dict[int, list[Change]] = {}
    for change in changes:
        wanted.setdefault(places[change.index], []).append(change)
    feasible = decide(changed(problem, lambda each: replace(each, hard=_applied(each.hard, wanted)))).feasible
    return PodFix(tuple(changes), feasible) if feasible else None


def _applied(counted: Counted, wanted: Mapping[int, Sequence[Change]]) -> Counted:
    """The hard constraints after the changes, without those that became soft or were removed."""
    kept = [
        (constraint, counts)
        for place, (parsed, counts) in enumerate(zip(counted.constraints, counted.counts, strict=True))
        if (constraint := _constraint(parsed, wanted.get(place, ()))) is not None
    ]
    return replace(counted, constraints=tuple(each for each, _ in kept), counts=tuple(each for _, each in kept))


def _constraint(constraint: Constraint, changes: Sequence[Change]) -> Constraint | None:
    for change in changes:
        match change.field, change.value:
            case "maxSkew" | "minDomains" as field, int(value):
                constraint = replace(constraint, **{_NAMES[field]: value})
            case "nodeTaintsPolicy" | "nodeAffinityPolicy" | "topologyKey" as field, str(value):
                constraint = replace(constraint, **{_NAMES[field]: value})
            case _:
                return None
    return constraint


_NAMES = {
    "maxSkew": "max_skew",
    "minDomains": "min_domains",
    "nodeTaintsPolicy": "node_taints_policy",
    "nodeAffinityPolicy": "node_affinity_policy",
    "topologyKey": "topology_key",
}
