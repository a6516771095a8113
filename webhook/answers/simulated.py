"""Messages of ``evenspread simulate``, and its JSON output."""

from collections.abc import Mapping, Sequence

from msgspec import UNSET, UnsetType, field
from msgspec.structs import replace

from webhook.answers.document import Document, Range, with_fields_of
from webhook.core.explain.cause_text import not_evaluated_lines
from webhook.core.explain.explanation import Balance, closed_node_text
from webhook.core.explain.obstacles import grouped
from webhook.core.index import node_sets
from webhook.core.placement.making_room import NodesToAdd
from webhook.core.placement.placement_verdict import PlacedPods, PlacementVerdict
from webhook.core.pods_to_remove.scale_in import ScaleIn
from webhook.core.scheduler.verdict import Cause
from webhook.core.text import agree, listed, one_line, plural
from webhook.core.what_if.ending import Ending, PodMove
from webhook.core.what_if.joint_simulation import JointVerdict
from webhook.core.what_if.run import SimulationAnswer
from webhook.core.what_if.scale_in import WorkloadScaleIn
from webhook.core.what_if.suggestions import SuggestedChange

_NAMES = 3  # of workloads in a sentence
_WORST_FIRST = (PlacementVerdict.NO_FIT, PlacementVerdict.STUCK, PlacementVerdict.UNKNOWN, PlacementVerdict.FITS)
_ORDER = " in any order"
_MOST_DOMAINS = 100  # More domains are hosts, and most of them are empty.


class _BlockedNode(Document, frozen=True):
    """A node, and why it rejects the pod."""

    name: str
    reason: str


class _Blocking(Document, frozen=True):
    """The nodes that reject the first waiting pod, with the reason for each.

    Only nodes of the domain with the fewest pods are included. If no such domain exists, all nodes are included.
    """

    topology_key: str | None
    domain: str | None
    count: int | None
    nodes: tuple[_BlockedNode, ...]


class _ProvenChange(Document, frozen=True):
    """A suggested change after which all pods fit in every order, with its drawbacks."""

    text: str
    target: str
    path: str
    before: object = field(name="from")
    after: object = field(name="to")
    fits: Range
    harms: tuple[str, ...]


class _WorkloadVerdict(Document, frozen=True):
    """The verdict on a workload."""

    verdict: PlacementVerdict
    wanted: int
    fits: Range


class _Rollout(Document, frozen=True):
    """A rolling update: the largest skew at its end, and the number of running new pods."""

    worst_final_skew: int | None
    new_running: Range


class _StuckProbability(Document, frozen=True):
    """The share of placement orders with a Pending pod.

    ``uniform`` is for equally likely orders. ``scored`` is for nodes chosen by kube-scheduler's scores.
    """

    uniform: float | None
    scored: float | None


class _LikelyNode(Document, frozen=True):
    """The most likely node of a pod, and the number of equally good nodes."""

    workload: str
    node: str
    best: int


class _CountsBeforeAndAfter(Document, frozen=True):
    """The pods counted by a hard constraint in each domain, before and after the simulated placement."""

    topology_key: str
    name: str
    max_skew: int
    before: Mapping[str, int]
    after: Mapping[str, int]


class _WorstStop(Document, frozen=True):
    """The number of pods with the largest skew, if the scale-in can stop at every number, in any number of steps.

    If several numbers have this skew, it is the highest. No order exceeds the skew. It can be too high if pods share a
    node.
    """

    replicas: int
    skew: int


class _ScaledConstraint(Document, frozen=True):
    """The matching pods of a constraint in each domain, before and after a scale-in.

    Each constraint has its own best and worst removal order. Above 100 domains, empty ones are left out. A skew is null
    without an eligible domain. ``repair`` is the number of new pods that bring the worst case within maxSkew, if each
    gets a node in the domain with the fewest pods. It is null if new pods do not.
    """

    workload: str
    topology_key: str
    index: int | None
    when_unsatisfiable: str
    max_skew: int
    today: Mapping[str, int]
    best: Mapping[str, int]
    likely: Mapping[str, int]
    worst: Mapping[str, int]
    best_skew: int | None
    likely_skew: int | None
    worst_skew: int | None
    emptied: tuple[str, ...]
    repair: int | None
    worst_stop: _WorstStop | None


class _ScaledWorkload(Document, frozen=True):
    """The number of a workload's pods before and after a scale-in."""

    pods: int
    replicas: int


class _ScaleIns(Document, frozen=True):
    """The forecast of a scale-in, over all removal orders of the controller.

    ``bestSkew`` and ``worstSkew`` are the largest over the constraints, null without a constraint.
    """

    best_skew: int | None
    worst_skew: int | None
    constraints: tuple[_ScaledConstraint, ...]
    workloads: Mapping[str, _ScaledWorkload]


class Simulated(Document, frozen=True):
    """The result of a simulation.

    With several events, the fields describe the event with the worst result. ``events`` has the results of all events.
    """

    verdict: PlacementVerdict
    cause: Cause | None
    wanted: int
    fits: Range
    witness: tuple[PodMove, ...]
    blocking: _Blocking | None
    fixes: tuple[_ProvenChange, ...]
    workloads: Mapping[str, _WorkloadVerdict]
    rollout: _Rollout | None
    add_nodes: tuple[NodesToAdd, ...] | None
    preempts: int | None
    stuck_probability: _StuckProbability
    at_maximum: _WorkloadVerdict | None
    most_likely: tuple[_LikelyNode, ...] | None
    not_evaluated: tuple[str, ...]
    message: str
    doubt: str
    event: str
    notes: tuple[str, ...]
    waiting: str | None
    states: int
    sampled: int
    constraints: tuple[_CountsBeforeAndAfter, ...]
    scale_in: _ScaleIns | None
    events: tuple["Simulated", ...] | UnsetType = UNSET


def simulated(answers: Sequence[SimulationAnswer]) -> Simulated:
    """Return the output document of a simulation: the result of the worst event.

    With several events, the document also lists the results of all events.
    """
    documents = tuple(map(_simulated, answers))
    worst = min(documents, key=lambda document: _WORST_FIRST.index(document.verdict))
    return worst if len(documents) == 1 else replace(worst, events=documents)


def _simulated(answer: SimulationAnswer) -> Simulated:
    joint, end, simulation = answer.joint, answer.end, answer.joint.simulation
    waiting = end if end is not None and end.waiting else None
    uniform = (
        None
        if simulation is None or simulation.sampled or simulation.verdict is PlacementVerdict.UNKNOWN
        else simulation.stuck
    )
    rollout = None
    if any(part.rollout is not None for part in joint.workloads):
        rollout = _Rollout(worst_final_skew=simulation.skew if simulation else None, new_running=_range(joint.whole))
    return Simulated(
        verdict=joint.whole.verdict,
        cause=answer.cause,
        wanted=joint.whole.wanted,
        fits=_range(joint.whole),
        witness=waiting.moves if waiting else (),
        blocking=_blocking(waiting) if waiting else None,
        fixes=tuple(_change(change) for _, changes in answer.ends for change in changes),
        workloads={workload.title: _verdict(each) for workload, each in zip(joint.workloads, joint.each, strict=True)},
        rollout=rollout,
        add_nodes=answer.added or None,
        preempts=answer.preempts,
        stuck_probability=_StuckProbability(uniform=uniform, scored=_scored(answer)),
        at_maximum=_verdict(answer.scaled) if answer.scaled else None,
        most_likely=_most_likely(answer),
        not_evaluated=not_evaluated(answer),
        message=verdict_text(joint),
        doubt=doubt(joint),
        event=answer.event,
        notes=answer.notes,
        waiting=waiting.waiting if waiting else None,
        states=simulation.states if simulation else 0,
        sampled=simulation.sampled if simulation else 0,
        constraints=_constraints(end) if end else (),
        scale_in=_scale_ins([scale_in for scale_in in answer.scale_ins if not scale_in.unknown]),
    )


def _scored(answer: SimulationAnswer) -> float | None:
    """Return the share of the forecast's random runs that leave a pod without a node.

    0 or 1 if every order of placement has the same result. None without a forecast or a verdict.
    """
    likely = answer.likely
    if likely is None or answer.joint.whole.verdict is PlacementVerdict.UNKNOWN:
        return None
    return likely.stuck / likely.runs if likely.runs else float(bool(likely.waiting))


def _most_likely(answer: SimulationAnswer) -> tuple[_LikelyNode, ...] | None:
    if answer.likely is None:
        return None
    owners = [workload.title for workload in answer.joint.workloads for _ in workload.batches]
    return tuple(_LikelyNode(workload=owners[pod.batch], node=pod.node, best=pod.best) for pod in answer.likely.placed)


def _verdict(placed: PlacedPods) -> _WorkloadVerdict:
    return _WorkloadVerdict(verdict=placed.verdict, wanted=placed.wanted, fits=_range(placed))


def _range(verdict: PlacedPods) -> Range:
    return Range(min=verdict.fewest, max=verdict.most)


def _blocking(end: Ending) -> _Blocking:
    after, view = end.after, end.after.verdict.nodes
    nodes, key, domain, count = view.live & ~after.verdict.feasible, None, None, None
    if (balance := after.blocking) is not None:
        key, domain = balance.domains.constraint.topology_key, next(iter(balance.lowest), None)
        count = None if domain is None else balance.domains.counts[domain]
        nodes &= 0 if domain is None else balance.domains.column.with_value(domain)
    reasons = {
        slot: closed_node_text(texts)
        for texts, part in grouped(after.obstacles, nodes)
        for slot in node_sets.to_slots(part)
    }
    return _Blocking(
        topology_key=key,
        domain=domain,
        count=count,
        nodes=tuple(_BlockedNode(name=view.names[slot], reason=reason) for slot, reason in sorted(reasons.items())),
    )


def _change(change: SuggestedChange) -> _ProvenChange:
    return with_fields_of(change, _ProvenChange, fits=Range(min=change.wanted, max=change.wanted))


def _constraints(end: Ending) -> tuple[_CountsBeforeAndAfter, ...]:
    before = {balance.index: balance.domains.counts for balance in end.before.balances}
    return tuple(
        _CountsBeforeAndAfter(
            topology_key=balance.domains.constraint.topology_key,
            name=balance.name,
            max_skew=balance.domains.constraint.max_skew,
            before=dict(sorted(before.get(balance.index, {}).items())),
            after=dict(sorted(balance.domains.counts.items())),
        )
        for balance in end.after.balances
        if balance.hard
    )


def _scale_ins(scale_ins: Sequence[WorkloadScaleIn]) -> _ScaleIns | None:
    if not scale_ins:
        return None
    constraints = [
        _scaled_constraint(scale_in.title, balance, bounds)
        for scale_in in scale_ins
        for balance, bounds in scale_in.constraints
    ]
    return _ScaleIns(
        best_skew=max((each.best_skew for each in constraints if each.best_skew is not None), default=None),
        worst_skew=max((each.worst_skew for each in constraints if each.worst_skew is not None), default=None),
        constraints=tuple(constraints),
        workloads={each.title: _ScaledWorkload(pods=each.pods, replicas=each.replicas) for each in scale_ins},
    )


def _scaled_constraint(title: str, balance: Balance, bounds: ScaleIn) -> _ScaledConstraint:
    stop = bounds.stop
    return _ScaledConstraint(
        workload=title,
        topology_key=balance.domains.constraint.topology_key,
        index=balance.index,
        when_unsatisfiable=balance.written.when_unsatisfiable or "",
        max_skew=balance.domains.constraint.max_skew,
        today=_listed(bounds.today.counts),
        best=_listed(bounds.best.counts),
        likely=_listed(bounds.likely.counts),
        worst=_listed(bounds.worst.counts),
        best_skew=bounds.best.skew,
        likely_skew=bounds.likely.skew,
        worst_skew=bounds.worst.skew,
        worst_stop=None if stop is None else _WorstStop(replicas=stop.replicas, skew=stop.skew),
        emptied=bounds.emptied,
        repair=bounds.repair,
    )


def _listed(counts: Mapping[str, int]) -> Mapping[str, int]:
    if len(counts) <= _MOST_DOMAINS:
        return counts
    return {value: pods for value, pods in counts.items() if pods}


def _who(joint: JointVerdict) -> str:
    """Name the workloads: ``Deployment shop/web``, or the number of workloads and the first few."""
    titles = [one_line(workload.title, 80) for workload in joint.workloads]
    if len(titles) == 1:
        return titles[0]
    return f"{plural(len(titles), 'workload')} ({listed(titles, _NAMES)})"


def verdict_text(joint: JointVerdict) -> str:
    """Return the verdict as a sentence."""
    several = len(joint.workloads) > 1
    if not joint.workloads:
        return "every workload fits: no pod needs a node"
    if not joint.alone:
        return f"{_who(joint)} {placed_pods_text(joint.whole, settled=joint.game is None, several=several)}"
    bad = sum(placed.verdict is PlacementVerdict.NO_FIT for placed in joint.each)
    stuck = sum(placed.verdict is PlacementVerdict.STUCK for placed in joint.each)
    parts = [f"{bad:,} {agree(bad, 'do')} not fit"] * bool(bad) + [f"{stuck:,} can get stuck"] * bool(stuck)
    return f"{_who(joint)}: {' and '.join(parts) or 'no problem found'}, each simulated alone"


def placed_pods_text(placed: PlacedPods, *, settled: bool = False, several: bool = False) -> str:
    """Return a verdict without its subject: ``does not fit: 3 of 6 pods get a node in any order``.

    Args:
        placed: The verdict and the numbers of pods.
        settled: Whether all pods have a node already.
        several: Whether the subject is plural.
    """
    fewest, most, wanted = placed.fewest, placed.most, placed.wanted
    pods = {1: "the pod", 2: "both pods"}.get(wanted, f"all {plural(wanted, 'pod')}")
    match placed.verdict:
        case PlacementVerdict.FITS:
            gets = agree(wanted, "have" if settled else "get")
            order = " already" if settled else _ORDER * (wanted != 1)
            return f"{'fit' if several else 'fits'}: {pods} {gets} a node{order}"
        case PlacementVerdict.NO_FIT if wanted == 1:
            return "does not fit: no node admits the pod"
        case PlacementVerdict.NO_FIT:
            number = f"{most or 0:,}" if fewest == most else f"{fewest or 0:,} to {most or 0:,}"
            gets, does = f"get{'s' * (number == '1')}", "do" if several else "does"
            return f"{does} not fit: {number} of {plural(wanted, 'pod')} {gets} a node{_ORDER}"
        case PlacementVerdict.STUCK:
            rest = "some" if fewest is None else f"{'up to ' * (wanted - fewest > 1)}{wanted - fewest:,}"
            stay = f"stay{'s' * (rest == '1')}"
            return f"can get stuck: {pods} get a node in some orders, in others {rest} {stay} Pending"
        case _:
            bounds = ""
            if fewest is not None and most is not None:
                bounds = f": at least {fewest:,} and at most {most:,} of {plural(wanted, 'pod')} get a node{_ORDER}"
            return f"{'are' if several else 'is'} undecided{bounds}"


def doubt(joint: JointVerdict) -> str:
    """Return why the verdict is unknown, and the evidence so far. Empty for a known verdict."""
    if joint.unknown:
        return f"unknown: {joint.unknown}"
    simulation = joint.simulation
    if simulation is None or simulation.verdict is not PlacementVerdict.UNKNOWN:
        return ""
    searched = f"{plural(simulation.states, 'state')} searched"
    if joint.interrupted:
        return f"interrupted with {searched}, and no verdict yet"
    if not simulation.sampled:
        return f"{searched}, the limit (--states)"
    stuck, orders = round((simulation.stuck or 0) * simulation.sampled), plural(simulation.sampled, "sampled order")
    tried = f"{stuck:,} of {orders} left pods Pending" if stuck else f"none of {orders} got stuck, which proves nothing"
    return f"{searched}, but more exist: raise --states; {tried}"


def not_evaluated(answer: SimulationAnswer) -> tuple[str, ...]:
    """Return a line for each fact that could change the result, but is not evaluated."""
    keys = dict.fromkeys(key for end, _ in answer.ends for key in end.after.not_evaluated)
    made = any(workload.source is not None for workload in answer.joint.workloads)
    unknown = dict.fromkeys(key for workload in answer.joint.workloads for key in workload.unadmitted)
    lines = not_evaluated_lines(keys, [*unknown, *["AdmissionPlugins"] * made])
    return (*lines, *map(one_line, answer.unseen))
