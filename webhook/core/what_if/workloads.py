"""The pods that look for a node: those of manifests, of one object of the cluster, or of all.

ReplicatedSource     one template of an object, and its number of pods
UnownedPods          pending or evicted pods of an unknown controller
SimulatedWorkload    the pods of either that look for a node in the cluster as it is now
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import asdict, replace

from webhook.core.api.types import Pod, TypeMeta
from webhook.core.coming_pods.missing_pods import ToCome, in_a_rollout, to_come
from webhook.core.coming_pods.next_pod import PodSource, coming_pod, next_pod, problem_of
from webhook.core.context import Context
from webhook.core.explain.edit_target import object_title
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.owners import controllers
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game_from_cluster import PodBatch
from webhook.core.text import one_line
from webhook.core.what_if.refused import refused
from webhook.core.workloads.kinds import TEMPLATED, group_kind
from webhook.core.workloads.reading import read_exactly, read_workload
from webhook.core.workloads.workload import namespace_of, selector_of


class ReplicatedSource(PodSource, frozen=True, kw_only=True):
    """A source of pods and how many it makes; ``most`` is the autoscaler's maximum, 0 without one."""

    title: str
    replicas: int
    most: int = 0


class UnownedPods(Struct, frozen=True, kw_only=True):
    """Pending or evicted pods that no `ReplicatedSource` makes: equal ones of one controller, or one without."""

    title: str
    pod: Pod
    names: tuple[str, ...]


class SimulatedWorkload(ToCome, frozen=True, kw_only=True):
    """The pods of one workload that look for a node.

    Args:
        stem: What the names of its pods begin with.
        wanted: The number of all its pods.
        unadmitted: As in `AdmissionFacts`.
        source: Where the pods come from. None for `UnownedPods`.
    """

    title: str
    stem: str
    namespace: str
    wanted: int
    unadmitted: tuple[str, ...] = ()
    source: ReplicatedSource | None = None


def sources(
    raw: bytes | Raw | Mapping[str, object],
    stated: TypeMeta,
    within: Context,
    *,
    applied: bool,
    replicas: int | None = None,
) -> Iterator[ReplicatedSource]:
    """One for each template of an object, none if it makes no pods, or one on every node.

    ``replicas`` replaces the number of the object. Raises DecodeError for an object that does not fit the API's types.
    """
    value, _ = read_exactly(raw, stated, within.version)
    workload = read_workload(value, within.policy.workloads, api_version=stated.api_version, kind=stated.kind)
    if workload is None or not workload.whole or workload.traits.on_every_node:
        return
    namespace = namespace_of(workload.meta.namespace, within.namespace)
    name = workload.meta.name or workload.meta.generate_name or "(unnamed)"
    for template in workload.templates:
        site = f" ({template.path.rstrip('.')})" if len(workload.templates) > 1 else ""
        stated_replicas = template.replicas if template.replicas is not None else 1  # the API server's default
        yield ReplicatedSource(
            title=one_line(f"{object_title(workload.kind, namespace, name)}{site}"),
            workload=workload,
            template=template,
            namespace=namespace,
            own=selector_of(workload) if len(workload.templates) == 1 else None,
            applied=applied,
            replicas=stated_replicas if replicas is None else replicas,
        )


def introduce(source: PodSource, index: ClusterIndex) -> None:
    """Put the owners that its pods will have into the index: the scheduler deduces selectors from them."""
    for owner in next_pod(source, index).owners:
        if index.owners.get(owner.api_version, owner.kind, source.namespace, owner.meta.name) is None:
            index.change("ADDED", owner)


def simulated_workload(source: ReplicatedSource, within: Context, *, rollout: bool = False) -> SimulatedWorkload:
    """The pods of a source that look for a node now; with ``rollout`` all of them, step by step."""
    following = coming_pod(source, within)
    if errors := refused(following):
        coming = ToCome(index=within.cluster, unknown=f"{errors[0].title}: {one_line(errors[0].message)}")
    elif rollout:
        coming = in_a_rollout(source, source.replicas, within)
    else:
        coming = to_come(source, source.replicas, within, following)
    if coming.unknown:
        coming = ToCome(index=coming.index, unknown=coming.unknown)
    # More may run than are wanted.
    coming = replace(coming, staying=min(coming.staying, source.replicas))
    return SimulatedWorkload(
        **asdict(coming),
        title=source.title,
        stem=source.workload.meta.name or source.workload.kind.lower(),
        namespace=source.namespace,
        wanted=source.replicas,
        unadmitted=() if coming.unknown else following.unknown,
        source=source,
    )


def unowned_workload(pods: UnownedPods, within: Context) -> SimulatedWorkload:
    """Pods as they are, which look for a node."""
    return SimulatedWorkload(
        title=pods.title,
        stem=pods.pod.meta.name,
        namespace=pods.pod.meta.namespace,
        wanted=len(pods.names),
        batches=(PodBatch(problem=problem_of(pods.pod, within), pods=len(pods.names)),),
        names=(pods.names,),
        index=within.cluster,
    )


def rebuilt(of: SimulatedWorkload, within: Context) -> SimulatedWorkload:
    """The same workload in another cluster."""
    if of.source is not None:
        return simulated_workload(of.source, within, rollout=of.rollout is not None)
    batches = tuple(replace(each, problem=problem_of(each.problem.pod, within)) for each in of.batches)
    return replace(of, batches=batches, index=within.cluster)


def of_cluster(of: TypeMeta, raw: Raw, within: Context) -> Iterator[ReplicatedSource]:
    """The sources of an object of the cluster; none if it has a controller. Raises as `sources`."""
    for source in sources(raw, of, within, applied=True):
        workload = source.workload
        above = workload.meta.controller
        made_by = above is not None and group_kind(above.api_version, above.kind) in TEMPLATED
        makes_none = workload.is_pod or made_by or workload.suspended or workload.traits.completes
        if not makes_none and source.own is not None:
            yield source


def unowned_pods(pods: Iterable[Pod], every: Sequence[ReplicatedSource], index: ReadOnlyIndex) -> list[UnownedPods]:
    """The pods that none of the sources makes, equal ones of one controller together."""
    known = {(each.workload.kind, each.namespace, each.workload.meta.name) for each in every}
    found: dict[object, UnownedPods] = {}
    for pod in pods:
        chain, meta = controllers(pod, index), pod.meta
        if any((each.kind, meta.namespace, each.name) in known for each in chain):
            continue
        ready = replace(
            pod, metadata=replace(meta, deletion_timestamp=None), spec=replace(pod.pod_spec, node_name=None)
        )
        title = object_title("Pod", meta.namespace, meta.name)
        if chain:
            title = object_title(chain[-1].kind, meta.namespace, chain[-1].name)
        key = (title, msgspec.json.encode((ready.pod_spec, ready.labels))) if chain else title
        before = found.get(key)
        names = (*(before.names if before else ()), meta.name)
        found[key] = UnownedPods(title=one_line(title), pod=before.pod if before else ready, names=names)
    return [*found.values()]
