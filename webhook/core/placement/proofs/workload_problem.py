"""The candidate nodes of a workload's pods, and the pods its constraints count.

    facts = take_workload_problem(index, pod, own, most, now=now, late={})   copies all facts from the index
    nodes = candidate_nodes(facts)                                           optionally with a change to test
    capacities = constraint_capacities(facts.hard, nodes, facts.problem)

Only lasting facts exclude a node: its name, cordon and taints, the pod's node affinity, its volumes, and pods of other
workloads. Nodes that are away for a short time (recently cordoned, not ready, about to be replaced) count as present,
so an upgrade causes no findings. While such nodes exist, constraints with nodeTaintsPolicy Honor have no result.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import reduce
from operator import or_

from msgspec import Struct

from webhook.core.api import gates
from webhook.core.api.resources import PODS
from webhook.core.api.selectors import Selector
from webhook.core.api.tolerations import first_untolerated
from webhook.core.api.types import Pod, PodAffinityTerm, Taint
from webhook.core.api.well_known import FILTERING_EFFECTS, NODE_STATES
from webhook.core.budget import check_time
from webhook.core.cached_property import cached_property
from webhook.core.index import node_sets
from webhook.core.index.affinity_terms import Term
from webhook.core.index.nodes import NodeView
from webhook.core.index.pods import Counts
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.ephemeral_claims import with_ephemeral_claims
from webhook.core.scheduler.plugins import inter_pod_affinity
from webhook.core.scheduler.plugins.node_name import NODE_NAME
from webhook.core.scheduler.plugins.node_resources_fit import scarce_amounts
from webhook.core.scheduler.plugins.node_unschedulable import NODE_UNSCHEDULABLE
from webhook.core.scheduler.plugins.pod_topology_spread import EligibleNodes
from webhook.core.scheduler.plugins.spread_constraints import Constraint
from webhook.core.scheduler.plugins.status import PluginResult, StatusOfNodes
from webhook.core.scheduler.plugins.volume_binding import VOLUME_BINDING
from webhook.core.scheduler.plugins.volume_zone import VOLUME_ZONE
from webhook.core.scheduler.problem import Problem, take_lasting

# After an hour, a taint about a node's state counts as permanent.
_A_WHILE = timedelta(hours=1)
# Pods that must share a domain are tried in each. With more domains the answer is unknown.
MAX_HOME_DOMAINS = 64


class Restriction(StrEnum):
    """A restriction of the pods' nodes, other than taints. `candidate_nodes` can ignore each restriction."""

    AFFINITY = "affinity"
    VOLUMES = "volumes"
    NEAR = "near"
    APART = "apart"


class CountedConstraint(Struct, frozen=True):
    """A hard constraint of the workload, with the number of counted pods.

    Attributes:
        index: The constraint's position among the hard constraints.
        counts: The number of counted pods on each node, by node slot.
        own: The same, for the workload's own pods only.
        certain: Whether the workload's pods match the selector for certain.
    """

    index: int
    constraint: Constraint
    counts: Counts
    own: Counts
    certain: bool


class WorkloadProblem(Struct, frozen=True, dict=True):
    """All facts about the possible nodes of a template's pods at one moment.

    Attributes:
        problem: The scheduling problem of one pod.
        hard: The pod's hard constraints.
        running: The workload's own pods by slot.
        away: A bit set of currently unusable nodes, expected back soon.
        most: The most pods on one node. Capacities up to this number are exact.
        free: For each scarce resource, the free amount by slot and the amount per pod.
        freed: The free amounts of nodes with own pods, as if these pods were gone. By slot, up to the node's total.
        apart: For each anti-affinity term, the matching own pods.
    """

    problem: Problem
    hard: tuple[CountedConstraint, ...]
    running: Counts
    away: int
    most: int
    free: tuple[tuple[Sequence[int], int], ...]
    freed: Mapping[int, tuple[int, ...]]
    apart: tuple[Counts, ...] = ()

    @cached_property
    def full(self) -> int:
        """The nodes with too little room for a single pod."""
        return reduce(or_, (node_sets.below(free, amount) for free, amount in self.free), 0)


class CandidateNodes(Struct, frozen=True):
    """The nodes for the pods, now or after a change.

    Attributes:
        eligible: The nodes that count for spread constraints.
        open: The nodes that admit the pod, apart from spread constraints.
        barred: The nodes that admit the pod except for a taint or cordon.
        away: The absent nodes treated as present.
        apart: Topology keys. No two pods may share a domain of these.
        together: A topology key. All pods must share a domain of this key. None without one.
    """

    eligible: EligibleNodes
    open: int
    barred: int
    away: int = 0
    apart: tuple[str, ...] = ()
    together: str | None = None


def take_workload_problem(  # noqa: PLR0913 each a fact of its own
    index: ReadOnlyIndex, pod: Pod, own: Selector | None, most: int, *, now: str, late: Mapping[str, bool]
) -> WorkloadProblem:
    """Copy all facts about the possible nodes of a workload's pods from the index.

    Args:
        index: The cluster.
        pod: A pod as its scheduler receives it.
        own: A selector of the workload's pods. With None, any counted pod may belong to the workload.
        most: The most pods on one node. Capacities up to this number are exact.
        now: An ISO time. Empty if unknown.
        late: Label keys that pods get later or with other values. The value is whether they differ by revision.
    """
    problem, namespace = take_lasting(with_ephemeral_claims(index, pod), pod), pod.meta.namespace
    running = {} if own is None else index.pods.count(namespace, own)
    amounts = ((PODS, 1), *problem.request.amounts)
    # Usually every node has room for all pods, and nothing is copied.
    short = scarce_amounts([(name, amount * most) for name, amount in amounts], index)
    columns = [(name, short[name], amount) for name, amount in amounts if name in short]
    return WorkloadProblem(
        problem=problem,
        hard=tuple(_counted_constraints(problem, own, index, late)),
        running=running,
        away=_away(problem, index, now),
        most=most,
        free=tuple((column, amount) for _, column, amount in columns),
        freed=_freed(running, columns, index) if columns else {},
        apart=tuple(_own_in(term, own, index, namespace) for term in problem.neighbours.anti_affinity_terms)
        if running
        else (),
    )


def _counted_constraints(
    problem: Problem, own: Selector | None, index: ReadOnlyIndex, late: Mapping[str, bool]
) -> Iterator[CountedConstraint]:
    pod, namespace = problem.pod, problem.pod.meta.namespace
    merged = [
        set(constraint.match_label_keys or ()) & set(late) for constraint in pod.pod_spec.constraints if constraint.hard
    ]
    mine: dict[Selector, Counts] = {}
    for number, (constraint, counts) in enumerate(zip(problem.hard.constraints, problem.hard.counts, strict=True)):
        selector = constraint.selector
        if selector not in mine:
            narrow = counts and own is not None
            mine[selector] = (
                index.pods.count(namespace, selector.joined(own.requirements)) if narrow and own else counts
            )
        # With a revision label in matchLabelKeys, only pods of one revision count, and none of other workloads.
        apart = merged[number] - set(pod.labels)
        counts_none = selector.empty and not gates.COUNTS_EMPTY_SELECTOR.holds(index.version)
        certain = selector.matches(pod.labels) and not any(
            requirement.key in late for requirement in selector.requirements
        )
        yield CountedConstraint(
            index=number,
            constraint=constraint,
            counts=mine[selector] if apart else counts,
            own=mine[selector],
            certain=certain and not counts_none and all(late[key] for key in apart),
        )


def _freed(
    running: Counts, columns: Iterable[tuple[str, Sequence[int], int]], index: ReadOnlyIndex
) -> Mapping[int, tuple[int, ...]]:
    """Return the free amounts of resources by slot of the workload's nodes, as if the workload's pods were gone."""
    # Loop over resources, since a workload may run on thousands of nodes.
    freed = []
    for name, free, amount in columns:
        has = index.nodes.amounts(name)[1]
        left = [free[slot] + pods * amount for slot, pods in running.items()]
        freed.append(list(map(min, left, map(has.__getitem__, running))))
    return dict(zip(running, zip(*freed, strict=True), strict=True))


def _own_in(term: Term, own: Selector | None, index: ReadOnlyIndex, namespace: str) -> Counts:
    if own is None or term.selector.nothing or not term.in_namespace(namespace, {}):
        return {}
    return index.pods.count(namespace, term.selector.joined(own.requirements))


def _away(problem: Problem, index: ReadOnlyIndex, now: str) -> int:
    """Return the briefly unavailable nodes, as a bit set.

    Only a cordon or a node-state taint (such as not-ready) keeps the pod from such a node. The taint is less than an
    hour old, or of unknown age.
    """
    nodes, tolerations = problem.nodes, problem.pod.pod_spec.tolerations
    # Cordons without a taint. Cordons with taints follow.
    asked = nodes.unschedulable & ~sum(members for _, members in nodes.taint_classes)
    for taints, members in nodes.taint_classes:
        check_time()
        untolerated = [taint for taint in taints if first_untolerated((taint,), tolerations, FILTERING_EFFECTS)]
        if all(taint.key in NODE_STATES for taint in untolerated):
            asked |= members if untolerated else members & nodes.unschedulable
    return sum(1 << slot for slot in node_sets.to_slots(asked) if _is_young(index, nodes.names[slot], now))


def _is_young(index: ReadOnlyIndex, name: str, now: str) -> bool:
    node = index.nodes.get(name)
    return node is None or not any(is_old(taint, now) for taint in node.taints if taint.key in NODE_STATES)


def is_old(taint: Taint, now: str) -> bool:
    """Whether the taint is too old to expect the node's return soon. False if a time is unknown."""
    try:
        return datetime.fromisoformat(now) - datetime.fromisoformat(taint.time_added or "") >= _A_WHILE
    except (ValueError, TypeError):  # A time is missing or invalid.
        return False


def candidate_nodes(
    facts: WorkloadProblem, *, without: Collection[Restriction] = (), present: bool = False
) -> CandidateNodes:
    """Return the nodes for the pods, under all restrictions but spread constraints.

    Restrictions in ``without`` are ignored. Cordoned or unready nodes expected back soon count as usable, unless
    ``present`` is true.
    """
    cycle, nodes = Cycle(facts.problem), facts.problem.nodes
    away = 0 if present else facts.away
    usable = nodes.live if Restriction.AFFINITY in without else cycle.eligible.usable
    chosen = usable if Restriction.AFFINITY in without else usable & ~_rejected(cycle.result(NODE_NAME), nodes.live)
    if facts.problem.pod.pod_spec.volumes and Restriction.VOLUMES not in without:
        chosen &= ~(
            _rejected(cycle.result(VOLUME_BINDING), nodes.live) | _rejected(cycle.result(VOLUME_ZONE), nodes.live)
        )
    for status, members in _outcomes(cycle.result(inter_pod_affinity.INTER_POD_AFFINITY), nodes.live):
        if (
            Restriction.NEAR if status.reasons == inter_pod_affinity.NO_AFFINITY.reasons else Restriction.APART
        ) not in without:
            chosen &= ~members
    tolerated = cycle.eligible.tolerated | away
    barred = chosen & ~(tolerated & ~(_rejected(cycle.result(NODE_UNSCHEDULABLE), nodes.live) & ~away))
    return CandidateNodes(
        eligible=EligibleNodes(nodes, usable, tolerated),
        open=chosen & ~barred,
        barred=barred,
        away=away,
        apart=() if Restriction.APART in without else _apart(facts.problem),
        together=None if Restriction.NEAR in without else _together(facts.problem, nodes),
    )


def _rejected(result: PluginResult, asked: int) -> int:
    return sum(members for _, members in _outcomes(result, asked))


def _outcomes(result: PluginResult, asked: int) -> Iterable[StatusOfNodes]:
    """Return the nodes rejected by a plugin's Filter. Empty if PreFilter failed, for example for unknown claims."""
    return () if result.filter is None else result.filter(asked)


def _together(problem: Problem, nodes: NodeView) -> str | None:
    """Return the key of required pod affinity if the pods attract only each other.

    All pods then go to one domain of this topologyKey. None without required affinity, if the affinity does not match
    the workload's own pods, or if an existing pod already matches.
    """
    near = problem.neighbours
    if not near.affinity_terms or not near.matches_itself:
        return None
    for term in near.affinity_terms:
        domain_of = nodes.column(term.topology_key).domain_of
        if any(domain_of[slot] >= 0 for slot in near.affinity_pods):
            return None
    return near.affinity_terms[0].topology_key


def _apart(problem: Problem) -> tuple[str, ...]:
    """Return the topology keys of anti-affinity terms that match the pod itself for certain."""
    pod = problem.pod
    terms = pod.pod_spec.pod_anti_affinity.required or ()
    return tuple(
        term.topology_key
        for term, own in zip(terms, problem.neighbours.anti_affinity_terms, strict=False)
        if own.in_namespace(pod.meta.namespace, {}) and own.selector.matches(pod.labels) and _is_positive(term)
    )


def _is_positive(term: PodAffinityTerm) -> bool:
    """Whether the term still matches the pod if labels are added."""
    selector = term.label_selector
    requirements = (selector and selector.match_expressions) or ()
    return not term.mismatch_label_keys and all(requirement.operator not in _NEGATIVE for requirement in requirements)


_NEGATIVE = frozenset({"NotIn", "DoesNotExist"})
