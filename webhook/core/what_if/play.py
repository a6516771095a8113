"""Let the pods of several workloads look for nodes together: the outcome, and how it comes about.

workloads -> play -> Outcomes    the verdict on all of them, and on each
Outcomes -> ending -> Ending     the shortest order into a bad end, or a good order, pod by pod
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import Pod
from webhook.core.coming_pods.next_pod import problem_of
from webhook.core.context import Context
from webhook.core.explain.explanation import Explanation, explain_pod
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.overlay import with_pods
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game_from_cluster import ClusterGame, PodBatch, game_of
from webhook.core.placement.simulation import (
    Effort,
    Outcome,
    Simulation,
    Step,
    Verdict,
    always_fits,
    one_order,
    simulate,
)
from webhook.core.what_if.workloads import SimulatedWorkload

_FEWEST_TRIALS, _NODES_TRIED = 10, 4_000


class Outcomes(Struct, frozen=True, kw_only=True):
    """The verdict on workloads that were simulated together.

    Args:
        whole: The verdict on all of them.
        each: The verdict on each.
        simulation: What the placement engine found. None if no pod looks for a node, or nothing can be said.
        game: What it was asked, None as before.
        unknown: Why nothing can be said.
        interrupted: Whether the user did not want to wait.
        alone: If all together are not decided: the same for each workload alone. Then ``each`` is of those.
    """

    workloads: tuple[SimulatedWorkload, ...]
    whole: Verdict
    each: tuple[Verdict, ...]
    simulation: Simulation | None = None
    game: ClusterGame | None = None
    unknown: str = ""
    interrupted: bool = False
    alone: tuple["Outcomes", ...] = ()

    def about(self, number: int) -> "Outcomes":
        """Where the verdict on one of the workloads is from."""
        return self.alone[number] if self.alone else self


class Moved(Struct, frozen=True, omit_defaults=True):
    """A pod that got a node; with ``gone`` one that was deleted there."""

    pod: str
    node: str
    gone: bool = False


class Ending(Struct, frozen=True, kw_only=True):
    """One end, how it comes about, and the explanation of a pod before and after.

    ``waiting`` is the pod that waits, empty if none does. ``pinned`` are the nodes that its volumes allow, if they
    limit it.
    """

    moves: tuple[Moved, ...]
    workload: SimulatedWorkload
    before: Explanation
    after: Explanation
    waiting: str = ""
    pinned: tuple[str, ...] = ()


def play(
    workloads: Sequence[SimulatedWorkload], index: ReadOnlyIndex, effort: Effort, tick: Callable[[int], None]
) -> Outcomes:
    """The verdict on workloads whose problems are of the index as it is."""
    unknown = "; ".join(f"{each.title}: {each.unknown}" for each in workloads if each.unknown)
    batches, states, interrupted = batches_of(workloads), 0, False
    if unknown or not batches:
        return replace(undecided(workloads), unknown=unknown)

    def count(number: int) -> None:
        nonlocal states
        states = number
        tick(number)

    game = _game(workloads, batches, index)
    try:
        found = simulate(game, effort, tick=count)
    except KeyboardInterrupt:
        interrupted = True
        found = Simulation(Outcome.UNKNOWN, sum(each.pods for each in batches), states=states)
    return Outcomes(
        workloads=tuple(workloads),
        whole=_verdict(found.outcome, workloads, found.fewest, found.most),
        each=tuple(_of_each(workloads, found)),
        simulation=found,
        game=game,
        interrupted=interrupted,
    )


def trials_in(most: int, index: ReadOnlyIndex) -> int:
    """How many changes to try: fewer in large clusters, where each trial takes longer."""
    return max(_FEWEST_TRIALS, min(most, _NODES_TRIED // max(1, len(index.nodes.view()))))


def all_fit(workloads: Sequence[SimulatedWorkload], index: ReadOnlyIndex, effort: Effort) -> bool:
    """Whether every order places all pods; False also if that is not known. Quicker than `play`."""
    batches = batches_of(workloads)
    if not batches or any(each.unknown for each in workloads):
        return undecided(workloads).whole.outcome is Outcome.FITS
    return always_fits(_game(workloads, batches, index), effort)


def _game(workloads: Sequence[SimulatedWorkload], batches: Sequence[PodBatch], index: ReadOnlyIndex) -> ClusterGame:
    # A rolling update is simulated alone, in the cluster without its old pods.
    rollout = workloads[0].rollout
    return game_of(batches, workloads[0].index if rollout else index, rollout=rollout)


def alone(of: Outcomes, index: ReadOnlyIndex, effort: Effort, tick: Callable[[int], None]) -> Outcomes:
    """The same with a verdict on each workload as if there were no others.

    That all fit alone says nothing of all together; one that does not even fit alone is a reason for all.
    """
    found: list[Outcomes] = []
    for each in of.workloads:
        stopped = bool(found) and found[-1].interrupted
        found.append(undecided([each]) if stopped else play([each], index, effort, tick))
    verdicts = tuple(each.whole for each in found)
    no_fit = any(each.outcome is Outcome.NO_FIT for each in verdicts)
    return replace(
        of,
        whole=Verdict(outcome=Outcome.NO_FIT if no_fit else Outcome.UNKNOWN, wanted=of.whole.wanted),
        each=verdicts,
        interrupted=any(each.interrupted for each in found),
        alone=tuple(found),
    )


def undecided(workloads: Sequence[SimulatedWorkload]) -> Outcomes:
    """Workloads that were not simulated. Those without a pod that looks for a node fit."""
    verdicts = tuple(_settled(each.wanted, open_=bool(each.unknown or each.batches)) for each in workloads)
    is_open = any(each.outcome is Outcome.UNKNOWN for each in verdicts)
    whole = _settled(sum(each.wanted for each in verdicts), open_=is_open)
    return Outcomes(workloads=tuple(workloads), whole=whole, each=verdicts)


def _settled(wanted: int, *, open_: bool) -> Verdict:
    if open_:
        return Verdict(outcome=Outcome.UNKNOWN, wanted=wanted)
    return Verdict(outcome=Outcome.FITS, wanted=wanted, fewest=wanted, most=wanted)


def batches_of(workloads: Sequence[SimulatedWorkload]) -> list[PodBatch]:
    """The batches of all workloads; those that stand behind another still stand behind it."""
    batches: list[PodBatch] = []
    for each in workloads:
        first = len(batches)
        batches += [
            batch if batch.behind is None else replace(batch, behind=batch.behind + first) for batch in each.batches
        ]
    return batches


def _verdict(outcome: Outcome, workloads: Sequence[SimulatedWorkload], fewest: int | None, most: int | None) -> Verdict:
    staying = sum(each.staying for each in workloads)
    return Verdict(
        outcome=outcome,
        wanted=sum(each.wanted for each in workloads),
        fewest=None if fewest is None else staying + fewest,
        most=None if most is None else staying + most,
    )


def _of_each(workloads: Sequence[SimulatedWorkload], found: Simulation) -> Iterator[Verdict]:
    if len(workloads) == 1:
        yield _verdict(found.outcome, workloads, found.fewest, found.most)
        return
    first = 0
    for workload in workloads:
        own = slice(first, first := first + len(workload.batches))
        placed = [sum(end[own]) for end in found.ends]
        if not (placed and workload.batches):
            yield _settled(workload.wanted, open_=bool(workload.batches))
            continue
        pods, fewest, most = sum(batch.pods for batch in workload.batches), min(placed), max(placed)
        outcome = Outcome.FITS if fewest == pods else Outcome.NO_FIT if most < pods else Outcome.STUCK
        yield _verdict(outcome, [workload], fewest, most)


_Owners = Sequence[tuple[SimulatedWorkload, int]]  # of each batch of all: its workload, and its number there


def ending(
    of: Outcomes, number: int, index: ClusterIndex, within: Context, before: Explanation | None = None
) -> Ending | None:
    """The end that the verdict is about, as the workload of that number meets it; None if it places no pod.

    The index is restored afterwards. ``before`` is the explanation before all events, if it is known.
    """
    workload = of.workloads[number]
    if of.game is None or of.simulation is None or not workload.batches:
        return None
    steps = of.simulation.witness or one_order(of.game)
    owners = [(each, own) for each in of.workloads for own in range(len(each.batches))]
    placed = Counter(step.batch for step in steps if not step.gone)
    old = None if workload.rollout is None else workload.rollout.old
    mine = [(place, own) for place, (each, own) in enumerate(owners) if each is workload and own != old]
    lacking = [(place, own) for place, own in mine if placed[place] < workload.batches[own].pods]
    place, own = (lacking or mine)[0]
    batch = workload.batches[own]
    before = before or explain_pod(problem_of(batch.problem.pod, within), index)
    moves = _moved(steps, owners, index)
    if workload.rollout is None:
        batches = batches_of(of.workloads)
        made = [
            on_node(batches[step.batch].problem.pod, step.node, move.pod, f"simulated-{uid}")
            for uid, (step, move) in enumerate(zip(steps, moves, strict=True))
        ]
        after = _after(batch.problem.pod, made, index, within)
    else:
        after = _in_the_rollout(workload, steps, within)
    view = index.nodes.view()
    return Ending(
        moves=tuple(moves),
        workload=workload,
        before=before,
        after=after,
        waiting=_name(workload, own, placed[place], sum(placed[each] for each, _ in mine)) if lacking else "",
        pinned=() if batch.nodes is None else tuple(view.names_of(batch.nodes & view.live)),
    )


def on_node(like: Pod, node: str, name: str, uid: str) -> Pod:
    """The pod on a node, under this name."""
    meta = replace(like.meta, name=name, uid=uid)
    return replace(like, metadata=meta, spec=replace(like.pod_spec, node_name=node))


def _after(pod: Pod, made: Sequence[Pod], index: ClusterIndex, within: Context) -> Explanation:
    """The explanation of a pod once these pods run."""
    waiting = [each for name in {each.meta.namespace for each in made} for each in index.pods.waiting(name)]
    for each in made:
        index.change("ADDED", each)
    after = explain_pod(problem_of(pod, within), index)
    for each in made:
        index.change("DELETED", each)
    for each in waiting:  # of the same names
        index.change("ADDED", each)
    return after


def _in_the_rollout(workload: SimulatedWorkload, steps: Sequence[Step], within: Context) -> Explanation:
    """The explanation of a new pod after the steps of a rolling update. Old pods are as new ones."""
    there, pods = workload.index, [each.problem.pod for each in workload.batches]
    slots = there.nodes.view().slots
    held = [Counter(each.leaving) for each in workload.batches]
    for step in steps:
        held[step.batch][slots[step.node]] += -1 if step.gone else 1
    for node, slot in slots.items():
        on_node = [pod for pod, each in zip(pods, held, strict=True) for _ in range(each[slot])]
        if on_node:
            there = with_pods(there, node, on_node)
    return explain_pod(problem_of(pods[1], within.with_index(there)), there)


def _moved(steps: Sequence[Step], owners: _Owners, index: ClusterIndex) -> list[Moved]:
    """The steps with the names of pods as far as they are known; others are numbered."""
    done, numbers = Counter[int](), Counter[str]()
    running: dict[tuple[str, str], list[str]] = {}
    for workload, _ in owners:
        if workload.rollout is not None and workload.source is not None and workload.source.own is not None:
            names = index.nodes.view().names
            pods = index.pods.matching(workload.namespace, workload.source.own)
            for name, slot in sorted(pods, key=lambda each: (len(each[0]), each)):  # by ordinal
                running.setdefault((workload.title, names[slot]), []).append(name)
    found = []
    for step in steps:
        workload, own = owners[step.batch]
        if step.gone:
            found.append(Moved(running[workload.title, step.node].pop(), step.node, gone=True))
            continue
        found.append(Moved(_name(workload, own, done[step.batch], numbers[workload.title]), step.node))
        done[step.batch] += 1
        numbers[workload.title] += 1
    return found


def _name(workload: SimulatedWorkload, batch: int, of_batch: int, of_workload: int) -> str:
    """The name of the next pod after so many; a number if only its controller will know."""
    if workload.names:
        return workload.names[batch][of_batch]
    if workload.wanted == 1 and workload.source is not None and workload.source.workload.is_pod:
        return workload.stem
    staying = 0 if workload.rollout else workload.staying
    return f"{workload.stem} #{staying + of_workload + 1}"
