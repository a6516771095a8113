"""The smallest changes to a pod's own hard constraints after which some node admits it.

Every change that is offered was evaluated: the same filters, asked again with the constraints changed, leave a node.
One pod only: what a looser constraint does to the pods after it is not looked at.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import DO_NOT_SCHEDULE, HONOR, SCHEDULE_ANYWAY, LabelSelector, Pod
from webhook.core.explain.meant_keys import meant_by, near
from webhook.core.index.node_table import NodeView
from webhook.core.scheduler.cycle import Cycle, decide
from webhook.core.scheduler.plugins.pod_topology_spread import Constraint, Counted, Domains
from webhook.core.scheduler.problem import Problem

# The largest maxSkew that the API takes: as good as no limit.
_NO_LIMIT = 2**31 - 1


class Change(Struct, frozen=True):
    """One field of one constraint; without a ``field`` the constraint as a whole goes.

    Shape: ``index`` is the constraint's place in the pod; ``value`` is None where the field is taken out.
    """

    index: int
    field: str = ""
    value: int | str | LabelSelector | None = None


class Fix(Struct, frozen=True):
    """Changes that together make the pod feasible; ``open`` are the nodes that then admit it."""

    changes: tuple[Change, ...]
    open: int

    @property
    def nodes(self) -> int:
        """How many nodes then admit it."""
        return self.open.bit_count()


class Narrowing(Struct, frozen=True, kw_only=True):
    """Constraints that count pods of other workloads, and what to write for them to count the pod's own only.

    Shape: ``selectors`` by the constraint's place in the pod; of ``agreed`` ones the other workloads are spread over
    the same key too, so that counting them may be meant. ``take`` takes the problem anew for a pod with other
    selectors.
    """

    selectors: Mapping[int, LabelSelector]
    agreed: frozenset[int]
    take: Callable[[Pod], Problem]


def changed(problem: Problem, change: Callable[[Problem], Problem]) -> Problem:
    """The problem with a change that holds beside nominated pods as well."""
    nominated = {slot: change(each) for slot, each in problem.nominated.items()}
    return replace(change(problem), nominated=nominated)


def fixes(problem: Problem, narrowing: Narrowing | None = None) -> Iterator[Fix]:
    """What helps a pod that no node admits, smallest first; nothing where only a change of the cluster does.

    Shape: a misspelt key is put right first, if need be with one of the other changes. Else they are changes of one
    constraint; if none of these is enough, the same change of all of them. Each is evaluated when it is asked for.
    """
    declared = hard_places(problem.pod)
    if len(declared) != len(problem.hard.constraints):
        return  # the constraints are the cluster's, or cannot be read
    yield from _respelt(problem, declared)
    meant = narrowing and {*narrowing.selectors} - narrowing.agreed
    if narrowing and meant:
        yield from _narrowed(problem.pod, narrowing, sorted(meant))
    yield from _loosened(problem, declared)
    if narrowing and narrowing.agreed:
        yield from _narrowed(problem.pod, narrowing, sorted(narrowing.selectors))


def _loosened(problem: Problem, declared: Sequence[int]) -> Iterator[Fix]:
    domains = Cycle(problem).domains
    alone = [[each] for each in enumerate(declared)]
    together = [[*enumerate(declared)]]
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


def meant_on(key: str, nodes: NodeView) -> str | None:
    """The key that was probably meant by one that no node has, if nodes have that one."""
    if key in nodes.keys:
        return None
    meant = meant_by(key)
    return meant if meant in nodes.keys else near(key, nodes)


def _respelt(problem: Problem, declared: Sequence[int]) -> Iterator[Fix]:
    """The keys that were meant, of all constraints whose key no node has; alone, or with what is needed besides."""
    constraints = problem.pod.pod_spec.constraints
    found = {index: meant_on(constraints[index].topology_key or "", problem.nodes) for index in declared}
    meant = {index: key for index, key in found.items() if key is not None}
    there = {(each.topology_key, each.hard) for each in constraints}
    if not meant or len({*meant.values()}) < len(meant) or any((key, True) in there for key in meant.values()):
        return  # kube-apiserver takes no two constraints with one key and one action
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
        yield Fix((*changes, *more.changes), more.open)


def _narrowed(pod: Pod, narrowing: Narrowing, places: Sequence[int]) -> Iterator[Fix]:
    """Selectors of the workload's own pods: of one constraint, or of all that count others."""
    found = [fix for index in places if (fix := _with_selectors(pod, narrowing, [index]))]
    if not found and len(places) > 1:
        found = [fix for fix in [_with_selectors(pod, narrowing, places)] if fix]
    yield from found


def _with_selectors(pod: Pod, narrowing: Narrowing, places: Sequence[int]) -> Fix | None:
    constraints = [*pod.pod_spec.constraints]
    for index in places:
        constraints[index] = replace(constraints[index], label_selector=narrowing.selectors[index])
    spec = replace(pod.pod_spec, topology_spread_constraints=tuple(constraints))
    feasible = decide(narrowing.take(replace(pod, spec=spec))).feasible
    changes = tuple(Change(index, "labelSelector", narrowing.selectors[index]) for index in places)
    return Fix(changes, feasible) if feasible else None


def hard_places(pod: Pod) -> tuple[int, ...]:
    """Where the pod's own hard constraints stand among its constraints."""
    return tuple(n for n, each in enumerate(pod.pod_spec.constraints) if each.when_unsatisfiable == DO_NOT_SCHEDULE)


# Places of constraints: among the hard ones, and in the pod.
_Group = Sequence[tuple[int, int]]


def _honored(field: str, written: Callable[[Constraint], str]) -> Callable[..., tuple[Change, ...]]:
    """The node policy that counts only nodes which the pod may use."""

    def changes(_: Problem, domains: Sequence[Domains], group: _Group) -> tuple[Change, ...]:
        return tuple(
            Change(index, field, HONOR) for place, index in group if written(domains[place].constraint) != HONOR
        )

    return changes


def _fewer(_: Problem, domains: Sequence[Domains], group: _Group) -> tuple[Change, ...]:
    """No more minDomains than there are domains."""
    found = [(index, domains[place]) for place, index in group]
    there = [(index, each.column.domain_count(each.counting), each.constraint.min_domains) for index, each in found]
    return tuple(Change(index, "minDomains", domains_) for index, domains_, least in there if 0 < domains_ < least)


def _widened(problem: Problem, domains: Sequence[Domains], group: _Group) -> tuple[Change, ...]:
    """The smallest maxSkew of each constraint with which a node that all else admits has a place."""
    places = [place for place, _ in group]
    open_ = decide(changed(problem, lambda each: _with_skews(each, dict.fromkeys(places, _NO_LIMIT)))).feasible
    found = []
    for slot, beside in problem.nominated.items():  # other pods count there
        found += _needed(Cycle(beside).domains, places, open_ & 1 << slot)
        open_ &= ~(1 << slot)
    found += _needed(domains, places, open_)
    _, needed = min(((sum(skews), skews) for skews in found), default=(0, ()))
    return tuple(
        Change(index, "maxSkew", skew)
        for (place, index), skew in zip(group, needed, strict=False)
        if skew > domains[place].constraint.max_skew
    )


def _needed(domains: Sequence[Domains], places: Sequence[int], nodes: int) -> list[tuple[int, ...]]:
    """What maxSkew of these constraints must be at least for each part of the nodes."""
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
    """The nodes by the skew that their domain would have with this pod, as far as that is above the limit.

    Shape: each with maxSkew as it must be at least; nodes without the key are among those of the first.
    """
    column, least = domains.column, domains.constraint.max_skew
    above: dict[int, list[int]] = {}
    rest = -1
    for number, pods in domains.match_num.items():
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
    """ScheduleAnyway, and what kube-apiserver asks for with it: no minDomains, and no second constraint like it."""
    constraints = problem.pod.pod_spec.constraints
    changes: list[Change] = []
    for _place, index in group:
        mine = constraints[index]
        if any(each.topology_key == mine.topology_key and not each.hard for each in constraints):
            changes.append(Change(index))
            continue
        changes.append(Change(index, "whenUnsatisfiable", SCHEDULE_ANYWAY))
        if mine.min_domains is not None:
            changes.append(Change(index, "minDomains"))
    return tuple(changes)


# From what keeps the promise for the nodes that the pod can use to what gives it up.
_CANDIDATES: Sequence[Callable[[Problem, Sequence[Domains], _Group], tuple[Change, ...]]] = (
    _honored("nodeTaintsPolicy", lambda constraint: constraint.node_taints_policy),
    _honored("nodeAffinityPolicy", lambda constraint: constraint.node_affinity_policy),
    _fewer,
    _widened,
    _softened,
)


def _proven(problem: Problem, declared: Sequence[int], changes: Sequence[Change]) -> Fix | None:
    """The changes as a fix, if some node then admits the pod."""
    places = {index: place for place, index in enumerate(declared)}
    wanted: dict[int, list[Change]] = {}
    for change in changes:
        wanted.setdefault(places[change.index], []).append(change)
    feasible = decide(changed(problem, lambda each: replace(each, hard=_applied(each.hard, wanted)))).feasible
    return Fix(tuple(changes), feasible) if feasible else None


def _applied(counted: Counted, wanted: Mapping[int, Sequence[Change]]) -> Counted:
    """The hard constraints after the changes; a soft one is none of them any more."""
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
