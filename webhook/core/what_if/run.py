"""Simulate the placement of workloads after what-if events. Return a result for each event."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import Pod
from webhook.core.changes.candidates import limit_trials
from webhook.core.context import Context
from webhook.core.explain.explanation import Explanation, explain_pod
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game_from_cluster import are_attracted
from webhook.core.placement.making_room import NodesToAdd, nodes_to_add, pods_to_preempt
from webhook.core.placement.placement_verdict import Effort, PlacedPods, PlacementVerdict
from webhook.core.pods_to_create.next_pod import next_pod_of
from webhook.core.pods_to_remove.running_pod import RunningPod
from webhook.core.policy.capacity import can_add_nodes
from webhook.core.scheduler.verdict import Cause
from webhook.core.text import agree, listed, plural
from webhook.core.what_if.ending import Ending, describe_ending
from webhook.core.what_if.events import Event, WhatIf, apply_events
from webhook.core.what_if.evictions import delete_terminating_pods, is_replaced
from webhook.core.what_if.forecast import Forecast, forecast
from webhook.core.what_if.joint_simulation import (
    JointVerdict,
    all_fit,
    batches_of,
    simulate_separately,
    simulate_together,
    trials_in,
    undecided,
)
from webhook.core.what_if.scale_in import WorkloadScaleIn, forecast_scale_ins
from webhook.core.what_if.sources import ReplicatedSource
from webhook.core.what_if.suggestions import SuggestedChange, suggested_changes
from webhook.core.what_if.workloads import (
    OtherPods,
    SimulatedWorkload,
    other_pods,
    rebuilt,
    simulated_workload,
    workload_of_other_pods,
)

_TOGETHER = 12  # Simulate up to this number of batches together. More have too many states.
_ROOM, _ROOM_TRIALS = Effort(states=2_000), 200  # For each number of nodes to try.
_NAMES = 3  # The most pods named in a note.
DEPENDS_ON_TIMING = "the pods' required affinity needs terminating pods, so the answer depends on timing"
_MOST_ENDS = 12  # Explain up to this number of workloads. Each repeats all moves.


class SimulationAnswer(Struct, frozen=True, kw_only=True):
    """The result of `evenspread simulate`: the nodes of the pods after an event.

    Attributes:
        joint: The verdicts on all simulated workloads.
        ends: For each workload that may not fit, one final placement and the helpful changes. If all fit, one final
            placement for the last workload.
        event: The event in words. Empty for none.
        notes: Remarks for the user, such as a suspended workload or terminating pods counted as deleted.
        unseen: Remarks about skipped objects.
        added: The nodes to add so that all pods fit.
        preempts: The number of pods of lower priority to preempt. None if unknown.
        likely: The most likely node of each pod. None if not computed.
        scaled: The verdict at the autoscalers' maximum. None without a higher maximum.
        scale_ins: The scale-ins of workloads with fewer wanted than active pods.
        grows: Whether the cluster can add nodes.
    """

    joint: JointVerdict
    ends: tuple[tuple[Ending, tuple[SuggestedChange, ...]], ...] = ()
    event: str = ""
    notes: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    added: tuple[NodesToAdd, ...] = ()
    preempts: int | None = None
    likely: Forecast | None = None
    scaled: PlacedPods | None = None
    scale_ins: tuple[WorkloadScaleIn, ...] = ()
    grows: bool = False

    @property
    def fits(self) -> bool:
        """Whether every pod gets a node in every order."""
        return self.joint.whole.verdict is PlacementVerdict.FITS

    @property
    def end(self) -> Ending | None:
        """The first final placement in ``ends``. None if no pod needs a node, or if unknown."""
        return self.ends[0][0] if self.ends else None

    @property
    def grown(self) -> bool:
        """Whether the cluster can add nodes until all pods fit."""
        return self.grows and bool(self.added)

    @property
    def cause(self) -> Cause | None:
        """Why the first waiting pod has no node. None if no pod waits. CAPACITY if added nodes help."""
        if self.end is None or not self.end.waiting:
            return None
        if self.grown:
            return Cause.CAPACITY
        # An admitting node is out of reach of the pod's volumes.
        return self.end.after.cause or Cause.OTHER


class _Moment(NamedTuple):
    """The pods to simulate after an event.

    ``others`` are pods without a `ReplicatedSource`. ``gone`` are terminated pods.
    """

    workloads: Sequence[SimulatedWorkload]
    others: Sequence[OtherPods]
    gone: Sequence[Pod]


class Targets(Struct, frozen=True, kw_only=True):
    """The workloads to simulate.

    Attributes:
        pods: By node, the pods on affected nodes and all terminating pods.
        active: The active pods of each namespace. Only a scale-in needs them.
        everything: Whether to simulate all workloads of the cluster or namespace.
        unseen: A line for each skipped object.
    """

    sources: tuple[ReplicatedSource, ...]
    pods: Mapping[str, Sequence[Pod]]
    active: Mapping[str, Sequence[RunningPod]] = {}
    everything: bool = False
    namespace: str = ""
    unseen: tuple[str, ...] = ()


class Run(Struct, frozen=True, kw_only=True):
    """A simulation of workloads after what-if events, such as a node drain.

    The events change ``index``.

    Attributes:
        index: The cluster.
        targets: The workloads to simulate, and the pods affected by the events.
        context: The context of the simulation. Its cluster is ``index``.
        effort: The limit on the work for each result.
        rollout: Whether to simulate rolling updates.
        tick: Called with the number of simulated states.

    Example:
        run = Run(index=index, targets=targets, context=context, effort=Effort())
        answers = list(run.answers(WhatIf(drain=("node-1",))))
    """

    index: ClusterIndex
    targets: Targets
    context: Context
    effort: Effort
    rollout: bool = False
    tick: Callable[[int], None] = lambda _: None

    def answers(self, what_if: WhatIf) -> Iterator[SimulationAnswer]:
        """Simulate the workloads after each event, and yield the results. Raises NotInClusterError."""
        origin = {
            source.title: explain_pod(next_pod_of(source, self.context).problem, brief=True)
            for source in (() if self.targets.everything else self.targets.sources)
        }
        for event, (workloads, others, gone) in self._moments(what_if):
            joint, scale_ins = self._played(workloads), tuple(self._scale_ins(workloads))
            stopped = joint.interrupted
            added, preempts = ((), None) if stopped else self._room(joint)
            yield SimulationAnswer(
                joint=joint,
                likely=None if stopped else forecast(joint, self.index, self.context),
                ends=() if stopped else tuple(self._ends(joint, origin)),
                event=event.text,
                notes=(*self._notes(event, workloads, gone), *(each.note for each in scale_ins if each.unknown)),
                unseen=tuple(self._unseen(others)),
                added=added,
                preempts=preempts,
                scaled=None if stopped else self._scaled(workloads),
                scale_ins=scale_ins,
                grows=can_add_nodes(self.context.policy, self.index.nodes.view()),
            )

    def _moments(self, what_if: WhatIf) -> Iterator[tuple[Event, _Moment]]:
        named = self.targets.namespace if self.targets.everything else ""
        namespaces = (named,) if named else self.index.known_namespaces()
        waiting = [pod for namespace in namespaces for pod in self.index.pods.waiting(namespace)]
        waiting = [pod for pod in waiting if pod.meta.deletion_timestamp is None]  # A terminating pod needs no node.
        gone = list[Pod]()
        for event in apply_events(what_if, self.index, self.targets.pods):
            gone += delete_terminating_pods(self.index, [pod for pods in self.targets.pods.values() for pod in pods])
            controlled = [pod for pod in (*event.evicted, *filter(is_replaced, gone)) if pod.meta.controller]
            others = other_pods([*waiting, *controlled], self.targets.sources, self.index)
            yield event, _Moment(self._simulated(others, gone), others, tuple(gone))

    def _simulated(self, others: Sequence[OtherPods], gone: Sequence[Pod]) -> list[SimulatedWorkload]:
        sources = [source for source in self.targets.sources if not self._is_complete(source)]
        workloads = [simulated_workload(source, self.context, rollout=self.rollout) for source in sources]
        if self.targets.everything:
            workloads += [workload_of_other_pods(pods, self.context) for pods in others]
            workloads = [workload for workload in workloads if workload.batches or workload.unknown]
        return [
            replace(workload, unknown=DEPENDS_ON_TIMING) if are_attracted(workload.batches, gone) else workload
            for workload in workloads
        ]

    def _room(self, joint: JointVerdict) -> tuple[tuple[NodesToAdd, ...], int | None]:
        context, cluster = self.context, self.context.cluster
        lacks_nodes = joint.whole.verdict in (PlacementVerdict.NO_FIT, PlacementVerdict.STUCK)
        if joint.alone or joint.simulation is None or not lacks_nodes:
            return (), None

        def fits(other: ReadOnlyIndex) -> bool:
            workloads = [rebuilt(workload, context.with_index(other)) for workload in joint.workloads]
            return all_fit(workloads, other, _ROOM)

        batches, tried = batches_of(joint.workloads), limit_trials(trials_in(_ROOM_TRIALS, cluster), fits)
        rolling = any(workload.rollout is not None for workload in joint.workloads)
        preempts = None if rolling else pods_to_preempt(batches, cluster, joint.simulation, _ROOM)
        return nodes_to_add(batches, cluster, tried, context.policy.domains), preempts

    def _scaled(self, workloads: Sequence[SimulatedWorkload]) -> PlacedPods | None:
        """Simulate each workload with its autoscaler's maxReplicas.

        None if no autoscaler can raise the replicas, if the command simulates the whole cluster, or for a rollout.
        """
        sources = [workload.source for workload in workloads if workload.source is not None]
        if self.targets.everything or self.rollout or all(source.most <= source.replicas for source in sources):
            return None
        most = [replace(source, replicas=max(source.most, source.replicas)) for source in sources]
        scaled = [simulated_workload(source, self.context) for source in most]
        return simulate_together(scaled, self.index, self.effort, self.tick).whole

    def _scale_ins(self, workloads: Sequence[SimulatedWorkload]) -> Iterator[WorkloadScaleIn]:
        if not self.targets.everything and not self.rollout:
            sources = (workload.source for workload in workloads)
            yield from forecast_scale_ins(filter(None, sources), self.targets.active, self.context)

    def _played(self, workloads: Sequence[SimulatedWorkload]) -> JointVerdict:
        """Simulate all workloads together.

        If there are too many workloads, or the verdict is unknown, also simulate each workload alone.
        """
        batches = sum(len(workload.batches) for workload in workloads)
        if batches > _TOGETHER and self.targets.everything:
            return simulate_separately(undecided(workloads), self.index, self.effort, self.tick)
        joint = simulate_together(workloads, self.index, self.effort, self.tick)
        is_decided = joint.whole.verdict is not PlacementVerdict.UNKNOWN
        if is_decided or len(workloads) < 2 or joint.interrupted or joint.unknown:
            return joint
        return simulate_separately(joint, self.index, self.effort, self.tick)

    def _ends(
        self, joint: JointVerdict, origin: Mapping[str, Explanation]
    ) -> Iterator[tuple[Ending, tuple[SuggestedChange, ...]]]:
        """Yield final placements of the simulation, each with the suggested changes.

        There is one for each workload that may not fit. If all fit, only the last workload has one.
        """
        bad = [number for number, placed in enumerate(joint.each) if placed.verdict is not PlacementVerdict.FITS]
        for number in bad[:_MOST_ENDS] if len(joint.workloads) > 1 and bad else [*range(len(joint.workloads))][-1:]:
            about = joint.about(number)
            known = origin.get(joint.workloads[number].title)
            end = describe_ending(about, 0 if joint.alone else number, self.index, self.context, known)
            if end is None or (bad and not end.waiting and len(bad) > 1):
                continue
            changes = tuple(suggested_changes(about, end, self.context)) if end.waiting else ()
            yield end, changes

    def _is_complete(self, source: ReplicatedSource) -> bool:
        """Whether all pods of the source run. This quick test is for clusters with thousands of workloads."""
        if not self.targets.everything or source.own is None or source.workload.traits.ordered:
            return False
        return sum(self.index.pods.count(source.namespace, source.own).values()) >= source.replicas

    def _notes(self, event: Event, workloads: Sequence[SimulatedWorkload], gone: Sequence[Pod]) -> Iterator[str]:
        if gone:
            named = listed([f"{pod.meta.namespace}/{pod.meta.name}" for pod in gone], _NAMES)
            yield f"{plural(len(gone), 'terminating pod')} {agree(len(gone), 'count')} as deleted: {named}"
        bare = [f"{pod.meta.namespace}/{pod.meta.name}" for pod in event.evicted if pod.meta.controller is None]
        if bare:
            are = agree(len(bare), "are")
            yield f"{plural(len(bare), 'pod')} without a controller {are} lost: {listed(bare, _NAMES)}"
        for workload in workloads:
            source = workload.source
            if source is None:
                continue
            if source.workload.suspended:
                yield f"{workload.title} is suspended: its controller creates no pods"
            if source.workload.paused and (self.rollout or not source.applied):
                paused = "its controller creates no pods from a new template until you resume it"
                yield f"{workload.title} is paused: {paused}"
            if workload.rollout is not None and source.workload.recreates:
                yield f"{workload.title}: the strategy Recreate deletes all old pods before it creates new pods"
            if not source.applied and workload.staying and not self.rollout:
                run, they = ("pod keeps", "its") if workload.staying == 1 else ("pods keep", "their")
                yield f"{workload.staying:,} {run} running; use --rollout to simulate {they} replacement"
            leaving = self._leaving(source) if source.workload.traits.ordered else 0
            if leaving:
                lost = f"{plural(leaving, 'pod')} {agree(leaving, 'stay')} on unreachable nodes"
                yield f"{workload.title}: {lost} until you force-delete the pod{'s' * (leaving != 1)}, or the nodes"

    def _leaving(self, source: ReplicatedSource) -> int:
        if source.own is None:
            return 0
        every = self.index.pods.count(source.namespace, source.own, terminating=True)
        return sum(every.values()) - sum(self.index.pods.count(source.namespace, source.own).values())

    def _unseen(self, others: Sequence[OtherPods]) -> Iterator[str]:
        pods = sum(len(group.names) for group in others)
        if pods and not self.targets.everything:
            yield f"OtherPods: {plural(pods, 'pending pod')} of other workloads"
        yield from self.targets.unseen
