"""Simulate: workloads, and events of the cluster -> one answer for each event."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import Pod
from webhook.core.changes.candidates import at_most
from webhook.core.coming_pods.next_pod import coming_pod
from webhook.core.context import Context
from webhook.core.explain.explanation import Explanation, explain_pod
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game_from_cluster import are_attracted
from webhook.core.placement.making_room import Added, nodes_to_add, preempted
from webhook.core.placement.simulation import Effort, Outcome, Verdict
from webhook.core.policy.capacity import can_add_nodes
from webhook.core.scheduler.verdict import Cause
from webhook.core.text import listed, plural
from webhook.core.what_if.events import Event, WhatIf, apply_events, is_made_anew, settle
from webhook.core.what_if.forecast import Forecast, forecast
from webhook.core.what_if.play import (
    Ending,
    Outcomes,
    all_fit,
    alone,
    batches_of,
    ending,
    play,
    trials_in,
    undecided,
)
from webhook.core.what_if.suggestions import SuggestedChange, suggested_changes
from webhook.core.what_if.workloads import (
    ReplicatedSource,
    SimulatedWorkload,
    UnownedPods,
    rebuilt,
    simulated_workload,
    unowned_pods,
    unowned_workload,
)

_TOGETHER = 12  # batches of pods that are looked at together: the states of more are as good as endless
_HELPING = Effort(states=5_000, orders=0)  # for each change that is tried
_ROOM, _ROOM_TRIALS = Effort(states=2_000), 200  # for each number of nodes that is tried
_NAMES = 3
_TIMING = "whether terminating pods, which its affinity asks for, are gone before its pods look for a node"
_MOST_ENDS = 12  # workloads that are explained; each means to play all moves once more


class Answer(Struct, frozen=True, kw_only=True):
    """What becomes of the pods of some workloads.

    Args:
        ends: How it ends for each workload that may not fit, with what would help; if all fit, for the last one.
        event: What has happened to the cluster, empty for nothing.
        notes: Sentences about the pods.
        unseen: Sentences about what was not simulated.
        added: The nodes to add so that all pods fit.
        preempts: The number of pods of lower priority to evict for that. None if not known.
        likely: Where the scheduler would most likely put them.
        scaled: The verdict at the autoscalers' maximum. None if none exceeds the replicas.
        grows: Whether nodes can be added.
    """

    outcomes: Outcomes
    ends: tuple[tuple[Ending, tuple[SuggestedChange, ...]], ...] = ()
    event: str = ""
    notes: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    added: tuple[Added, ...] = ()
    preempts: int | None = None
    likely: Forecast | None = None
    scaled: Verdict | None = None
    grows: bool = False

    @property
    def fits(self) -> bool:
        """Whether every pod gets a node in every order."""
        return self.outcomes.whole.outcome is Outcome.FITS

    @property
    def end(self) -> Ending | None:
        """The first of the ends; None where no pod looks for a node, or nothing is known."""
        return self.ends[0][0] if self.ends else None

    @property
    def grown(self) -> bool:
        """Whether nodes can be added with which all pods fit."""
        return self.grows and bool(self.added)

    @property
    def cause(self) -> Cause | None:
        """What is in the way of the first pod that waits: capacity if added nodes help. None if none waits."""
        if self.end is None or not self.end.waiting:
            return None
        if self.grown:
            return Cause.CAPACITY
        # A node that admits it is one that its volumes cannot be used from.
        return self.end.after.cause or Cause.OTHER


class _Moment(NamedTuple):
    """The pods to place after an event. ``others`` have no source; ``gone`` have terminated."""

    workloads: Sequence[SimulatedWorkload]
    others: Sequence[UnownedPods]
    gone: Sequence[Pod]


class Targets(Struct, frozen=True, kw_only=True):
    """The workloads of a simulation; with ``everything`` all of the cluster, or of one namespace.

    ``pods`` has, by node, the pods on affected nodes and all terminating pods. ``unseen`` has a line for each skipped
    object.
    """

    sources: tuple[ReplicatedSource, ...]
    pods: Mapping[str, Sequence[Pod]]
    everything: bool = False
    namespace: str = ""
    unseen: tuple[str, ...] = ()


class Run(Struct, frozen=True, kw_only=True):
    """One simulation, with its effort per answer. Events change ``index``, the cluster of ``within``."""

    index: ClusterIndex
    targets: Targets
    within: Context
    effort: Effort
    rollout: bool = False
    tick: Callable[[int], None] = lambda _: None

    def answers(self, what_if: WhatIf) -> Iterator[Answer]:
        """The answer after each event. Raises NotInClusterError for an event that cannot happen in this cluster."""
        origin = {
            each.title: explain_pod(coming_pod(each, self.within).problem, brief=True)
            for each in (() if self.targets.everything else self.targets.sources)
        }
        for event, (workloads, others, gone) in self._moments(what_if):
            outcomes = self._played(workloads)
            stopped = outcomes.interrupted
            added, preempts = ((), None) if stopped else self._room(outcomes)
            yield Answer(
                outcomes=outcomes,
                likely=None if stopped else forecast(outcomes, self.index, self.within),
                ends=() if stopped else tuple(self._ends(outcomes, origin)),
                event=event.text,
                notes=tuple(self._notes(event, workloads, gone)),
                unseen=tuple(self._unseen(others)),
                added=added,
                preempts=preempts,
                scaled=None if stopped else self._scaled(workloads),
                grows=can_add_nodes(self.within.policy, self.index.nodes.view()),
            )

    def outcomes(self, what_if: WhatIf) -> Iterator[Outcomes]:
        """The verdict alone after each event. Raises as `answers`."""
        for _, moment in self._moments(what_if):
            yield self._played(moment.workloads)

    def _moments(self, what_if: WhatIf) -> Iterator[tuple[Event, _Moment]]:
        """The pods to place after each event, once terminating pods are gone."""
        named = self.targets.namespace if self.targets.everything else ""
        namespaces = (named,) if named else self.index.known_namespaces()
        waiting = [pod for namespace in namespaces for pod in self.index.pods.waiting(namespace)]
        waiting = [pod for pod in waiting if pod.meta.deletion_timestamp is None]  # such a pod looks for no node
        gone = list[Pod]()
        for event in apply_events(what_if, self.index, self.targets.pods):
            gone += settle(self.index, [pod for pods in self.targets.pods.values() for pod in pods])
            controlled = [pod for pod in (*event.evicted, *filter(is_made_anew, gone)) if pod.meta.controller]
            others = unowned_pods([*waiting, *controlled], self.targets.sources, self.index)
            yield event, _Moment(self._simulated(others, gone), others, tuple(gone))

    def _simulated(self, others: Sequence[UnownedPods], gone: Sequence[Pod]) -> list[SimulatedWorkload]:
        sources = [each for each in self.targets.sources if not self._is_complete(each)]
        found = [simulated_workload(each, self.within, rollout=self.rollout) for each in sources]
        if self.targets.everything:
            found += [unowned_workload(each, self.within) for each in others]
            found = [each for each in found if each.batches or each.unknown]
        return [replace(each, unknown=_TIMING) if are_attracted(each.batches, gone) else each for each in found]

    def _room(self, of: Outcomes) -> tuple[tuple[Added, ...], int | None]:
        """The nodes to add for all workloads together, and the number of pods to preempt."""
        within, cluster = self.within, self.within.cluster
        if of.alone or of.simulation is None or of.whole.outcome not in (Outcome.NO_FIT, Outcome.STUCK):
            return (), None

        def fits(other: ReadOnlyIndex) -> bool:
            return all_fit([rebuilt(each, within.with_index(other)) for each in of.workloads], other, _ROOM)

        batches, tried = batches_of(of.workloads), at_most(trials_in(_ROOM_TRIALS, cluster), fits)
        rolling = any(each.rollout is not None for each in of.workloads)
        preempts = None if rolling else preempted(batches, cluster, of.simulation, _ROOM)
        return nodes_to_add(batches, cluster, tried, within.policy.domains), preempts

    def _scaled(self, workloads: Sequence[SimulatedWorkload]) -> Verdict | None:
        """The verdict with each workload at its autoscaler's maximum; None where none may ask for more."""
        sources = [each.source for each in workloads if each.source is not None]
        if self.targets.everything or self.rollout or all(each.most <= each.replicas for each in sources):
            return None
        most = [replace(each, replicas=max(each.most, each.replicas)) for each in sources]
        scaled = [simulated_workload(each, self.within) for each in most]
        return play(scaled, self.index, self.effort, self.tick).whole

    def _played(self, workloads: Sequence[SimulatedWorkload]) -> Outcomes:
        """All together; of many, or where that is not decided, each alone too."""
        batches = sum(len(each.batches) for each in workloads)
        if batches > _TOGETHER and self.targets.everything:
            return alone(undecided(workloads), self.index, self.effort, self.tick)
        found = play(workloads, self.index, self.effort, self.tick)
        if found.whole.outcome is not Outcome.UNKNOWN or len(workloads) < 2 or found.interrupted or found.unknown:
            return found
        return alone(found, self.index, self.effort, self.tick)

    def _ends(
        self, of: Outcomes, origin: Mapping[str, Explanation]
    ) -> Iterator[tuple[Ending, tuple[SuggestedChange, ...]]]:
        """The end of each workload that may not fit, and what would help; if all fit, the end of the last one."""
        bad = [number for number, each in enumerate(of.each) if each.outcome is not Outcome.FITS]
        for number in bad[:_MOST_ENDS] if len(of.workloads) > 1 and bad else [*range(len(of.workloads))][-1:]:
            about = of.about(number)
            known = origin.get(of.workloads[number].title)
            end = ending(about, 0 if of.alone else number, self.index, self.within, known)
            if end is None or (bad and not end.waiting and len(bad) > 1):
                continue
            found = tuple(suggested_changes(about, end, self.within, _HELPING)) if end.waiting else ()
            yield end, found

    def _is_complete(self, source: ReplicatedSource) -> bool:
        """Whether all pods of it run; a quick look, since a cluster has thousands of workloads."""
        if not self.targets.everything or source.own is None or source.workload.traits.ordered:
            return False
        return sum(self.index.pods.count(source.namespace, source.own).values()) >= source.replicas

    def _notes(self, event: Event, workloads: Sequence[SimulatedWorkload], gone: Sequence[Pod]) -> Iterator[str]:
        if gone:
            named = listed([f"{pod.meta.namespace}/{pod.meta.name}" for pod in gone], _NAMES)
            yield f"{plural(len(gone), 'terminating pod')} count{'s' * (len(gone) == 1)} as gone: {named}"
        bare = [f"{pod.meta.namespace}/{pod.meta.name}" for pod in event.evicted if pod.meta.controller is None]
        if bare:
            are = "has no controller and is" if len(bare) == 1 else "have no controller and are"
            yield f"{plural(len(bare), 'pod')} {are} gone for good: {listed(bare, _NAMES)}"
        for each in workloads:
            source = each.source
            if source is None:
                continue
            if source.workload.suspended:
                yield f"{each.title} is suspended: its controller makes no pod now"
            if source.workload.paused and (self.rollout or not source.applied):
                yield f"{each.title} is paused: its controller makes no pod of a new template before you resume it"
            if each.rollout is not None and source.workload.recreates:
                yield f"{each.title}: all old pods are gone before a new one is made (Recreate)"
            if not source.applied and each.staying and not self.rollout:
                run, they = ("pod runs", "it is") if each.staying == 1 else ("pods run", "they are")
                stay = "stays" if each.staying == 1 else "stay"
                yield f"{each.staying:,} {run} already and {stay}; with --rollout {they} replaced"
            leaving = self._leaving(source) if source.workload.traits.ordered else 0
            if leaving:
                lost = f"{plural(leaving, 'pod')} stay{'s' * (leaving == 1)} on nodes that cannot be reached"
                yield f"{each.title}: {lost}; no other is made before somebody deletes it by force, or the node"

    def _leaving(self, source: ReplicatedSource) -> int:
        if source.own is None:
            return 0
        every = self.index.pods.count(source.namespace, source.own, leaving=True)
        return sum(every.values()) - sum(self.index.pods.count(source.namespace, source.own).values())

    def _unseen(self, others: Sequence[UnownedPods]) -> Iterator[str]:
        pods = sum(len(each.names) for each in others)
        if pods and not self.targets.everything:
            yield f"OtherPods: {plural(pods, 'pod')} of other workloads that look{'s' * (pods == 1)} for a node too"
        yield from self.targets.unseen
