"""Whose pods look for a node: those of manifests, of one object of the cluster, or all that lack one.

Maker                one template of an object, and its number of pods
UnownedPods          pending or evicted pods whose controller is not known
SimulatedWorkload    the pods of either that look for a node in the cluster as it is now
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
    """One pod template of an object, and its number of pods; ``most`` is its autoscaler's maximum, 0 without one."""

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
    """The pods of one workload that look for a node.

    Args:
        title: Its name in messages.
        stem: What the names of its pods begin with.
        namespace: Theirs.
        wanted: All pods that it is to have.
        staying: Those that have their node already.
        batches: Those that look for one.
        names: Their names by batch. Empty if only the controller will know them.
        index: The cluster in which they look for a node.
        rollout: The rolling update, if one is simulated.
        unknown: Why nothing can be said.
        unadmitted: As in `AdmissionFacts`.
        maker: Where the pods come from. None for `UnownedPods`.
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
        if index.owners.get(owner.api_version, owner.kind, source.namespace, owner.meta.name) is None:
            index.change("ADDED", owner)


def simulated_workload(maker: Maker, within: Context, *, rollout: bool = False) -> SimulatedWorkload:
    """The pods of a maker that look for a node now; with ``rollout`` all of them, step by step."""
    found = SimulatedWorkload(
        title=maker.title,
        stem=maker.workload.meta.name or maker.workload.kind.lower(),
        namespace=maker.source.namespace,
        wanted=maker.replicas,
        index=within.cluster,
        maker=maker,
    )
    following = coming_pod(maker.source, within)
    for error in refused(following):
        return replace(found, unknown=f"{error.title}: {one_line(error.message)}")
    if rollout:
        coming = in_a_rollout(maker.source, maker.replicas, within)
    else:
        coming = to_come(maker.source, maker.replicas, within, following)
    if coming.unknown:
        return replace(found, unknown=coming.unknown)
    return replace(
        found,
        # More may run than are wanted.
        staying=min(coming.staying, maker.replicas),
        batches=coming.batches,
        names=coming.names,
        index=coming.index,
        rollout=coming.rollout,
        unadmitted=following.unknown,
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
    if of.maker is not None:
        return simulated_workload(of.maker, within, rollout=of.rollout is not None)
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
