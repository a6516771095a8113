"""Changes of constraints that may help pods that do not fit, smallest first, each tried before it is offered.

- For one pod (`pod_fixes`): its filters run again and leave a node. The pods after it may still wait.
- For all pods of a workload (`Candidates`): the caller tries each change with all pods. Looser is not always better: a
  larger maxSkew can open a new way to get stuck.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, cycle
from typing import ParamSpec, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import LabelSelector, Pod, SpreadConstraint
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
from webhook.core.index.nodes import NodeView
from webhook.core.scheduler.cycle import Cycle, decide
from webhook.core.scheduler.plugins.pod_topology_spread import CountedConstraints, DomainCounts
from webhook.core.scheduler.problem import Problem

# The largest maxSkew that the API accepts stands for no limit.
_NO_LIMIT = 2**31 - 1
_P = ParamSpec("_P")
_T = TypeVar("_T")


def at_most(most: int, helps: Callable[_P, bool]) -> Callable[_P, bool]:
    """The same trial, which fails without being made once `most` were made."""
    left = iter(range(most))
    return lambda *args, **kwargs: next(left, None) is not None and helps(*args, **kwargs)


def first_stage(*stages: Iterable[_T | None]) -> Iterator[_T]:
    """What helped of the first stage in which anything did; later stages give up more, and are not tried then."""
    for stage in stages:
        helped = False
        for found in stage:
            if found is not None:
                helped = True
                yield found
        if helped:
            return


class Candidates(Struct, frozen=True, kw_only=True):
    """The constraints of a workload, and what is known of them.

    Args:
        constraints: All of its template.
        domains: How many domains count, by index in ``constraints``.
        skews: The lowest maxSkew that can help, by index, where that is known.
        revision: The label that differs between revisions, during a rolling update.
        further: How many values of maxSkew are tried.
        pairs: Whether two of the changes are tried together.
        first: Changes to try before all others.
    """

    constraints: Sequence[SpreadConstraint]
    domains: Mapping[int, int] = {}
    skews: Mapping[int, int] = {}
    revision: str = ""
    further: int = 2
    pairs: bool = True
    first: Sequence[Changes] = ()

    def that_help(self, fits: Callable[[Changes], bool]) -> Iterator[Changes]:
        """The changes with which all pods fit: first those that keep the pods spread.

        Of each field the first value that helps. Two changes, or all constraints, only if one alone does not help.
        """
        small = [*self._small()]
        pairs = (pair for pair in combinations(small, 2) if self.pairs and pair[0].at != pair[1].at)
        yield from first_stage(_of_each_field((*self.first, *((each,) for each in small)), fits), _first(pairs, fits))
        soft = [softened(self.constraints, index) for index, each in enumerate(self.constraints) if each.hard]
        all_soft = [_joined(soft)] * (len(soft) > 1)
        yield from first_stage(_of_each_field(soft, fits), _first(all_soft, fits))

    def _small(self) -> Iterator[Change]:
        """One field of one constraint, after which pods are spread still."""
        hard = [(index, each) for index, each in enumerate(self.constraints) if each.hard]
        for field in (NODE_TAINTS_POLICY, NODE_AFFINITY_POLICY):
            for index, _ in hard:
                yield from honored(self.constraints, index, field)
        for index, each in hard:
            there = self.domains.get(index, 0)
            if (each.min_domains or 1) > max(1, there):
                yield Change(index, "minDomains", there if there > 1 else None)
        for index, each in hard:
            keys = each.match_label_keys or ()
            if self.revision and self.revision not in keys and each.label_selector is not None:
                yield Change(index, "matchLabelKeys", (*keys, self.revision))
        for more in range(self.further):
            for index, each in hard:
                least = max(self.skews.get(index, 0), (each.max_skew or 0) + 1)
                yield Change(index, "maxSkew", least + more)


def _of_each_field(several: Iterable[Changes], fits: Callable[[Changes], bool]) -> Iterator[Changes]:
    solved: set[str] = set()
    for changes in several:
        if changes[0].at not in solved and fits(changes):
            solved.add(changes[0].at)
            yield changes


def _first(several: Iterable[Changes], fits: Callable[[Changes], bool]) -> Iterator[Changes | None]:
    yield next(filter(fits, several), None)


class PodFix(Struct, frozen=True):
    """Changes after which some node admits the pod; ``open`` are those nodes."""

    changes: Changes
    open: int

    @property
    def nodes(self) -> int:
        """How many nodes then admit the pod."""
        return self.open.bit_count()


class Narrowing(Struct, frozen=True, kw_only=True):
    """Selectors with which constraints count only the pod's own workload.

    Args:
        selectors: By the constraint's index in the pod.
        agreed: Constraints whose other workloads are spread over the same key: counting them may be intended.
        take: Makes the problem of a pod with other selectors.
    """

    selectors: Mapping[int, LabelSelector]
    agreed: frozenset[int]
    take: Callable[[Pod], Problem]


def changed(problem: Problem, change: Callable[[Problem], Problem]) -> Problem:
    """The problem with a change, also where nominated pods are counted."""
    nominated = {slot: change(each) for slot, each in problem.nominated.items()}
    return replace(change(problem), nominated=nominated)


def pod_fixes(problem: Problem, narrowing: Narrowing | None = None, *, well_known: bool = False) -> Iterator[PodFix]:
    """Fixes for a pod that no node admits, smallest first; none if only a change of the cluster helps.

    Misspelt keys come first, with another change if necessary. Then one constraint, then the same change in all. The
    iterator tries each fix when you take it.

    Args:
        problem: The pod and the cluster.
        narrowing: Selectors to offer.
        well_known: As in `near`.
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

    def tried(groups: Sequence[Sequence[int]]) -> Iterator[PodFix | None]:
        for candidates in cycle([_candidates(problem, domains, group) for group in groups]):
            if (changes := next(candidates, None)) is None:
                return
            yield _if_it_helps(problem, declared, changes) if changes else None

    # One constraint at a time, since a change of all gives up more than most pods need.
    yield from first_stage(tried([[index] for index in declared]), tried([declared] if len(declared) > 1 else []))


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
    fix = _if_it_helps(problem, declared, changes)
    if fix is not None:
        yield fix
        return

    def with_keys(each: Problem) -> Problem:
        return replace(each, pod=_with(each.pod, changes), hard=_applied(each.hard, declared, changes))

    for more in _loosened(changed(problem, with_keys), declared):
        yield PodFix((*changes, *more.changes), more.open)


def _narrowed(pod: Pod, narrowing: Narrowing, places: Sequence[int]) -> Iterator[PodFix]:
    """Narrow the selector of one constraint; if that is not enough, of all that count other workloads."""

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
    """The same change of these constraints, from what still spreads the pods to what gives up the guarantee."""
    constraints = problem.pod.pod_spec.constraints
    for field in (NODE_TAINTS_POLICY, NODE_AFFINITY_POLICY):
        yield _joined(honored(constraints, index, field) for index in group)
    eligible = {index: domains[index].column.domain_count(domains[index].counting) for index in group}
    yield tuple(
        Change(index, "minDomains", there)
        for index, there in eligible.items()
        if 0 < there < domains[index].constraint.min_domains
    )
    yield _widened(problem, domains, group)
    yield _joined(softened(constraints, index) for index in group)


def _joined(several: Iterable[Changes]) -> Changes:
    return tuple(chain.from_iterable(several))


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


def _needed(several: Sequence[DomainCounts], nodes: int) -> list[tuple[int, ...]]:
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


def _skews(domains: DomainCounts) -> Iterator[tuple[int, int]]:
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


def _if_it_helps(problem: Problem, declared: Sequence[int], changes: Changes) -> PodFix | None:
    feasible = decide(_changed(problem, declared, changes)).feasible
    return PodFix(changes, feasible) if feasible else None


def _changed(problem: Problem, declared: Sequence[int], changes: Changes) -> Problem:
    return changed(problem, lambda each: replace(each, hard=_applied(each.hard, declared, changes)))


def _applied(counted: CountedConstraints, declared: Sequence[int], changes: Changes) -> CountedConstraints:
    """The hard constraints after the changes, without those that became soft or were removed."""
    kept = [
        (after, counts)
        for index, parsed, counts in zip(declared, counted.constraints, counted.counts, strict=True)
        if (after := hard_after(parsed, index, changes)) is not None
    ]
    return replace(counted, constraints=tuple(each for each, _ in kept), counts=tuple(each for _, each in kept))
