"""Whose pods look for a node: those of manifests, of one object of the cluster, or all that lack one.

Maker      an object that makes pods, or pods whose controller is not known
players    Maker -> Player, in the cluster as it is when asked
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from webhook.core.api.types import Pod, TypeMeta
from webhook.core.coming_pods.missing_pods import in_a_rollout, to_come
from webhook.core.coming_pods.next_pod import PodSource, coming_pod, next_pod, problem_of
from webhook.core.context import Context
from webhook.core.explain.edit_target import object_title
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.owners import controllers
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game import Rollout
from webhook.core.placement.game_from_cluster import PodBatch
from webhook.core.text import one_line
from webhook.core.what_if.refused import refused
from webhook.core.workloads.kinds import TEMPLATED, group_kind
from webhook.core.workloads.own_selector import selector_of
from webhook.core.workloads.reading import read_exactly, read_workload
from webhook.core.workloads.workload import Workload, namespace_of


class Maker(Struct, frozen=True, kw_only=True):
    """One pod template of an object, and how many pods there are to be.

    Shape: ``most`` are the pods that an autoscaler may ask for, 0 without one.
    """

    title: str
    source: PodSource
    replicas: int
    most: int = 0

    @property
    def workload(self) -> Workload:
        """The object."""
        return self.source.workload


class UnownedPods(Struct, frozen=True, kw_only=True):
    """Pods that wait or were evicted, and that no `Maker` makes: equal ones of one controller, or one without."""

    title: str
    pod: Pod
    names: tuple[str, ...]


class SimulatedWorkload(Struct, frozen=True, kw_only=True):
    """Pods of one maker that look for a node.

    Shape: ``wanted`` are all that there are to be, ``staying`` of them have their node. ``names`` are by batch, empty
    where only the controller will know; then ``stem`` is what they begin with. ``unknown`` says why nothing can be
    said, ``rollout`` what a rolling update allows. ``unadmitted`` as in `AdmissionFacts`.
    """

    title: str
    stem: str
    namespace: str
    wanted: int
    staying: int = 0
    batches: tuple[PodBatch, ...] = ()
    names: tuple[tuple[str, ...], ...] = ()
    index: ReadOnlyIndex
    rollout: Rollout | None = None
    unknown: str = ""
    unadmitted: tuple[str, ...] = ()
    maker: Maker | None = None


def makers(
    raw: bytes | Raw | Mapping[str, object],
    stated: TypeMeta,
    within: Context,
    *,
    applied: bool,
    replicas: int | None = None,
) -> Iterator[Maker]:
    """One for each template of an object; none for an object that makes no pods, or one on every node.

    Shape: ``replicas`` are instead of those that it says.
    Errors: DecodeError for an object that does not fit the API's types.
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
        yield Maker(
            title=one_line(f"{object_title(workload.kind, namespace, name)}{site}"),
            source=PodSource(
                workload=workload,
                template=template,
                namespace=namespace,
                own=selector_of(workload) if len(workload.templates) == 1 else None,
                applied=applied,
            ),
            replicas=stated_replicas if replicas is None else replicas,
        )


def introduce(source: PodSource, index: ClusterIndex) -> None:
    """Put the owners that its pods will have into the index: the scheduler deduces selectors from them."""
    for owner in next_pod(source, index).owners:
        if index.owner(owner.api_version, owner.kind, source.namespace, owner.meta.name) is None:
            index.change("ADDED", owner)


def player(maker: Maker, within: Context, *, rollout: bool = False) -> SimulatedWorkload:
    """The pods of a maker that look for a node now; with ``rollout`` all of them, step by step."""
    coming = (in_a_rollout if rollout else to_come)(maker.source, maker.replicas, within)
    found = SimulatedWorkload(
        title=maker.title,
        stem=maker.workload.meta.name or maker.workload.kind.lower(),
        namespace=maker.source.namespace,
        wanted=maker.replicas,
        index=coming.index,
        maker=maker,
    )
    following = coming_pod(maker.source, within)
    for error in refused(following):
        return replace(found, unknown=f"{error.title}: {one_line(error.message)}")
    if coming.unknown:
        return replace(found, unknown=coming.unknown)
    return replace(
        found,
        # More may run than are wanted.
        staying=min(coming.staying, maker.replicas),
        batches=coming.batches,
        names=coming.names,
        rollout=coming.rollout,
        unadmitted=following.unknown,
    )


def unowned_workload(loose: UnownedPods, within: Context) -> SimulatedWorkload:
    """Pods as they are, which look for a node."""
    batch = PodBatch(problem=problem_of(loose.pod, within), pods=len(loose.names))
    return SimulatedWorkload(
        title=loose.title,
        stem=loose.pod.meta.name,
        namespace=loose.pod.meta.namespace,
        wanted=len(loose.names),
        batches=(batch,),
        names=(loose.names,),
        index=within.cluster,
    )


def again(of: SimulatedWorkload, within: Context) -> SimulatedWorkload:
    """The player in another cluster."""
    if of.maker is not None:
        return player(of.maker, within, rollout=of.rollout is not None)
    batches = tuple(replace(each, problem=problem_of(each.problem.pod, within)) for each in of.batches)
    return replace(of, batches=batches, index=within.cluster)


def of_cluster(of: TypeMeta, raw: Raw, within: Context) -> Iterator[Maker]:
    """The makers of an object of the cluster. None for an object with a controller.

    Errors: DecodeError for an object that does not fit the API's types.
    """
    for maker in makers(raw, of, within, applied=True):
        workload = maker.workload
        above = workload.meta.controller
        made_by = above is not None and group_kind(above.api_version, above.kind) in TEMPLATED
        makes_none = workload.is_pod or made_by or workload.suspended or workload.traits.completes
        if not makes_none and maker.source.own is not None:
            yield maker


def unowned_pods(pods: Iterable[Pod], every: Sequence[Maker], index: ReadOnlyIndex) -> list[UnownedPods]:
    """Pods that none of the makers makes, equal ones of one controller together; a pod without controller only waits.

    Shape: a pod that is being deleted looks for no node.
    """
    known = {(each.workload.kind, each.source.namespace, each.workload.meta.name) for each in every}
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
