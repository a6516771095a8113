"""Objects of the input that others are judged by: autoscalers, SpreadGroups, and the workloads of one file."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw, structs

from webhook.cli.cluster_source import put
from webhook.core.api.spread_group import API_VERSION, KIND, GroupMeta, SpreadGroup
from webhook.core.api.types import ObjectMeta
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.decoders import converted, decoder_of
from webhook.core.groups.reading import GroupError, read_group
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import Autoscaler, AutoscalerSpec, Owner, ScaleTarget
from webhook.core.index.readers import readable
from webhook.core.policy.policy import Policy
from webhook.core.workloads.custom_kinds import CONSTRAINTS
from webhook.core.workloads.kinds import DEPLOYMENT, group_kind, native_version
from webhook.core.workloads.reading import has_template
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File
from webhook.manifests.reading.manifest import Manifest, read_manifests

Json = Any

# Files without any of these words are not parsed here.
_WORDS = (b"HorizontalPodAutoscaler", b"ScaledObject")
# KEDA makes a HorizontalPodAutoscaler of it. Source: keda.sh/v1alpha1 ScaledObjectSpec, defaultHPAMaxReplicas.
_SCALED_OBJECT = ("keda.sh", "ScaledObject")
_KEDA_DEFAULT_MAX_REPLICAS = 100


def autoscalers(files: Iterable[File], namespace: str) -> Iterator[Autoscaler]:
    """Every autoscaler of the files; ``namespace`` is for those that name none. Unreadable objects are left out."""
    for file in files:
        if any(word in file.data for word in _WORDS):
            for found in read_manifests(file.name, file.data, duplicates=False, having=_WORDS):
                if isinstance(found, Manifest) and (scaler := _autoscaler(found)) is not None:
                    meta = ObjectMeta(name=found.name, namespace=found.namespace or namespace)
                    yield structs.replace(scaler, metadata=meta)


def _autoscaler(manifest: Manifest) -> Autoscaler | None:
    kind = group_kind(manifest.api_version, manifest.kind)
    if kind not in {("autoscaling", "HorizontalPodAutoscaler"), _SCALED_OBJECT}:
        return None
    try:
        value: Json = msgspec.json.decode(manifest.value) if isinstance(manifest.value, bytes) else manifest.value
        spec = value.get("spec") or {}
        return Autoscaler(spec=_of_keda(spec)) if kind == _SCALED_OBJECT else converted(value, Autoscaler)
    except (msgspec.DecodeError, AttributeError, TypeError):
        return None


def _of_keda(spec: Mapping[str, Json]) -> AutoscalerSpec:
    target = {"apiVersion": native_version(DEPLOYMENT), "kind": DEPLOYMENT[1], **(spec.get("scaleTargetRef") or {})}
    return AutoscalerSpec(
        scale_target_ref=converted(target, ScaleTarget),
        max_replicas=converted(spec.get("maxReplicaCount", _KEDA_DEFAULT_MAX_REPLICAS), int),
    )


# Files without the word are not parsed here.
_WORD = KIND.encode()


def spread_groups(files: Iterable[File], namespace: str) -> Iterator[SpreadGroup]:
    """Every group of the files; ``namespace`` is for those that name none. Unreadable ones are left out."""
    for file in files:
        if _WORD in file.data:
            for found in read_manifests(file.name, file.data, duplicates=False, having=(_WORD,)):
                if isinstance(found, Manifest) and (group := _group(found)) is not None:
                    meta = group.metadata or GroupMeta()
                    where = found.namespace or namespace or DEFAULT_NAMESPACE
                    yield structs.replace(group, metadata=structs.replace(meta, namespace=where))


def group_faults(manifest: Manifest) -> Iterator[InputFault]:
    """What is wrong with an object that is a SpreadGroup, each fault where it stands."""
    if not _is_group(manifest):
        return
    try:
        read_group(decoder_of(dict[str, object]).decode(manifest.json_text), manifest.namespace)
    except GroupError as error:
        for fault in error.faults:
            yield manifest.fault(fault.partition(": ")[0], f"{manifest.title} cannot be planned: {fault}")


def _is_group(manifest: Manifest) -> bool:
    return (manifest.api_version, manifest.kind) == (API_VERSION, KIND)


def _group(manifest: Manifest) -> SpreadGroup | None:
    if not _is_group(manifest):
        return None
    try:
        return decoder_of(SpreadGroup).decode(manifest.json_text)
    except (ValueError, RecursionError):
        return None


# Every workload has this word. Files that have it only once hold no pair, and are not parsed here.
_TEMPLATE = b"emplate"


def same_file_indexes(files: Iterable[File], namespace: str, policy: Policy) -> dict[str, ClusterIndex]:
    """An index of each file that may hold a pair of workloads, by the file's name.

    Args:
        files: The input.
        namespace: The namespace of objects that name none; may be empty.
        policy: Its ``workloads`` are read as well.
    """
    indexes = {}
    for file in files:
        if CONSTRAINTS.encode() in file.data and file.data.count(_TEMPLATE) > 1:
            indexes[file.name] = index = ClusterIndex()
            for owner in _owners(file, namespace, policy):
                put(index, owner, owner.kind, file.name)
            for group in spread_groups((file,), namespace):
                put(index, group, "SpreadGroup", file.name)
    return indexes


def _owners(file: File, namespace: str, policy: Policy) -> Iterator[Owner]:
    """The workloads of a file. Unreadable ones are left out."""
    for found in read_manifests(file.name, file.data, duplicates=False, having=(_TEMPLATE,)):
        if not isinstance(found, Manifest) or not has_template(found.api_version, found.kind, policy.workloads):
            continue
        owner = readable(Raw(found.json_text), found.type_meta, policy.workloads)
        if isinstance(owner, Owner):
            meta = structs.replace(owner.meta, namespace=found.namespace or namespace)
            yield structs.replace(owner, meta=meta)
