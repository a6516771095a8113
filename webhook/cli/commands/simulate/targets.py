"""What a command line asks about: files, one object of the cluster, or all of its workloads.

what to keep of the cluster while it is read -> Wanted    Wanted, ClusterSource -> core.what_if.run.Targets
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from webhook.cli import find_object
from webhook.cli.checking.run import CheckRun, with_autoscalers
from webhook.cli.cluster_source import ClusterSource, put
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.frame import Frame
from webhook.cli.terminal import print_faults, say
from webhook.cluster.live import unread
from webhook.core.api.storage import Claim, StorageClass
from webhook.core.api.types import Pod, Service, TypeMeta
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.coming_pods.next_pod import PodSource
from webhook.core.decoders import decoder_of
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.owners import keeps_revision
from webhook.core.index.readers import readable
from webhook.core.what_if.events import WhatIf
from webhook.core.what_if.run import Targets
from webhook.core.what_if.workloads import ReplicatedSource, introduce, of_cluster, sources
from webhook.core.workloads.controller_labels import NOT_YET_KNOWN
from webhook.core.workloads.kinds import POD, group_kind
from webhook.core.workloads.reading import has_template, read_meta, stated_type
from webhook.manifests.reading.files import STDIN, File, read_files
from webhook.manifests.reading.manifest import Manifest
from webhook.snapshot.load import Item


class Wanted(Struct, frozen=True, kw_only=True):
    """What the words on the command line stand for. Shape: nothing of it for all workloads of the cluster."""

    files: tuple[str, ...] = ()
    named: find_object.Wanted | None = None

    @property
    def everything(self) -> bool:
        """Whether all workloads of the cluster are asked about."""
        return not self.files and self.named is None


class _Meta(Struct, frozen=True, rename="camel"):
    deletion_timestamp: str | None = None


class _Spec(Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _Bound(Struct, frozen=True):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()


_BOUND = decoder_of(_Bound)


def wanted(words: Sequence[str], frame: Frame) -> Wanted:
    """Read the words: files, or ``KIND/NAME``, which people write apart too.

    Errors: CommandError for what is neither.
    """
    if all(word == STDIN or Path(word).exists() for word in words):
        return Wanted(files=tuple(words))
    text = "/".join(words[:2])
    named = None if words[2:] else find_object.parse(text, frame.namespace, frame.policy.workloads)
    if named is None:
        missing = [word for word in words if word != STDIN and not Path(word).exists()]
        for word in missing:
            if find_object.parse(word, frame.namespace, frame.policy.workloads) is None:
                what = "a file nor KIND/NAME of a kind that has pods, as deployment/web"
                raise CommandError(f"{word[:64]!r} is neither {what}")
        raise CommandError("give one KIND/NAME at a time; several workloads: their manifests as FILE…, or --all")
    return Wanted(named=named)


def is_kept(item: Item, of: Wanted, what_if: WhatIf, frame: Frame) -> bool:
    """Whether an object of the cluster is needed as it is: one that is asked about, or a pod that may lose its node."""
    kind = group_kind(item.of.api_version or "", item.of.kind or "")
    if kind == POD:
        try:
            bound = _BOUND.decode(item.raw)
        except msgspec.DecodeError:  # nor is it in the index
            return False
        node = bound.spec.node_name
        if node and (bound.metadata.deletion_timestamp or what_if.moves(node)):
            return True
    if of.named is not None:
        return find_object.is_wanted(of.named, item)
    return of.everything and has_template(item.of.api_version or "", item.of.kind or "", frame.policy.workloads)


def targets(
    of: Wanted, known: ClusterSource, frame: Frame, *, replicas: int | None, everywhere: bool
) -> tuple[Targets, bool]:
    """Whose pods these are. Owners that they will have are put into the index, and what else is in the files.

    Args:
        of: What the words of the command line stand for.
        known: The cluster.
        frame: How manifests are read.
        replicas: How many replicas each workload gets instead of its own number.
        everywhere: Whether no namespace was named.

    Returns:
        Whose pods are asked about, and whether a part of the input could not be read.

    Raises:
        CommandError: The object does not exist, or makes no pods that could be simulated.
    """
    pods: dict[str, list[Pod]] = {}
    others = list[Item]()
    for item in known.kept:
        value = _pod(item, frame)
        if value is not None and value.pod_spec.node_name:
            pods.setdefault(value.pod_spec.node_name, []).append(value)
        else:
            others.append(item)
    found, holes, namespace = list[ReplicatedSource](), False, "" if everywhere else frame.namespace
    unreadable: tuple[str, ...] = ()
    if of.files:
        found, holes = _of_files(of.files, known, frame, replicas)
    elif of.named is not None:
        raw, stated = _object(of.named, others, known, guessed=everywhere)
        try:
            within = frame.context(frame.namespace)
            found = [*sources(raw, stated, within, applied=True, replicas=replicas)]
        except DecodeError as error:
            raise CommandError(f"{known.source}: {of.named.title}: {error.message}", Exit.UNREADABLE) from error
    else:
        found, unreadable = _of_all(others, known, frame, namespace)
    if not found and not of.everything:
        what = ", ".join(of.files) or (of.named.title if of.named else "")
        raise CommandError(f"{what}: nothing in it makes pods that look for a node", Exit.UNREADABLE)
    for each in found:
        introduce(each, known.index)
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


def _pod(item: Item, frame: Frame) -> Pod | None:
    """The pod that an object is; None for another object, and for a pod that the index could not read either."""
    if item.of.kind != POD[1]:
        return None
    value = readable(item.raw, item.of, frame.policy.workloads)
    return value if isinstance(value, Pod) else None


def _of_all(
    objects: Sequence[Item], known: ClusterSource, frame: Frame, namespace: str
) -> tuple[list[ReplicatedSource], tuple[str, ...]]:
    """The sources of the cluster or of one namespace, and a line for each object that cannot be read."""
    found, unreadable = list[ReplicatedSource](), list[str]()
    for item in objects:
        if namespace not in {"", read_meta(item.raw).namespace}:
            continue
        try:
            found += of_cluster(item.of, item.raw, frame.context(frame.namespace))
        except DecodeError as error:
            unreadable.append(unread(item.of.kind, item.raw, error.message))
    for line in unreadable:
        say(f"{known.source}: note: {line}")
    return found, tuple(unreadable)


def _most(source: ReplicatedSource, index: ClusterIndex) -> int:
    of = source.workload
    scaler = index.owners.autoscaler(of.api_version, of.kind, source.namespace, of.meta.name)
    return 0 if scaler is None else scaler.spec.max_replicas


def _object(
    named: find_object.Wanted, kept: Sequence[Item], known: ClusterSource, *, guessed: bool
) -> tuple[Raw | Mapping[str, object], TypeMeta]:
    """The object, with its type. Errors: CommandError if it does not exist."""
    if kept:
        return kept[0].raw, kept[0].of
    found = None if known.server is None else find_object.in_cluster(named, known.server, known.source)
    if found is None:
        hint = "; -n names the namespace" * guessed
        raise CommandError(f"{known.source}: no {named.title}{hint}", Exit.UNREADABLE)
    return found, stated_type(found)


def _of_files(
    files: Sequence[str], known: ClusterSource, frame: Frame, replicas: int | None
) -> tuple[list[ReplicatedSource], bool]:
    seen, found, read = CheckRun(), list[ReplicatedSource](), [*read_files(files, unpack=True)]
    for scaler in with_autoscalers(frame, [each for each in read if isinstance(each, File)]).scalers:
        put(known.index, scaler, "autoscaler")
    within = frame.context(frame.namespace)
    for manifest in seen.manifests(read, duplicates=False):
        try:
            mine = [*sources(manifest.value, manifest.type_meta, within, applied=False, replicas=replicas)]
        except DecodeError as error:
            seen.faults.append(manifest.document.fault(f"{manifest.title}: {error.message}"))
            continue
        mine = [each if each.workload.meta.name else _told_apart(each, len(found)) for each in mine]
        found += [replace(each, applied=_keeps_revision(each, known.index)) for each in mine]
        if not mine:
            _apply(manifest, known, frame)
    print_faults(seen.faults)
    return found, any(fault.fatal for fault in seen.faults)


def _keeps_revision(source: PodSource, index: ClusterIndex) -> bool:
    return keeps_revision(source.workload, source.template.template, source.namespace, index)


def _told_apart(source: ReplicatedSource, number: int) -> ReplicatedSource:
    """The source with a uid of its own: kube-apiserver generates another name for each object without one."""
    of = source.workload
    named = replace(of, meta=replace(of.meta, uid=f"{NOT_YET_KNOWN}-{number}"))
    return replace(source, workload=named)


def _apply(manifest: Manifest, known: ClusterSource, frame: Frame) -> None:
    """Put into the index what pods depend on: services, claims and storage classes."""
    value = readable(manifest.json_text, manifest.type_meta, frame.policy.workloads)
    if isinstance(value, Service | Claim):
        meta = value.metadata
        if meta is not None and not meta.namespace:
            value = replace(value, metadata=replace(meta, namespace=frame.namespace))
    if isinstance(value, Service | Claim | StorageClass):
        put(known.index, value, manifest.kind, manifest.file)
