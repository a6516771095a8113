"""Describe one final placement of a simulation: the moves of pods, and why a pod has no node."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import Pod
from webhook.core.context import Context, problem_of
from webhook.core.explain.explanation import Explanation, explain_pod
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.overlay import with_pods
from webhook.core.placement.placement_verdict import Step
from webhook.core.placement.simulation import one_order
from webhook.core.what_if.joint_simulation import JointVerdict, batches_of
from webhook.core.what_if.workloads import SimulatedWorkload


class PodMove(Struct, frozen=True, omit_defaults=True):
    """A pod placed on a node, or with ``gone`` deleted from the node."""

    pod: str
    node: str
    gone: bool = False


class Ending(Struct, frozen=True, kw_only=True):
    """A final placement of a simulation, and the verdicts on one pod.

    Attributes:
        moves: The moves of pods up to the final placement.
        workload: The workload of the explained pod.
        before: The verdict on the pod before the events.
        after: The verdict on the pod in the final placement.
        waiting: The name of the explained pod if the pod has no node. Empty if every pod has a node.
        pinned: The nodes allowed by the pod's volumes, if the volumes limit the pod.
    """

    moves: tuple[PodMove, ...]
    workload: SimulatedWorkload
    before: Explanation
    after: Explanation
    waiting: str = ""
    pinned: tuple[str, ...] = ()


_Owners = Sequence[tuple[SimulatedWorkload, int]]  # By batch: its workload, and its number in the workload.


def describe_ending(
    joint: JointVerdict, number: int, index: ClusterIndex, context: Context, before: Explanation | None = None
) -> Ending | None:
    """Describe the final placement that decided the verdict on a workload.

    None for a workload without pods to place. The index is restored afterwards. ``before`` is the explanation before
    all events, if known.
    """
    workload = joint.workloads[number]
    if joint.game is None or joint.simulation is None or not workload.batches:
        return None
    steps = joint.simulation.witness or one_order(joint.game)
    owners = [(workload, own) for workload in joint.workloads for own in range(len(workload.batches))]
    placed = Counter(step.batch for step in steps if not step.gone)
    old = None if workload.rollout is None else workload.rollout.old
    mine = [(place, own) for place, (each, own) in enumerate(owners) if each is workload and own != old]
    lacking = [(place, own) for place, own in mine if placed[place] < workload.batches[own].pods]
    place, own = (lacking or mine)[0]
    batch = workload.batches[own]
    before = before or explain_pod(problem_of(batch.problem.pod, context), index)
    moves = _moved(steps, owners, index)
    if workload.rollout is None:
        batches = batches_of(joint.workloads)
        made = [
            pod_on_node(batches[step.batch].problem.pod, step.node, move.pod, f"simulated-{uid}")
            for uid, (step, move) in enumerate(zip(steps, moves, strict=True))
        ]
        after = _after(batch.problem.pod, made, index, context)
    else:
        after = _in_the_rollout(workload, steps, context)
    view = index.nodes.view()
    return Ending(
        moves=tuple(moves),
        workload=workload,
        before=before,
        after=after,
        waiting=_name(workload, own, placed[place], sum(placed[each] for each, _ in mine)) if lacking else "",
        pinned=() if batch.nodes is None else tuple(view.names_of(batch.nodes & view.live)),
    )


def pod_on_node(like: Pod, node: str, name: str, uid: str) -> Pod:
    """Return a copy of ``like`` with this name and uid, bound to the node."""
    meta = replace(like.meta, name=name, uid=uid)
    return replace(like, metadata=meta, spec=replace(like.pod_spec, node_name=node))


def _after(pod: Pod, made: Sequence[Pod], index: ClusterIndex, context: Context) -> Explanation:
    """Explain the pod as if the pods in ``made`` were running."""
    with index.temporary_pods() as add:
        for placed in made:
            add(placed)
        return explain_pod(problem_of(pod, context), index)


def _in_the_rollout(workload: SimulatedWorkload, steps: Sequence[Step], context: Context) -> Explanation:
    """Explain which nodes admit the next new pod after these steps of a rolling update."""
    there, pods = workload.index, [batch.problem.pod for batch in workload.batches]
    slots = there.nodes.view().slots
    held = [Counter(batch.leaving) for batch in workload.batches]
    for step in steps:
        held[step.batch][slots[step.node]] += -1 if step.gone else 1
    for node, slot in slots.items():
        on_node = [pod for pod, each in zip(pods, held, strict=True) for _ in range(each[slot])]
        if on_node:
            there = with_pods(there, node, on_node)
    return explain_pod(problem_of(pods[1], context.with_index(there)), there)


def _moved(steps: Sequence[Step], owners: _Owners, index: ClusterIndex) -> list[PodMove]:
    done, numbers = Counter[int](), Counter[str]()
    running: dict[tuple[str, str], list[str]] = {}
    for workload, _ in owners:
        if workload.rollout is not None and workload.source is not None and workload.source.own is not None:
            names = index.nodes.view().names
            pods = index.pods.matching(workload.namespace, workload.source.own)
            for name, slot in sorted(pods, key=lambda each: (len(each[0]), each)):  # Sorted by ordinal.
                running.setdefault((workload.title, names[slot]), []).append(name)
    moves = []
    for step in steps:
        workload, own = owners[step.batch]
        if step.gone:
            moves.append(PodMove(running[workload.title, step.node].pop(), step.node, gone=True))
            continue
        moves.append(PodMove(_name(workload, own, done[step.batch], numbers[workload.title]), step.node))
        done[step.batch] += 1
        numbers[workload.title] += 1
    return moves


def _name(workload: SimulatedWorkload, batch: int, of_batch: int, of_workload: int) -> str:
    if workload.names:
        return workload.names[batch][of_batch]
    if workload.wanted == 1 and workload.source is not None and workload.source.workload.is_pod:
        return workload.stem
    staying = 0 if workload.rollout else workload.staying
    return f"{workload.stem} #{staying + of_workload + 1}"
