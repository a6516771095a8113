"""The nodes to which the pods of a workload can go, and the pods that each of its hard constraints counts.

    index, pod      -> survey(...) -> WorkloadProblem             copies all that answers depend on
    WorkloadProblem -> candidate_nodes(...) -> CandidateNodes     with changes to try
    CandidateNodes  -> constraint_room.constraint_rooms(...)

Only lasting facts exclude a node: its name, cordon and taints, the pod's node affinity, its volumes, and pods of other
workloads. Nodes that are away for a short time (cordoned recently, not ready, about to be replaced) count as back, so
that an upgrade causes no findings. Nothing is known meanwhile for a constraint with nodeTaintsPolicy Honor.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import reduce
from operator import or_

from msgspec import Struct

from webhook.core.api import gates
from webhook.core.api.resources import PODS
from webhook.core.api.selectors import Selector, first_untolerated
from webhook.core.api.types import Pod, PodAffinityTerm, Taint
from webhook.core.api.well_known import FILTERING_EFFECTS, NODE_STATES
from webhook.core.budget import check_time
from webhook.core.cached_property import cached_property
from webhook.core.index import node_sets
from webhook.core.index.nodes import NodeView
from webhook.core.index.pods import Counts, Term
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.plugins import inter_pod_affinity
from webhook.core.scheduler.plugins.node_name import NODE_NAME
from webhook.core.scheduler.plugins.node_resources_fit import scarce_amounts
from webhook.core.scheduler.plugins.node_unschedulable import NODE_UNSCHEDULABLE
from webhook.core.scheduler.plugins.pod_topology_spread import Constraint, EligibleNodes
from webhook.core.scheduler.plugins.status import PluginResult, StatusOfNodes
from webhook.core.scheduler.plugins.volume_binding import VOLUME_BINDING
from webhook.core.scheduler.plugins.volume_zone import VOLUME_ZONE
from webhook.core.scheduler.problem import Problem, take_lasting

# A passing taint that is older than this is taken to stay.
_A_WHILE = timedelta(hours=1)
# A workload whose pods must all be in one domain is tried in each; with more domains than this, nothing is said.
MAX_HOME_DOMAINS = 64


class Restriction(StrEnum):
    """What keeps a pod off nodes besides taints and cordons; `candidate_nodes` can leave each out, to try a change."""

    AFFINITY = "affinity"
    VOLUMES = "volumes"
    NEAR = "near"
    APART = "apart"


class CountedConstraint(Struct, frozen=True):
    """One hard constraint with the pods that it counts; ``own`` are the workload's.

    ``index`` is its place among the hard constraints. ``certain``: the workload's pods are known to match its selector.
    """

    index: int
    constraint: Constraint
    counts: Counts
    own: Counts
    certain: bool


class WorkloadProblem(Struct, frozen=True, dict=True):
    """Everything that decides where the pods of one template can go, at one moment.

    Args:
        running: The workload's own pods by slot.
        away: Nodes that are assumed to be back soon.
        most: The most pods on one node for which answers are exact.
        free: Of each resource that is short for so many: what is free by slot, and what one pod takes.
        freed: The same as if the workload's own pods were gone, by their slots. Never more than the node has.
        apart: Its own pods that match each of its anti-affinity terms.
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
        """The nodes that have too little free for even one of the pods, before anything is freed."""
        return reduce(or_, (node_sets.below(free, amount) for free, amount in self.free), 0)


class CandidateNodes(Struct, frozen=True):
    """The nodes for the pods, as things are or with a change.

    ``open`` admit the pod if spread constraints do; ``barred`` would without a taint or cordon. No two pods may share a
    domain of a key in ``apart``; all have to share one of ``together``. ``away`` are assumed to be back although they
    are not yet.
    """

    eligible: EligibleNodes
    open: int
    barred: int
    away: int = 0
    apart: tuple[str, ...] = ()
    together: str | None = None


def survey(  # noqa: PLR0913 each a fact of its own
    index: ReadOnlyIndex, pod: Pod, own: Selector | None, most: int, *, now: str, late: Mapping[str, bool]
) -> WorkloadProblem:
    """Copy everything that the answers depend on. They are exact for at most ``most`` pods on one node.

    Args:
        index: The cluster.
        pod: As the scheduler gets it.
        own: Selects the workload's pods. With None, any counted pod may be its own.
        most: See above.
        now: An ISO time. Empty if unknown.
        late: Keys of labels that pods get later or with other values, and whether they differ by revision.
    """
    problem, namespace = take_lasting(index, pod), pod.meta.namespace
    merged = [set(each.match_label_keys or ()) & set(late) for each in pod.pod_spec.constraints if each.hard]
    mine: dict[Selector, Counts] = {}
    hard = []
    for number, (constraint, counts) in enumerate(zip(problem.hard.constraints, problem.hard.counts, strict=True)):
        selector = constraint.selector
        if selector not in mine:
            narrow = counts and own is not None
            mine[selector] = (
                index.pods.count(namespace, selector.joined(own.requirements)) if narrow and own else counts
            )
        # matchLabelKeys with a revision label: only pods of one revision count, so none of other workloads.
        apart = merged[number] - set(pod.labels)
        counts_none = selector.empty and not gates.COUNTS_EMPTY_SELECTOR.holds(index.version)
        certain = selector.matches(pod.labels) and not any(each.key in late for each in selector.requirements)
        hard.append(
            CountedConstraint(
                index=number,
                constraint=constraint,
                counts=mine[selector] if apart else counts,
                own=mine[selector],
                certain=certain and not counts_none and all(late[key] for key in apart),
            )
        )
    running = {} if own is None else index.pods.count(namespace, own)
    amounts = ((PODS, 1), *problem.request.amounts)
    # Most often every node has room for all of the pods, and nothing is copied.
    short = scarce_amounts([(name, amount * most) for name, amount in amounts], index)
    columns = [(name, short[name], amount) for name, amount in amounts if name in short]
    return WorkloadProblem(
        problem=problem,
        hard=tuple(hard),
        running=running,
        away=_away(problem, index, now),
        most=most,
        free=tuple((column, amount) for _, column, amount in columns),
        freed=_freed(running, columns, index) if columns else {},
        apart=tuple(_own_in(term, own, index, namespace) for term in problem.neighbours.anti_affinity_terms)
        if running
        else (),
    )


def _freed(
    running: Counts, columns: Iterable[tuple[str, Sequence[int], int]], index: ReadOnlyIndex
) -> Mapping[int, tuple[int, ...]]:
    """What is free where the workload runs, as if its pods were gone: at most what the node has."""
    # Resource by resource: a workload may run on thousands of nodes.
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
    """The nodes that only a cordon or a recent passing taint closes to the pod."""
    nodes, tolerations = problem.nodes, problem.pod.pod_spec.tolerations
    # Cordons without any taint beside them; those with taints are looked at below.
    asked = nodes.unschedulable & ~sum(members for _, members in nodes.taint_classes)
    for taints, members in nodes.taint_classes:
        check_time()
        untolerated = [each for each in taints if first_untolerated((each,), tolerations, FILTERING_EFFECTS)]
        if all(each.key in NODE_STATES for each in untolerated):
            asked |= members if untolerated else members & nodes.unschedulable
    return sum(1 << slot for slot in node_sets.to_slots(asked) if _is_young(index, nodes.names[slot], now))


def _is_young(index: ReadOnlyIndex, name: str, now: str) -> bool:
    node = index.nodes.get(name)
    return node is None or not any(_is_old(each, now) for each in node.taints if each.key in NODE_STATES)


def _is_old(taint: Taint, now: str) -> bool:
    try:
        return datetime.fromisoformat(now) - datetime.fromisoformat(taint.time_added or "") >= _A_WHILE
    except (ValueError, TypeError):  # one of the times is missing, or no time
        return False


def candidate_nodes(
    places: WorkloadProblem, *, without: Collection[Restriction] = (), present: bool = False
) -> CandidateNodes:
    """The nodes for the pods, ``without`` some restrictions; with ``present``, away nodes are as they are now."""
    cycle, nodes = Cycle(places.problem), places.problem.nodes
    away = 0 if present else places.away
    usable = nodes.live if Restriction.AFFINITY in without else cycle.eligible.usable
    chosen = usable if Restriction.AFFINITY in without else usable & ~_rejected(cycle.result(NODE_NAME), nodes.live)
    if places.problem.pod.pod_spec.volumes and Restriction.VOLUMES not in without:
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
        apart=() if Restriction.APART in without else _apart(places.problem),
        together=None if Restriction.NEAR in without else _together(places.problem, nodes),
    )


def _rejected(result: PluginResult, asked: int) -> int:
    return sum(members for _, members in _outcomes(result, asked))


def _outcomes(result: PluginResult, asked: int) -> Iterable[StatusOfNodes]:
    """The nodes that a plugin rejects; none if its PreFilter already failed, as for unknown claims."""
    return () if result.filter is None else result.filter(asked)


def _together(problem: Problem, nodes: NodeView) -> str | None:
    """A topology key in one domain of which all pods will be: they want to be near each other, and none runs yet."""
    near = problem.neighbours
    if not near.affinity_terms or not near.matches_itself:
        return None
    for term in near.affinity_terms:
        of = nodes.column(term.topology_key).of
        if any(of[slot] >= 0 for slot in near.affinity_pods):
            return None
    return near.affinity_terms[0].topology_key


def _apart(problem: Problem) -> tuple[str, ...]:
    """The topology keys of the pod's anti-affinity terms that are certain to match the pod itself."""
    pod, written = problem.pod, problem.pod.pod_spec.affinity
    terms = (written.pod_anti_affinity.required if written and written.pod_anti_affinity else None) or ()
    return tuple(
        term.topology_key
        for term, own in zip(terms, problem.neighbours.anti_affinity_terms, strict=False)
        if own.in_namespace(pod.meta.namespace, {}) and own.selector.matches(pod.labels) and _is_positive(term)
    )


def _is_positive(term: PodAffinityTerm) -> bool:
    """Whether the term still matches the pod after it gets more labels."""
    selector = term.label_selector
    denied = [each for each in (selector and selector.match_expressions) or () if each.operator in _NEGATIVE]
    return not denied and not term.mismatch_label_keys


_NEGATIVE = frozenset({"NotIn", "DoesNotExist"})
