"""Changes after which all pods of a workload fit in every order, and what a fix of one pod does to them.

Each change is tried with all pods. A fix of one pod is tried beside those that run, and with all made anew, since a
change of the template replaces them.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.selectors import first_untolerated
from webhook.core.api.types import Pod, Toleration
from webhook.core.api.well_known import FILTERING_EFFECTS, NODE_STATES, TAINT_UNSCHEDULABLE
from webhook.core.changes.candidates import Candidates, PodFix
from webhook.core.changes.change import Changes, in_words, template_with, trade_off, value_of
from webhook.core.coming_pods.missing_pods import all_anew, to_come
from webhook.core.coming_pods.next_pod import PodSource
from webhook.core.context import Context
from webhook.core.index import node_sets
from webhook.core.index.nodes import NodeRow
from webhook.core.index.overlay import with_nodes
from webhook.core.placement.simulation import Effort, Outcome, Verdict
from webhook.core.text import one_line, plural, together
from webhook.core.what_if.play import Ending, Outcomes, all_fit, play, trials_in
from webhook.core.what_if.workloads import ReplicatedSource, rebuilt, simulated_workload
from webhook.core.workloads.rollouts import unavailable_of
from webhook.core.workloads.workload import Strategy, Workload, selector_of

_FURTHER = 5  # values of maxSkew that are tried, from the one that the first pod that waits needs
_MOST = 4  # changes of constraints that are offered
_MOST_TRIED = 40
_MOST_NODES = 8  # that are tried
_NAME = 40
_OF_A_FIX = Effort(states=5_000)  # some tenths of a second


class SuggestedChange(Struct, frozen=True, kw_only=True):
    """A change of a field, or of a whole constraint, with which all pods fit in every order.

    ``before`` and ``after`` are its values, None if absent. ``harms`` are its trade-offs in words.
    """

    text: str
    target: str
    path: str
    before: object
    after: object
    wanted: int
    harms: tuple[str, ...] = ()


class _Trials:
    """Simulations of one workload beside the others, with something changed."""

    def __init__(self, of: Outcomes, end: Ending, within: Context, effort: Effort) -> None:
        self._of, self._within, self._effort = of, within, effort
        self._number = of.workloads.index(end.workload)
        self._left = trials_in(_MOST_TRIED, within.cluster)

    def fit(self, source: ReplicatedSource | None = None, node: tuple[int, NodeRow] | None = None) -> bool:
        """Whether all pods fit with another source, or another node in a slot. False after too many trials."""
        self._left -= 1
        if self._left < 0:
            return False
        there, workloads = self._within, [*self._of.workloads]
        if node is not None:
            there = there.with_index(with_nodes(there.cluster, changed=dict([node])))
            workloads = [rebuilt(each, there) for each in workloads]
        if source is not None:
            rolling = workloads[self._number].rollout is not None
            workloads[self._number] = simulated_workload(source, there, rollout=rolling)
        try:
            if len(workloads) == 1:
                return all_fit(workloads, there.cluster, self._effort)
            played = play(workloads, there.cluster, self._effort, lambda _: None)
        except KeyboardInterrupt:
            self._left = 0
            return False
        self._left = 0 if played.interrupted else self._left
        return played.each[self._number].outcome is Outcome.FITS


def suggested_changes(of: Outcomes, end: Ending, within: Context, effort: Effort) -> Iterator[SuggestedChange]:
    """The changes with which all pods of a workload fit, smallest first."""
    trials, source = _Trials(of, end, within, effort), end.workload.source
    if source is not None:
        yield from islice(_of_constraints(trials, source, end), _MOST)
        yield from _of_the_strategy(trials, source, end)
        yield from _of_replicas(trials, source, of.each[of.workloads.index(end.workload)], end)
    yield from _of_nodes(trials, end)


def _of_constraints(trials: _Trials, source: ReplicatedSource, end: Ending) -> Iterator[SuggestedChange]:
    written = source.template.template.pod_spec.constraints
    if len(written) != len(end.after.problem.pod.pod_spec.constraints):
        return  # those of the pod were injected
    found = [each.changes for each in end.after.fixes]
    choices = Candidates(
        constraints=written,
        domains={
            each.index: each.domains.column.domain_count(each.domains.counting)
            for each in end.after.balances
            if each.hard and each.index is not None
        },
        skews={
            each.index: each.value
            for changes in found
            for each in changes
            if each.field == "maxSkew" and isinstance(each.value, int)
        },
        revision=source.workload.traits.revision or "" if end.workload.rollout is not None else "",
        further=_FURTHER,
        first=[each for each in found if each[0].field in ("topologyKey", "labelSelector")],
    )
    for changes in choices.that_help(
        lambda each: trials.fit(replace(source, template=template_with(source.template, each)))
    ):
        yield _loosened(changes, source, end)


def _of_the_strategy(trials: _Trials, source: ReplicatedSource, end: Ending) -> Iterator[SuggestedChange]:
    """Let one pod be missing during a rolling update: then an old one can go before a new one comes."""
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


def _of_replicas(trials: _Trials, source: ReplicatedSource, verdict: Verdict, end: Ending) -> Iterator[SuggestedChange]:
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
            harms=(f"{plural(source.replicas - fewer, 'pod')} fewer run{'s' * (source.replicas - fewer == 1)}",),
        )


def _of_nodes(trials: _Trials, end: Ending) -> Iterator[SuggestedChange]:
    """Lift a cordon, or remove the taints of a node, where that of one node is enough; of each the first that is."""
    problem, blocking = end.after.problem, end.after.blocking
    view, tolerations = problem.nodes, problem.pod.pod_spec.tolerations
    lowest = 0
    if blocking is not None:
        column = blocking.domains.column
        lowest = column.nodes_of([column.numbers[value] for value in blocking.lowest])
    slots = sorted(node_sets.to_slots(view.live), key=lambda slot: (not lowest >> slot & 1, view.names[slot]))
    rows = [row for slot in slots for row in view.rows(slot, slot + 1) if row is not None]
    opened = ((row, other) for row in rows if (other := _opened(row, tolerations)) is not None)
    told: set[str] = set()
    for row, other in islice(opened, _MOST_NODES):
        each = _of_node(row, other, end.workload.wanted)
        if each.path not in told and trials.fit(node=(view.slots[row.name], other)):
            told.add(each.path)
            yield each


def _opened(row: NodeRow, tolerations: Sequence[Toleration] | None) -> NodeRow | None:
    """The node without its cordon, or without the taints that keep the pod away; None if that is not one change.

    Taints about a node's state go away by themselves or need a repair.
    """
    closing = [each for each in row.taints if first_untolerated((each,), tolerations, FILTERING_EFFECTS)]
    others = [each for each in closing if each.key != TAINT_UNSCHEDULABLE]
    cordoned = row.unschedulable or len(others) < len(closing)
    if bool(others) == cordoned or any(each.key in NODE_STATES for each in others):
        return None
    return row._replace(taints=tuple(each for each in row.taints if each not in closing), unschedulable=False)


def _of_node(row: NodeRow, other: NodeRow, wanted: int) -> SuggestedChange:
    name = one_line(row.name, _NAME)
    gone = [f"taint {each.key}:{each.effect}" for each in row.taints if each not in other.taints]
    cordoned = row.unschedulable or any(each.key == TAINT_UNSCHEDULABLE for each in row.taints)
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
    constraints, path = source.template.template.pod_spec.constraints, source.template.constraints_path
    whole = bool(more) or not first.field
    harms = (trade_off(each, constraints) for each in changes)
    return SuggestedChange(
        text=in_words(changes, end.after.problem.pod.pod_spec.constraints),
        target=source.title,
        path=f"{path}[{first.index}]" if whole else f"{path}{first.at}",
        before=None if whole else value_of(constraints[first.index], first.field),
        after=None if more else first.value,
        wanted=source.replicas,
        harms=tuple(dict.fromkeys(harm for harm in harms if harm)),
    )


class Replicas(Struct, frozen=True):
    """How many pods of a workload have a node in the end: the fewest and the most over all orders."""

    wanted: int
    fewest: int
    most: int

    @property
    def text(self) -> str:
        """``all 6 replicas then fit in every order``."""
        if self.fewest == self.wanted:
            return f"all {plural(self.wanted, 'replica')} then fit in every order"
        if self.most == self.wanted:
            return f"some orders then place {self.fewest:,} of {plural(self.wanted, 'replica')}"
        fit = f"{self.fewest:,}" if self.fewest == self.most else f"{self.fewest:,} to {self.most:,}"
        return f"{fit} of {plural(self.wanted, 'replica')} then fit"


def replicas_after(
    fixes: Sequence[PodFix], pod: Pod, maker: Workload | None, within: Context
) -> tuple[Replicas | None, ...]:
    """What each fix of a pod does to its workload; None where that is not known, and for a single pod."""
    own = None if maker is None else selector_of(maker)
    if maker is None or own is None or len(maker.templates) != 1 or (maker.replicas or 0) < 2:
        return (None,) * len(fixes)
    source = PodSource(workload=maker, template=maker.templates[0], namespace=pod.meta.namespace, own=own)
    if len(source.template.template.pod_spec.constraints) != len(pod.pod_spec.constraints):
        return (None,) * len(fixes)  # those of the pod were injected
    return tuple(_after(replace(source, template=template_with(source.template, fix.changes)), within) for fix in fixes)


def _after(source: PodSource, within: Context) -> Replicas | None:
    """The worse of two cases: pods that are missing, and all of them made anew where some run."""
    wanted, found = source.workload.replicas or 0, list[Replicas]()
    for pods in (to_come, all_anew):
        coming = pods(source, wanted, within)
        if coming.batches or coming.unknown:
            end = None if coming.unknown else coming.outcome(_OF_A_FIX)
            if end is None or end.outcome is Outcome.UNKNOWN or end.fewest is None or end.most is None:
                return None
            found.append(Replicas(wanted, coming.staying + end.fewest, coming.staying + end.most))
    return min(found, key=lambda each: (each.most, each.fewest), default=None)
