"""Find helpful constraint changes for pods without a node, the smallest first.

Each change is tested before it is suggested.

- For a single pod (`pod_fixes`): after the change, at least one node admits the pod. Later pods can still wait.
- For all pods of a workload (`Candidates`): the caller tests each change with all pods. A looser constraint is not
    always better. With a larger maxSkew, other orders can leave a pod without a node.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, cycle
from typing import ParamSpec, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import NODE_AFFINITY_POLICY, NODE_TAINTS_POLICY, LabelSelector, Pod, SpreadConstraint
from webhook.core.changes.change import Change, Changes, hard_after, set_honor, soften, with_changes
from webhook.core.index.key_suggestions import closest_node_key, meant_by
from webhook.core.index.nodes import NodeView
from webhook.core.scheduler.cycle import Cycle, decide
from webhook.core.scheduler.plugins.pod_topology_spread import DomainCounts
from webhook.core.scheduler.plugins.spread_constraints import CountedConstraints
from webhook.core.scheduler.problem import Problem, change_problem

# The largest maxSkew in the API. It limits nothing.
_NO_LIMIT = 2**31 - 1
_P = ParamSpec("_P")
_T = TypeVar("_T")


def limit_trials(most: int, helps: Callable[_P, bool]) -> Callable[_P, bool]:
    """Let ``helps`` run at most ``most`` times. Later calls return False without running it."""
    left = iter(range(most))
    return lambda *args, **kwargs: next(left, None) is not None and helps(*args, **kwargs)


def first_stage(*stages: Iterable[_T | None]) -> Iterator[_T]:
    """Yield the helpful changes of the first stage with a helpful change. Later stages weaken spreading more."""
    for stage in stages:
        helped = False
        for success in stage:
            if success is not None:
                helped = True
                yield success
        if helped:
            return


class Candidates(Struct, frozen=True, kw_only=True):
    """The candidate changes to the constraints of a workload.

    Attributes:
        constraints: All constraints of the template.
        domains: The number of counted domains, by index in ``constraints``.
        skews: The lowest maxSkew that can help, by index, if known.
        revision: The label that differs between revisions, during a rolling update.
        further: The number of values of maxSkew to try.
        pairs: Whether to try two changes together.
        first: Changes to try before all others.
    """

    constraints: Sequence[SpreadConstraint]
    domains: Mapping[int, int] = {}
    skews: Mapping[int, int] = {}
    revision: str = ""
    further: int = 2
    pairs: bool = True
    first: Sequence[Changes] = ()

    def helpful(self, fits: Callable[[Changes], bool]) -> Iterator[Changes]:
        """Yield the changes after which all pods fit.

        Changes to a still hard constraint come first. For each field, yield only the first helpful value. If none
        helps, yield the first helpful pair of such changes. Then come changes that soften a single constraint. If none
        of these helps, yield the softening of all hard constraints, if helpful.
        """
        small = [*self._small()]
        pairs = (pair for pair in combinations(small, 2) if self.pairs and pair[0].at != pair[1].at)
        yield from first_stage(_of_each_field((*self.first, *((each,) for each in small)), fits), _first(pairs, fits))
        soft = [soften(self.constraints, index) for index, constraint in enumerate(self.constraints) if constraint.hard]
        all_soft = [_joined(soft)] * (len(soft) > 1)
        yield from first_stage(_of_each_field(soft, fits), _first(all_soft, fits))

    def _small(self) -> Iterator[Change]:
        """Changes of a single field that keep the pods spread."""
        hard = [(index, constraint) for index, constraint in enumerate(self.constraints) if constraint.hard]
        for field in (NODE_TAINTS_POLICY, NODE_AFFINITY_POLICY):
            for index, _ in hard:
                yield from set_honor(self.constraints, index, field)
        for index, constraint in hard:
            domains = self.domains.get(index, 0)
            if (constraint.min_domains or 1) > max(1, domains):
                yield Change(index, "minDomains", domains if domains > 1 else None)
        for index, constraint in hard:
            keys = constraint.match_label_keys or ()
            if self.revision and self.revision not in keys and constraint.label_selector is not None:
                yield Change(index, "matchLabelKeys", (*keys, self.revision))
        for more in range(self.further):
            for index, constraint in hard:
                least = max(self.skews.get(index, 0), (constraint.max_skew or 0) + 1)
                yield Change(index, "maxSkew", least + more)


def _of_each_field(candidates: Iterable[Changes], fits: Callable[[Changes], bool]) -> Iterator[Changes]:
    solved: set[str] = set()
    for changes in candidates:
        if changes[0].at not in solved and fits(changes):
            solved.add(changes[0].at)
            yield changes


def _first(candidates: Iterable[Changes], fits: Callable[[Changes], bool]) -> Iterator[Changes | None]:
    yield next(filter(fits, candidates), None)


class PodFix(Struct, frozen=True):
    """Changes of constraints, and the nodes that then admit the pod.

    Attributes:
        changes: The changes.
        open: The admitting nodes, as a set of `node_sets`.
    """

    changes: Changes
    open: int

    @property
    def nodes(self) -> int:
        """The number of admitting nodes."""
        return self.open.bit_count()


class Narrowing(Struct, frozen=True, kw_only=True):
    """Narrower selectors for constraints. They match only pods of the same workload.

    Attributes:
        selectors: The narrower selectors, by the constraint's index in the pod.
        agreed: Indexes of constraints that probably count other workloads on purpose, because those workloads spread
            over the same key. Narrow these constraints last.
        take: Builds the scheduler's input (`Problem`) for a pod with changed selectors.
    """

    selectors: Mapping[int, LabelSelector]
    agreed: frozenset[int]
    take: Callable[[Pod], Problem]


def pod_fixes(problem: Problem, narrowing: Narrowing | None = None, *, well_known: bool = False) -> Iterator[PodFix]:
    """Yield fixes for a pod without an admitting node, smallest first.

    Yields nothing if only a change of the cluster helps. Corrections of misspelt keys come first, with another change
    if necessary. Changes of single constraints follow, then the same change in all constraints. The iterator tests each
    fix on demand.

    Args:
        problem: The pod and the cluster.
        narrowing: Narrower selectors for the constraints, to try as fixes.
        well_known: Whether to suggest only Kubernetes' own keys.

    Example:
        ``next(pod_fixes(take(index, pod)), None)`` is the smallest fix.
    """
    declared = [index for index, constraint in enumerate(problem.pod.pod_spec.constraints) if constraint.hard]
    if len(declared) != len(problem.hard.constraints):
        return  # The constraints are the cluster's defaults, or a selector is invalid.
    yield from _respelt(problem, declared, well_known=well_known)
    # If others use the same selector, it probably counts their pods on purpose. Narrow it only as a last resort.
    meant = narrowing and {*narrowing.selectors} - narrowing.agreed
    if narrowing and meant:
        yield from _narrowed(problem.pod, narrowing, sorted(meant))
    yield from _loosened(problem, declared)
    if narrowing and narrowing.agreed:
        yield from _narrowed(problem.pod, narrowing, sorted(narrowing.selectors))


def _loosened(problem: Problem, declared: Sequence[int]) -> Iterator[PodFix]:
    domains = dict(zip(declared, Cycle(problem).domains, strict=True))

    def tried(groups: Sequence[Sequence[int]]) -> Iterator[PodFix | None]:
        for candidates in cycle([_candidates(problem, domains, group) for group in groups]):
            if (changes := next(candidates, None)) is None:
                return
            yield _if_it_helps(problem, declared, changes) if changes else None

    # Change single constraints first. A change of all gives up more.
    yield from first_stage(tried([[index] for index in declared]), tried([declared] if len(declared) > 1 else []))


def intended_node_key(key: str, nodes: NodeView, *, well_known: bool = False) -> str | None:
    """Guess the intended label key, if no node has the label ``key``.

    None without a guess. ``well_known`` suggests only Kubernetes' own keys.
    """
    if key in nodes.keys:
        return None
    meant = meant_by(key)
    return meant if meant in nodes.keys else closest_node_key(key, nodes, well_known=well_known)


def _respelt(problem: Problem, declared: Sequence[int], *, well_known: bool) -> Iterator[PodFix]:
    """Yield fixes that replace every topologyKey missing from all nodes.

    If the correct keys do not suffice, each fix also changes something else in the constraints.
    """
    constraints = problem.pod.pod_spec.constraints
    keys = {index: constraints[index].topology_key or "" for index in declared}
    guesses = {index: intended_node_key(key, problem.nodes, well_known=well_known) for index, key in keys.items()}
    meant = {index: key for index, key in guesses.items() if key is not None}
    there = {(constraint.topology_key, constraint.hard) for constraint in constraints}
    if not meant or len({*meant.values()}) < len(meant) or any((key, True) in there for key in meant.values()):
        return  # kube-apiserver rejects two constraints with the same key and whenUnsatisfiable.
    changes = tuple(Change(index, "topologyKey", key) for index, key in meant.items())
    fix = _if_it_helps(problem, declared, changes)
    if fix is not None:
        yield fix
        return

    def with_keys(variant: Problem) -> Problem:
        return replace(variant, pod=_with(variant.pod, changes), hard=_applied(variant.hard, declared, changes))

    for more in _loosened(change_problem(problem, with_keys), declared):
        yield PodFix((*changes, *more.changes), more.open)


def _narrowed(pod: Pod, narrowing: Narrowing, places: Sequence[int]) -> Iterator[PodFix]:
    """Yield fixes that narrow the selector of a single constraint.

    If none admits the pod, try to narrow the selectors of all given constraints together.
    """

    def tried(groups: Iterable[Sequence[int]]) -> Iterator[PodFix | None]:
        for group in groups:
            changes = tuple(Change(index, "labelSelector", narrowing.selectors[index]) for index in group)
            feasible = decide(narrowing.take(_with(pod, changes))).feasible
            yield PodFix(changes, feasible) if feasible else None

    yield from first_stage(tried([index] for index in places), tried([places] if len(places) > 1 else []))


def _with(pod: Pod, changes: Changes) -> Pod:
    constraints = with_changes(pod.pod_spec.constraints, changes)
    return replace(pod, spec=replace(pod.pod_spec, topology_spread_constraints=constraints))


# The domains of each hard constraint, by its index in the pod.
_Domains = Mapping[int, DomainCounts]


def _candidates(problem: Problem, domains: _Domains, group: Sequence[int]) -> Iterator[Changes]:
    """Yield changes made to all constraints of the group alike. Changes without a loss of spreading come first."""
    constraints = problem.pod.pod_spec.constraints
    for field in (NODE_TAINTS_POLICY, NODE_AFFINITY_POLICY):
        yield _joined(set_honor(constraints, index, field) for index in group)
    eligible = {index: domains[index].column.domain_count(domains[index].counting) for index in group}
    yield tuple(
        Change(index, "minDomains", there)
        for index, there in eligible.items()
        if 0 < there < domains[index].constraint.min_domains
    )
    yield _widened(problem, domains, group)
    yield _joined(soften(constraints, index) for index in group)


def _joined(several: Iterable[Changes]) -> Changes:
    return tuple(chain.from_iterable(several))


def _widened(problem: Problem, domains: _Domains, group: Sequence[int]) -> Changes:
    """Raise maxSkew as little as possible, to admit the pod to some node."""
    unlimited = tuple(Change(index, "maxSkew", _NO_LIMIT) for index in group)
    open_ = decide(_changed(problem, [*domains], unlimited)).feasible
    choices = []
    for slot, nominated in problem.nominated.items():  # On these nodes, nominated pods count too.
        known = dict(zip(domains, Cycle(nominated).domains, strict=True))
        choices += _needed([known[index] for index in group], open_ & 1 << slot)
        open_ &= ~(1 << slot)
    choices += _needed([domains[index] for index in group], open_)
    # The lowest sum over all constraints, so no constraint is raised more than necessary.
    _, needed = min(((sum(skews), skews) for skews in choices), default=(0, ()))
    return tuple(
        Change(index, "maxSkew", skew)
        for index, skew in zip(group, needed, strict=False)
        if skew > domains[index].constraint.max_skew
    )


def _needed(constraints: Sequence[DomainCounts], nodes: int) -> list[tuple[int, ...]]:
    """Return combinations of maxSkew values that admit the pod to one of the nodes.

    A combination has one maxSkew for each constraint.

    Args:
        constraints: The constraints, with the matching pods in each domain.
        nodes: The candidate nodes, as a bit set.
    """
    parts: list[tuple[tuple[int, ...], int]] = [((), nodes)] if nodes else []
    for domains in constraints:
        levels = [*_skews(domains)]
        parts = [
            ((*skews, skew), nodes & at_level)
            for skews, nodes in parts
            for skew, at_level in levels
            if nodes & at_level
        ]
    return [skews for skews, _ in parts]


def _skews(domains: DomainCounts) -> Iterator[tuple[int, int]]:
    """Yield each useful maxSkew, with the nodes first admitted by this maxSkew.

    The nodes are a bit set. The first entry includes all nodes in domains without a matching pod, and nodes without the
    topology key.
    """
    column, least = domains.column, domains.constraint.max_skew
    above: dict[int, list[int]] = {}
    rest = -1
    for number, pods in domains.match_num.items():
        # The filter admits: matching pods + self match - minimum <= maxSkew.
        above.setdefault(max(least, pods + domains.self_match - domains.global_minimum), []).append(number)
    crowded = {skew: column.nodes_of(numbers) for skew, numbers in above.items() if skew > least}
    for nodes in crowded.values():
        rest &= ~nodes
    yield max(least, domains.self_match - domains.global_minimum), rest
    yield from crowded.items()


def _if_it_helps(problem: Problem, declared: Sequence[int], changes: Changes) -> PodFix | None:
    feasible = decide(_changed(problem, declared, changes)).feasible
    return PodFix(changes, feasible) if feasible else None


def _changed(problem: Problem, declared: Sequence[int], changes: Changes) -> Problem:
    return change_problem(problem, lambda variant: replace(variant, hard=_applied(variant.hard, declared, changes)))


def _applied(counted: CountedConstraints, declared: Sequence[int], changes: Changes) -> CountedConstraints:
    """Return the hard constraints with the changes applied, without softened and removed ones."""
    kept = [
        (after, counts)
        for index, parsed, counts in zip(declared, counted.constraints, counted.counts, strict=True)
        if (after := hard_after(parsed, index, changes)) is not None
    ]
    return replace(counted, constraints=tuple(after for after, _ in kept), counts=tuple(counts for _, counts in kept))
