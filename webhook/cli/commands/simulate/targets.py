"""The simulated workloads: from files, one object of the cluster, or all workloads."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from webhook.cli.checking.input_objects import autoscalers
from webhook.cli.checking.run import CheckRun
from webhook.cli.cluster_source import ClusterSource, add_to_index
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.output.terminal import print_faults, print_message
from webhook.cli.target import Target, find_object
from webhook.cluster.live import undecodable_line
from webhook.core.api.storage import Claim, StorageClass
from webhook.core.api.types import ObjectMeta, Pod, Service
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.context import Context
from webhook.core.decoders import decoder_of
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import Autoscaler
from webhook.core.index.owners import has_same_template
from webhook.core.index.readers import decode_or_none
from webhook.core.pods_to_remove.running_pod import RemovalFields, RunningPod, active_pod
from webhook.core.text import plural
from webhook.core.what_if.events import WhatIf
from webhook.core.what_if.run import Targets
from webhook.core.what_if.sources import ReplicatedSource, add_owners, sources_in_cluster, sources_of
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.core.workloads.kind_fields import has_template
from webhook.core.workloads.kinds import POD, group_kind
from webhook.core.workloads.labels_at_creation import NOT_YET_KNOWN
from webhook.core.workloads.reading import read_meta
from webhook.manifests.reading.files import File, read_files
from webhook.manifests.reading.manifest import Manifest
from webhook.snapshot.load import Item


class _BoundSpec(Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _Bound(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _BoundSpec = _BoundSpec()


_BOUND = decoder_of(_Bound)
_REMOVAL_FIELDS = decoder_of(RemovalFields)


def is_kept(item: Item, target: Target, what_if: WhatIf, embedded: tuple[EmbeddedKind, ...]) -> bool:
    """Whether a simulation needs the object's raw JSON.

    The simulation needs the JSON of simulated workloads, of pods that may lose their node, and of pods in the
    workloads' namespaces, because a scale-in may remove them.
    """
    if _is_pod(item):
        pod = _bound(item)
        return pod is not None and (_may_move(pod, what_if) or _may_be_removed(pod, target))
    if target.named is not None:
        return target.named.is_in(item)
    return target.everything and has_template(*item.type_names, embedded)


def _is_pod(item: Item) -> bool:
    return group_kind(*item.type_names) == POD


def _bound(item: Item) -> _Bound | None:
    try:
        return _BOUND.decode(item.raw)
    except msgspec.DecodeError:  # the index skips it too
        return None


def _may_move(pod: _Bound, what_if: WhatIf) -> bool:
    node = pod.spec.node_name
    return bool(node) and (pod.metadata.deletion_timestamp is not None or what_if.moves(node))


def _may_be_removed(pod: _Bound, target: Target) -> bool:
    """Whether the pod is in a namespace of the target. Each manifest may have another namespace."""
    return bool(target.files) or (target.named is not None and target.named.namespace == pod.metadata.namespace)


def targets(  # noqa: PLR0913 the last two by keyword
    target: Target, known: ClusterSource, context: Context, what_if: WhatIf, *, replicas: int | None, everywhere: bool
) -> tuple[Targets, bool]:
    """Read the simulated workloads, and the pods that may lose their node or be removed by a scale-in.

    Adds the workloads' future owners and other objects of the files to the index. Also returns whether a part of the
    input was unreadable.

    Args:
        target: The target on the command line.
        known: The cluster.
        context: The context of the rules: cluster, policy and default namespace.
        what_if: The events.
        replicas: Replicas of each workload. None for its own number.
        everywhere: Whether the command line has no namespace.

    Raises:
        CommandError: The object does not exist, or makes no pods.
    """
    incomplete, namespace, unreadable = False, "" if everywhere else context.namespace, list[str]()
    if target.files:
        workloads, incomplete = _from_files(target.files, known, context, replicas)
    elif target.named is not None:
        raw, stated = find_object(target.named, known, guessed=everywhere)
        try:
            workloads = [*sources_of(raw, stated, context, applied=True, replicas=replicas)]
        except DecodeError as error:
            raise CommandError(f"{known.source}: {target.named.title}: {error.message}", Exit.UNREADABLE) from error
    else:
        here = [item for item in known.kept if not _is_pod(item) and namespace in {"", read_meta(item.raw).namespace}]
        workloads, unreadable = _from_objects(here, known, context)
    if not workloads and not target.everything:
        what = ", ".join(target.files) or (target.named.title if target.named else "")
        raise CommandError(f"{what}: no workload whose pods need a node", Exit.UNREADABLE)
    for source in workloads:
        add_owners(source, known.index)
    if replicas is None:
        workloads = [replace(source, most=_max_replicas(source, known.index)) for source in workloads]
    moving, active = _pods(known.kept, target, what_if)
    targets = Targets(
        sources=tuple(workloads),
        pods=moving,
        active=active,
        everything=target.everything,
        namespace=namespace,
        unseen=(*unreadable, *known.missing),
    )
    return targets, incomplete


def _pods(
    kept: Iterable[Item], target: Target, what_if: WhatIf
) -> tuple[dict[str, list[Pod]], dict[str, list[RunningPod]]]:
    """Return the pods that may lose their node, by node, and the pods that a scale-in may remove, by namespace."""
    moving, active = dict[str, list[Pod]](), dict[str, list[RunningPod]]()
    for item in filter(_is_pod, kept):
        bound = _bound(item)
        if bound is None:
            continue
        if _may_move(bound, what_if) and isinstance(pod := decode_or_none(item.raw, item.of), Pod):
            moving.setdefault(bound.spec.node_name, []).append(pod)
        if _may_be_removed(bound, target) and (running := _active(item)) is not None:
            active.setdefault(bound.metadata.namespace, []).append(running)
    return moving, active


def _active(item: Item) -> RunningPod | None:
    try:
        return active_pod(_REMOVAL_FIELDS.decode(item.raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def at_minimum(targets: Targets, index: ClusterIndex) -> Targets:
    """Return the targets with the minimum replicas of their autoscalers. Raises CommandError if one is not lower."""
    return replace(targets, sources=tuple(_at_minimum(source, index) for source in targets.sources))


def _at_minimum(source: ReplicatedSource, index: ClusterIndex) -> ReplicatedSource:
    scaler = _autoscaler(source, index)
    if scaler is None:
        raise CommandError(f"{source.title}: no autoscaler scales it, so --scale-in has no minimum; use --replicas N")
    running = 0 if source.own is None else sum(index.pods.count(source.namespace, source.own).values())
    least, pods = scaler.spec.least, max(source.replicas, running)
    if least >= pods:
        raise CommandError(f"{source.title}: its autoscaler's minimum {least:,} is not below its {plural(pods, 'pod')}")
    return replace(source, replicas=least, most=0)


def _autoscaler(source: ReplicatedSource, index: ClusterIndex) -> Autoscaler | None:
    workload = source.workload
    return index.owners.autoscaler(workload.api_version, workload.kind, source.namespace, workload.meta.name)


def _from_objects(
    objects: Iterable[Item], known: ClusterSource, context: Context
) -> tuple[list[ReplicatedSource], list[str]]:
    """Return the workloads in the cluster's objects, and a line for each unreadable object."""
    workloads, unreadable = list[ReplicatedSource](), list[str]()
    for item in objects:
        try:
            workloads += sources_in_cluster(item.of, item.raw, context)
        except DecodeError as error:
            unreadable.append(undecodable_line(item.of.kind, item.raw, error.message))
    for line in unreadable:
        print_message(f"{known.source}: note: {line}")
    return workloads, unreadable


def _max_replicas(source: ReplicatedSource, index: ClusterIndex) -> int:
    scaler = _autoscaler(source, index)
    return 0 if scaler is None else scaler.spec.max_replicas


def _from_files(
    files: Sequence[str], known: ClusterSource, context: Context, replicas: int | None
) -> tuple[list[ReplicatedSource], bool]:
    run, workloads, read = CheckRun(), list[ReplicatedSource](), [*read_files(files, unpack=True)]
    for scaler in autoscalers((file for file in read if isinstance(file, File)), context.namespace):
        add_to_index(known.index, scaler, "autoscaler")
    for manifest in run.manifests(read, duplicates=False):
        try:
            mine = [*sources_of(manifest.value, manifest.type_meta, context, applied=False, replicas=replicas)]
        except DecodeError as error:
            run.faults.append(manifest.document.fault(f"{manifest.title}: {error.message}"))
            continue
        for source in mine:
            applied = has_same_template(source.workload, source.template.pod, source.namespace, known.index)
            named = source if source.workload.meta.name else _with_own_uid(source, len(workloads))
            workloads.append(replace(named, applied=applied))
        if not mine:
            _add_dependency(manifest, known, context)
    print_faults(run.faults)
    return workloads, any(fault.fatal for fault in run.faults)


def _with_own_uid(source: ReplicatedSource, number: int) -> ReplicatedSource:
    """Return the source with a uid of its own: kube-apiserver names each nameless object differently."""
    workload = source.workload
    named = replace(workload, meta=replace(workload.meta, uid=f"{NOT_YET_KNOWN}-{number}"))
    return replace(source, workload=named)


def _add_dependency(manifest: Manifest, known: ClusterSource, context: Context) -> None:
    """Add a Service, claim or storage class of the files to the index."""
    value = decode_or_none(manifest.json_text, manifest.type_meta, context.policy.workloads)
    if isinstance(value, Service | Claim):
        meta = value.metadata
        if meta is not None and not meta.namespace:
            value = replace(value, metadata=replace(meta, namespace=context.namespace))
    if isinstance(value, Service | Claim | StorageClass):
        add_to_index(known.index, value, manifest.kind, manifest.file)
