"""The workloads that `simulate` is to simulate: those of files, of one object of the cluster, or all."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from webhook.cli.checking.input_objects import autoscalers
from webhook.cli.checking.run import CheckRun
from webhook.cli.cluster_source import ClusterSource, put
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.target import Target, find
from webhook.cli.terminal import print_faults, say
from webhook.cluster.live import undecodable_line
from webhook.core.api.storage import Claim, StorageClass
from webhook.core.api.types import Pod, Service
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.context import Context
from webhook.core.decoders import decoder_of
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.owners import has_same_template
from webhook.core.index.readers import decode_or_none
from webhook.core.what_if.events import WhatIf
from webhook.core.what_if.run import Targets
from webhook.core.what_if.sources import ReplicatedSource, add_owners, sources_in_cluster, sources_of
from webhook.core.workloads.controller_labels import NOT_YET_KNOWN
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.core.workloads.kind_fields import has_template
from webhook.core.workloads.kinds import POD, group_kind
from webhook.core.workloads.reading import read_meta
from webhook.manifests.reading.files import File, read_files
from webhook.manifests.reading.manifest import Manifest
from webhook.snapshot.load import Item


class _Meta(Struct, frozen=True, rename="camel"):
    deletion_timestamp: str | None = None


class _Spec(Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _Bound(Struct, frozen=True):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()


_BOUND = decoder_of(_Bound)


def is_kept(item: Item, of: Target, what_if: WhatIf, embedded: tuple[EmbeddedKind, ...]) -> bool:
    """Whether an object of the cluster is needed as it is: one that is simulated, or a pod that may lose its node."""
    api_version, kind = item.of.api_version or "", item.of.kind or ""
    if group_kind(api_version, kind) == POD:
        try:
            bound = _BOUND.decode(item.raw)
        except msgspec.DecodeError:  # nor is it in the index
            return False
        node = bound.spec.node_name
        if node and (bound.metadata.deletion_timestamp or what_if.moves(node)):
            return True
    if of.named is not None:
        return of.named.is_in(item)
    return of.everything and has_template(api_version, kind, embedded)


def targets(
    of: Target, known: ClusterSource, within: Context, *, replicas: int | None, everywhere: bool
) -> tuple[Targets, bool]:
    """The workloads of a simulation. Owners that they will have, and what else is in the files, go into the index.

    Args:
        of: What the command line names.
        known: The cluster.
        within: The same with the policy, and the namespace of objects that name none.
        replicas: How many replicas each workload gets instead of its own number.
        everywhere: Whether no namespace was named.

    Returns:
        The workloads, and whether a part of the input could not be read.

    Raises:
        CommandError: The object does not exist, or makes no pods that could be simulated.
    """
    pods: dict[str, list[Pod]] = {}
    others = list[Item]()
    for item in known.kept:
        value = decode_or_none(item.raw, item.of, within.policy.workloads) if item.of.kind == POD[1] else None
        if isinstance(value, Pod) and value.pod_spec.node_name:
            pods.setdefault(value.pod_spec.node_name, []).append(value)
        else:
            others.append(item)
    holes, namespace, unreadable = False, "" if everywhere else within.namespace, list[str]()
    if of.files:
        found, holes = _of_files(of.files, known, within, replicas)
    elif of.named is not None:
        raw, stated = find(of.named, known, guessed=everywhere)
        try:
            found = [*sources_of(raw, stated, within, applied=True, replicas=replicas)]
        except DecodeError as error:
            raise CommandError(f"{known.source}: {of.named.title}: {error.message}", Exit.UNREADABLE) from error
    else:
        here = [each for each in others if namespace in {"", read_meta(each.raw).namespace}]
        found, unreadable = _of_all(here, known, within)
    if not found and not of.everything:
        what = ", ".join(of.files) or (of.named.title if of.named else "")
        raise CommandError(f"{what}: nothing in it makes pods that look for a node", Exit.UNREADABLE)
    for each in found:
        add_owners(each, known.index)
    if replicas is None:
        found = [replace(each, most=_most(each, known.index)) for each in found]
    found_targets = Targets(
        sources=tuple(found),
        pods=pods,
        everything=of.everything,
        namespace=namespace,
        unseen=(*unreadable, *known.missing),
    )
    return found_targets, holes


def _of_all(objects: Iterable[Item], known: ClusterSource, within: Context) -> tuple[list[ReplicatedSource], list[str]]:
    """The sources of these objects, and a line for each object that cannot be read."""
    found, unreadable = list[ReplicatedSource](), list[str]()
    for item in objects:
        try:
            found += sources_in_cluster(item.of, item.raw, within)
        except DecodeError as error:
            unreadable.append(undecodable_line(item.of.kind, item.raw, error.message))
    for line in unreadable:
        say(f"{known.source}: note: {line}")
    return found, unreadable


def _most(source: ReplicatedSource, index: ClusterIndex) -> int:
    of = source.workload
    scaler = index.owners.autoscaler(of.api_version, of.kind, source.namespace, of.meta.name)
    return 0 if scaler is None else scaler.spec.max_replicas


def _of_files(
    files: Sequence[str], known: ClusterSource, within: Context, replicas: int | None
) -> tuple[list[ReplicatedSource], bool]:
    seen, found, read = CheckRun(), list[ReplicatedSource](), [*read_files(files, unpack=True)]
    for scaler in autoscalers((each for each in read if isinstance(each, File)), within.namespace):
        put(known.index, scaler, "autoscaler")
    for manifest in seen.manifests(read, duplicates=False):
        try:
            mine = [*sources_of(manifest.value, manifest.type_meta, within, applied=False, replicas=replicas)]
        except DecodeError as error:
            seen.faults.append(manifest.document.fault(f"{manifest.title}: {error.message}"))
            continue
        for each in mine:
            applied = has_same_template(each.workload, each.template.template, each.namespace, known.index)
            named = each if each.workload.meta.name else _with_own_uid(each, len(found))
            found.append(replace(named, applied=applied))
        if not mine:
            _apply(manifest, known, within)
    print_faults(seen.faults)
    return found, any(fault.fatal for fault in seen.faults)


def _with_own_uid(source: ReplicatedSource, number: int) -> ReplicatedSource:
    """The source with a uid of its own: kube-apiserver generates another name for each object without one."""
    of = source.workload
    named = replace(of, meta=replace(of.meta, uid=f"{NOT_YET_KNOWN}-{number}"))
    return replace(source, workload=named)


def _apply(manifest: Manifest, known: ClusterSource, within: Context) -> None:
    """Put into the index what pods depend on: services, claims and storage classes."""
    value = decode_or_none(manifest.json_text, manifest.type_meta, within.policy.workloads)
    if isinstance(value, Service | Claim):
        meta = value.metadata
        if meta is not None and not meta.namespace:
            value = replace(value, metadata=replace(meta, namespace=within.namespace))
    if isinstance(value, Service | Claim | StorageClass):
        put(known.index, value, manifest.kind, manifest.file)
