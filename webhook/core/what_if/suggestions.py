"""Suggest changes after which all pods of a workload fit in every order.

Each change is tested with all pods. A fix for a single pod is tested with the workload's other pods running, and with
all pods created anew, since a new template replaces them.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.tolerations import first_untolerated
from webhook.core.api.types import Pod, Toleration
from webhook.core.api.well_known import FILTERING_EFFECTS, NODE_STATES, TAINT_UNSCHEDULABLE
from webhook.core.changes.candidates import Candidates, PodFix
from webhook.core.changes.change import Changes, template_with
from webhook.core.changes.change_text import changes_text, trade_off
from webhook.core.context import Context
from webhook.core.index import node_sets
from webhook.core.index.nodes import NodeRow
from webhook.core.index.overlay import with_nodes
from webhook.core.placement.placement_verdict import Effort, PlacedPods, PlacementVerdict
from webhook.core.pods_to_create.missing_pods import all_pods_recreated, missing_pods
from webhook.core.pods_to_create.next_pod import PodSource
from webhook.core.text import agree, one_line, plural, together
from webhook.core.what_if.ending import Ending
from webhook.core.what_if.joint_simulation import JointVerdict, all_fit, simulate_together, trials_in
from webhook.core.what_if.sources import ReplicatedSource
from webhook.core.what_if.workloads import rebuilt, simulated_workload
from webhook.core.workloads.rollouts import unavailable_of
from webhook.core.workloads.workload import Strategy, Workload, selector_of

_FURTHER = 5  # The most maxSkew values to try, from the one needed by the first waiting pod.
_MOST = 4  # The most changes of constraints to offer.
_MOST_TRIED = 40  # The most changes to try in a small cluster.
_MOST_NODES = 8  # The most nodes to try.
_NAME = 40  # The most characters of a node name.
_OF_A_FIX = Effort(states=5_000)  # Some tenths of a second.
_HELPING = Effort(states=5_000, orders=0)  # For each change to try.


class SuggestedChange(Struct, frozen=True, kw_only=True):
    """A changed field, or a changed constraint, after which all pods fit.

    Attributes:
        before: The old value. None if absent.
        after: The new value. None if absent.
        wanted: The number of pods after the change.
        harms: The trade-offs, in words.
    """

    text: str
    target: str
    path: str
    before: object
    after: object
    wanted: int
    harms: tuple[str, ...] = ()


class _Trials:
    """Simulates a changed workload together with the other workloads. The number of trials is limited."""

    def __init__(self, joint: JointVerdict, end: Ending, context: Context) -> None:
        self._of, self._context = joint, context
        self._number = joint.workloads.index(end.workload)
        self._left = trials_in(_MOST_TRIED, context.cluster)

    def fit(self, source: ReplicatedSource | None = None, node: tuple[int, NodeRow] | None = None) -> bool:
        """Simulate the workload again, with a changed ``source`` or a changed node.

        A source is a pod template with a number of replicas.

        Returns:
            Whether all pods of the workload fit. False after too many trials.
        """
        self._left -= 1
        if self._left < 0:
            return False
        there, workloads = self._context, [*self._of.workloads]
        if node is not None:
            there = there.with_index(with_nodes(there.cluster, changed=dict([node])))
            workloads = [rebuilt(workload, there) for workload in workloads]
        if source is not None:
            rolling = workloads[self._number].rollout is not None
            workloads[self._number] = simulated_workload(source, there, rollout=rolling)
        try:
            if len(workloads) == 1:
                return all_fit(workloads, there.cluster, _HELPING)
            played = simulate_together(workloads, there.cluster, _HELPING, lambda _: None)
        except KeyboardInterrupt:
            self._left = 0
            return False
        self._left = 0 if played.interrupted else self._left
        return played.each[self._number].verdict is PlacementVerdict.FITS


def suggested_changes(joint: JointVerdict, end: Ending, context: Context) -> Iterator[SuggestedChange]:
    """Yield the changes that make all pods of a workload fit, smallest first."""
    trials, source = _Trials(joint, end, context), end.workload.source
    if source is not None:
        yield from islice(_of_constraints(trials, source, end), _MOST)
        yield from _of_the_strategy(trials, source, end)
        yield from _of_replicas(trials, source, joint.each[joint.workloads.index(end.workload)], end)
    yield from _of_nodes(trials, end)


def _of_constraints(trials: _Trials, source: ReplicatedSource, end: Ending) -> Iterator[SuggestedChange]:
    written = source.template.pod.pod_spec.constraints
    if len(written) != len(end.after.problem.pod.pod_spec.constraints):
        return  # The pod's constraints were injected.
    fixes = [fix.changes for fix in end.after.fixes]
    choices = Candidates(
        constraints=written,
        domains={
            balance.index: balance.domains.column.domain_count(balance.domains.counting)
            for balance in end.after.balances
            if balance.hard and balance.index is not None
        },
        skews={
            change.index: change.value
            for changes in fixes
            for change in changes
            if change.field == "maxSkew" and isinstance(change.value, int)
        },
        revision=source.workload.traits.revision or "" if end.workload.rollout is not None else "",
        further=_FURTHER,
        first=[candidate for candidate in fixes if candidate[0].field in ("topologyKey", "labelSelector")],
    )
    for changes in choices.helpful(
        lambda each: trials.fit(replace(source, template=template_with(source.template, each)))
    ):
        yield _loosened(changes, source, end)


def _of_the_strategy(trials: _Trials, source: ReplicatedSource, end: Ending) -> Iterator[SuggestedChange]:
    """Suggest ``maxUnavailable: 1`` for a rolling update. The controller then deletes an old pod first."""
    strategy = source.workload.strategy or Strategy()
    if end.workload.rollout is None or unavailable_of(source.workload.strategy, source.replicas) or not source.replicas:
        return
    changed = replace(source.workload, strategy=replace(strategy, max_unavailable=1))
    if source.workload.traits.surges and trials.fit(replace(source, workload=changed)):
        yield SuggestedChange(
            text="set maxUnavailable: 1",
            target=source.title,
            path="spec.strategy.rollingUpdate.maxUnavailable",
            before=strategy.max_unavailable,
            after=1,
            wanted=source.replicas,
            harms=("during a rolling update 1 pod may be missing",),
        )


def _of_replicas(
    trials: _Trials, source: ReplicatedSource, verdict: PlacedPods, end: Ending
) -> Iterator[SuggestedChange]:
    fewer = verdict.fewest or 0
    field = "parallelism" if source.workload.traits.completes else "replicas"
    single = source.workload.built_in and source.template.path == "spec.template." and end.workload.rollout is None
    if not single or not end.workload.staying <= fewer < source.replicas or not fewer:
        return
    if trials.fit(replace(source, replicas=fewer)):
        yield SuggestedChange(
            text=f"set {field}: {fewer}",
            target=source.title,
            path=f"spec.{field}",
            before=source.replicas,
            after=fewer,
            wanted=fewer,
            harms=(f"{plural(source.replicas - fewer, 'pod')} fewer {agree(source.replicas - fewer, 'run')}",),
        )


def _of_nodes(trials: _Trials, end: Ending) -> Iterator[SuggestedChange]:
    problem, blocking = end.after.problem, end.after.blocking
    view, tolerations = problem.nodes, problem.pod.pod_spec.tolerations
    lowest = 0
    if blocking is not None:
        column = blocking.domains.column
        lowest = column.nodes_of([column.numbers[value] for value in blocking.lowest])
    slots = sorted(node_sets.to_slots(view.live), key=lambda slot: (not lowest >> slot & 1, view.names[slot]))
    rows = [row for slot in slots for row in view.rows(slot, slot + 1) if row is not None]
    opened = ((row, other) for row in rows if (other := _opened(row, tolerations)) is not None)
    paths: set[str] = set()
    for row, other in islice(opened, _MOST_NODES):
        each = _of_node(row, other, end.workload.wanted)
        if each.path not in paths and trials.fit(node=(view.slots[row.name], other)):
            paths.add(each.path)
            yield each


def _opened(row: NodeRow, tolerations: Sequence[Toleration] | None) -> NodeRow | None:
    """Return the node without its cordon or its taints. None if this takes several changes.

    Taints about a node's state disappear by themselves or after a repair.
    """
    closing = [taint for taint in row.taints if first_untolerated((taint,), tolerations, FILTERING_EFFECTS)]
    others = [taint for taint in closing if taint.key != TAINT_UNSCHEDULABLE]
    cordoned = row.unschedulable or len(others) < len(closing)
    if bool(others) == cordoned or any(taint.key in NODE_STATES for taint in others):
        return None
    return row._replace(taints=tuple(taint for taint in row.taints if taint not in closing), unschedulable=False)


def _of_node(row: NodeRow, other: NodeRow, wanted: int) -> SuggestedChange:
    name = one_line(row.name, _NAME)
    gone = [f"taint {taint.key}:{taint.effect}" for taint in row.taints if taint not in other.taints]
    cordoned = row.unschedulable or any(taint.key == TAINT_UNSCHEDULABLE for taint in row.taints)
    return SuggestedChange(
        text=f"uncordon {name}" if cordoned else f"remove {together(gone)} from {name}",
        target=f"Node {row.name}",
        path="spec.unschedulable" if cordoned else "spec.taints",
        before=True if cordoned else row.taints,
        after=None if cordoned else other.taints,
        wanted=wanted,
    )


def _loosened(changes: Changes, source: ReplicatedSource, end: Ending) -> SuggestedChange:
    first, *more = changes
    constraints, path = source.template.pod.pod_spec.constraints, source.template.constraints_path
    whole = bool(more) or not first.field
    harms = (trade_off(change, constraints) for change in changes)
    return SuggestedChange(
        text=changes_text(changes, end.after.problem.pod.pod_spec.constraints),
        target=source.title,
        path=f"{path}[{first.index}]" if whole else f"{path}{first.at}",
        before=None if whole else first.value_before(constraints),
        after=None if more else first.value,
        wanted=source.replicas,
        harms=tuple(dict.fromkeys(harm for harm in harms if harm)),
    )


class PlacedReplicas(Struct, frozen=True):
    """How many of a workload's pods get a node, over all orders of placing them.

    Attributes:
        wanted: The replicas of the workload.
        fewest: The number of placed pods in the worst order.
        most: The number of placed pods in the best order.
    """

    wanted: int
    fewest: int
    most: int

    @property
    def text(self) -> str:
        """A text such as ``all 6 replicas then fit in every order``."""
        if self.fewest == self.wanted:
            return f"all {plural(self.wanted, 'replica')} then fit in every order"
        if self.most == self.wanted:
            return f"some orders then place {self.fewest:,} of {plural(self.wanted, 'replica')}"
        fit = f"{self.fewest:,}" if self.fewest == self.most else f"{self.fewest:,} to {self.most:,}"
        return f"{fit} of {plural(self.wanted, 'replica')} then fit"


def replicas_after(
    fixes: Sequence[PodFix], pod: Pod, maker: Workload | None, context: Context
) -> tuple[PlacedReplicas | None, ...]:
    """Simulate all replicas of the pod's workload after each fix of the pod.

    For each fix, return the fewest and the most pods that find a node. None for a fix with unknown replicas.
    """
    own = None if maker is None else selector_of(maker)
    if maker is None or own is None or len(maker.templates) != 1 or (maker.replicas or 0) < 2:
        return (None,) * len(fixes)
    source = PodSource(workload=maker, template=maker.templates[0], namespace=pod.meta.namespace, own=own)
    if len(source.template.pod.pod_spec.constraints) != len(pod.pod_spec.constraints):
        return (None,) * len(fixes)  # The pod's constraints were injected.
    return tuple(
        _after(replace(source, template=template_with(source.template, fix.changes)), context) for fix in fixes
    )


def _after(source: PodSource, context: Context) -> PlacedReplicas | None:
    """Simulate two cases: only missing pods are created, or all pods anew. Return the worse result."""
    wanted, results = source.workload.replicas or 0, list[PlacedReplicas]()
    for pods in (missing_pods, all_pods_recreated):
        missing = pods(source, wanted, context)
        if missing.batches or missing.unknown:
            end = None if missing.unknown else missing.simulate(_OF_A_FIX)
            if end is None or end.verdict is PlacementVerdict.UNKNOWN or end.fewest is None or end.most is None:
                return None
            results.append(PlacedReplicas(wanted, missing.staying + end.fewest, missing.staying + end.most))
    return min(results, key=lambda each: (each.most, each.fewest), default=None)
