"""Workloads of a what-if simulation: their pods without a node, and other pending or evicted pods."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from webhook.core.api.types import Pod
from webhook.core.context import Context, problem_of
from webhook.core.index.owners import controllers
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game_from_cluster import PodBatch
from webhook.core.pods_to_create.missing_pods import MissingPods, missing_pods, rollout_pods
from webhook.core.pods_to_create.next_pod import next_pod_of
from webhook.core.text import object_title, one_line
from webhook.core.what_if.refused import refused
from webhook.core.what_if.sources import ReplicatedSource


class OtherPods(Struct, frozen=True, kw_only=True):
    """Equal pending or evicted pods without a `ReplicatedSource`.

    They have the same controller, or none of them has a controller.
    """

    title: str
    pod: Pod
    names: tuple[str, ...]


class SimulatedWorkload(MissingPods, frozen=True, kw_only=True):
    """The missing pods of a workload. They have no node.

    Attributes:
        stem: The start of its pods' names.
        wanted: The number of all its pods.
        unadmitted: Kinds of objects that kube-apiserver's admission needs for the pods, but the index lacks.
        source: The source of the pods. None for `OtherPods`.
    """

    title: str
    stem: str
    namespace: str
    wanted: int
    unadmitted: tuple[str, ...] = ()
    source: ReplicatedSource | None = None


def simulated_workload(source: ReplicatedSource, context: Context, *, rollout: bool = False) -> SimulatedWorkload:
    """Return a source's pods without a node. With ``rollout``, return all pods of its rolling update."""
    following = next_pod_of(source, context)
    if errors := refused(following):
        missing = MissingPods(index=context.cluster, unknown=f"{errors[0].title}: {one_line(errors[0].message)}")
    elif rollout:
        missing = rollout_pods(source, source.replicas, context)
    else:
        missing = missing_pods(source, source.replicas, context, following)
    if missing.unknown:
        missing = MissingPods(index=missing.index, unknown=missing.unknown)
    # More pods may run than wanted.
    missing = replace(missing, staying=min(missing.staying, source.replicas))
    return SimulatedWorkload(
        **asdict(missing),
        title=source.title,
        stem=source.workload.meta.name or source.workload.kind.lower(),
        namespace=source.namespace,
        wanted=source.replicas,
        unadmitted=() if missing.unknown else following.unknown,
        source=source,
    )


def workload_of_other_pods(pods: OtherPods, context: Context) -> SimulatedWorkload:
    """Simulate pods without a `ReplicatedSource` as a workload of their own. Every pod needs a node."""
    return SimulatedWorkload(
        title=pods.title,
        stem=pods.pod.meta.name,
        namespace=pods.pod.meta.namespace,
        wanted=len(pods.names),
        batches=(PodBatch(problem=problem_of(pods.pod, context), pods=len(pods.names)),),
        names=(pods.names,),
        index=context.cluster,
    )


def rebuilt(workload: SimulatedWorkload, context: Context) -> SimulatedWorkload:
    """Return the workload with its missing pods computed anew, for the cluster and policy of ``context``."""
    if workload.source is not None:
        return simulated_workload(workload.source, context, rollout=workload.rollout is not None)
    batches = tuple(replace(batch, problem=problem_of(batch.problem.pod, context)) for batch in workload.batches)
    return replace(workload, batches=batches, index=context.cluster)


def other_pods(pods: Iterable[Pod], every: Sequence[ReplicatedSource], index: ReadOnlyIndex) -> list[OtherPods]:
    """Group the pods without a `ReplicatedSource`. Equal pods of the same controller form a group."""
    known = {(source.workload.kind, source.namespace, source.workload.meta.name) for source in every}
    groups: dict[object, OtherPods] = {}
    for pod in pods:
        chain, meta = controllers(pod, index), pod.meta
        if any((owner.kind, meta.namespace, owner.name) in known for owner in chain):
            continue
        # An evicted pod is replaced by a new pod, with new ephemeral volumes.
        uid = "" if pod.pod_spec.node_name else meta.uid
        spec = replace(pod.pod_spec, node_name=None)
        ready = replace(pod, metadata=replace(meta, deletion_timestamp=None, uid=uid), spec=spec)
        title = object_title("Pod", meta.namespace, meta.name)
        if chain:
            title = object_title(chain[-1].kind, meta.namespace, chain[-1].name)
        # Existing pods with ephemeral volumes differ by their claims.
        own = meta.name if uid and any(volume.ephemeral is not None for volume in spec.volumes or ()) else ""
        key = (title, own, msgspec.json.encode((spec, ready.labels))) if chain else title
        before = groups.get(key)
        names = (*(before.names if before else ()), meta.name)
        groups[key] = OtherPods(title=one_line(title), pod=before.pod if before else ready, names=names)
    return [*groups.values()]
