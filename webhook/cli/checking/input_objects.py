"""Objects of the input that change the checks of the other objects.

These are autoscalers, SpreadGroups, workloads in the same file, evenspread policies and scheduler configurations.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, structs

from webhook.cli.cluster_source import add_to_index
from webhook.config import ConfigError, ConfigFault, parse_policy, read_profiles
from webhook.core.api.spread_group import API_VERSION, KIND, GroupMeta, SpreadGroup
from webhook.core.api.types import ObjectMeta
from webhook.core.decoders import converted, decoder_of
from webhook.core.groups.reading import GroupError, read_group
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import Autoscaler, AutoscalerSpec, Owner, ScaleTarget
from webhook.core.index.readers import decode_or_none
from webhook.core.policy.policy import Policy
from webhook.core.workloads.custom_kinds import CONSTRAINTS
from webhook.core.workloads.kind_fields import has_template
from webhook.core.workloads.kinds import DEPLOYMENT, group_kind, native_version
from webhook.core.workloads.workload import namespace_of
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File
from webhook.manifests.reading.manifest import Manifest, read_manifests

Json = Any  # unchecked JSON of an autoscaler

_AUTOSCALERS = (b"HorizontalPodAutoscaler", b"ScaledObject")
# KEDA makes a HorizontalPodAutoscaler of it. Source: keda.sh/v1alpha1 ScaledObjectSpec, defaultHPAMaxReplicas.
_SCALED_OBJECT = ("keda.sh", "ScaledObject")
_KEDA_DEFAULT_MAX_REPLICAS = 100


def autoscalers(files: Iterable[File], namespace: str) -> Iterator[Autoscaler]:
    """Yield the readable autoscalers of the files. ``namespace`` is the default."""
    for manifest in _objects(files, _AUTOSCALERS):
        if (scaler := _autoscaler(manifest)) is not None:
            meta = ObjectMeta(name=manifest.name, namespace=namespace_of(manifest.namespace, namespace))
            yield structs.replace(scaler, metadata=meta)


def _objects(files: Iterable[File], words: Sequence[bytes]) -> Iterator[Manifest]:
    """Yield the objects with one of these words. Files without these words are not parsed."""
    for file in files:
        if any(word in file.data for word in words):
            for item in read_manifests(file.name, file.data, duplicates=False, having=words):
                if isinstance(item, Manifest):
                    yield item


def _autoscaler(manifest: Manifest) -> Autoscaler | None:
    kind = group_kind(manifest.api_version, manifest.kind)
    if kind not in {("autoscaling", "HorizontalPodAutoscaler"), _SCALED_OBJECT}:
        return None
    try:
        value: Json = msgspec.json.decode(manifest.value) if isinstance(manifest.value, bytes) else manifest.value
        spec = value.get("spec") or {}
        return Autoscaler(spec=_keda_spec(spec)) if kind == _SCALED_OBJECT else converted(value, Autoscaler)
    except (msgspec.DecodeError, AttributeError, TypeError):
        return None


def _keda_spec(spec: Mapping[str, Json]) -> AutoscalerSpec:
    target = {"apiVersion": native_version(DEPLOYMENT), "kind": DEPLOYMENT[1], **(spec.get("scaleTargetRef") or {})}
    return AutoscalerSpec(
        scale_target_ref=converted(target, ScaleTarget),
        min_replicas=converted(spec.get("minReplicaCount", 0), int),
        max_replicas=converted(spec.get("maxReplicaCount", _KEDA_DEFAULT_MAX_REPLICAS), int),
    )


def spread_groups(files: Iterable[File], namespace: str) -> Iterator[SpreadGroup]:
    """Yield the readable SpreadGroups of the files. ``namespace`` is the default."""
    for manifest in _objects(files, (KIND.encode(),)):
        if _is_group(manifest):
            try:
                group = decoder_of(SpreadGroup).decode(manifest.json_text)
            except (ValueError, RecursionError):
                continue
            meta = group.metadata or GroupMeta()
            where = namespace_of(manifest.namespace, namespace)
            yield structs.replace(group, metadata=structs.replace(meta, namespace=where))


def group_faults(manifest: Manifest) -> Iterator[InputFault]:
    """Yield the faults of a SpreadGroup, each at its field."""
    if not _is_group(manifest):
        return
    try:
        read_group(decoder_of(dict[str, object]).decode(manifest.json_text), manifest.namespace)
    except GroupError as error:
        for fault in error.faults:
            yield manifest.fault(fault.partition(": ")[0], f"{manifest.title} cannot be planned: {fault}")


def _is_group(manifest: Manifest) -> bool:
    return (manifest.api_version, manifest.kind) == (API_VERSION, KIND)


# Every workload has this word. A file with a single occurrence has no second workload.
_TEMPLATE = b"emplate"


def same_file_indexes(files: Iterable[File], namespace: str, policy: Policy) -> dict[str, ClusterIndex]:
    """An index for each file with several workloads, by file name. ``namespace`` is the default."""
    indexes = {}
    for file in files:
        if CONSTRAINTS.encode() in file.data and file.data.count(_TEMPLATE) > 1:
            indexes[file.name] = index = ClusterIndex()
            for manifest in _objects((file,), (_TEMPLATE,)):
                if not has_template(manifest.api_version, manifest.kind, policy.workloads):
                    continue
                owner = decode_or_none(Raw(manifest.json_text), manifest.type_meta, policy.workloads)
                if isinstance(owner, Owner):
                    meta = structs.replace(owner.meta, namespace=namespace_of(manifest.namespace, namespace))
                    add_to_index(index, structs.replace(owner, meta=meta), owner.kind, file.name)
            for group in spread_groups((file,), namespace):
                add_to_index(index, group, "SpreadGroup", file.name)
    return indexes


_POLICY = ("config.evenspread.io", "SpreadPolicy")
_SCHEDULER = ("kubescheduler.config.k8s.io", "KubeSchedulerConfiguration")
_CONFIGURATIONS = (_POLICY[1].encode(), _SCHEDULER[1].encode())
_KIND_LINE = re.compile(rf"""^[{{ \t]*["']?kind["']?[ \t]*:[ \t]*["']?({_POLICY[1]}|{_SCHEDULER[1]})\b""", re.MULTILINE)
_SCHEDULER_FILE = "schedulerConfiguration"


def is_configuration(manifest: Manifest) -> bool:
    """Whether evenspread validates an object as configuration (kube-scheduler's or its own)."""
    group, kind = group_kind(manifest.api_version, manifest.kind)
    # A wrong API group of evenspread is a fault, not a kind of another project.
    return (group, kind) == _SCHEDULER or (kind == _POLICY[1] and group.endswith("evenspread.io"))


def configuration_faults(manifest: Manifest, today: str) -> Iterator[InputFault]:
    """Yield the faults of a configuration, or of the configuration inside a ConfigMap. ``today`` is an ISO date."""
    if is_configuration(manifest):
        yield from _faults(manifest, today)
    elif (manifest.api_version, manifest.kind) == ("v1", "ConfigMap") and any(
        word in manifest.json_text for word in _CONFIGURATIONS
    ):
        yield from _config_map_faults(manifest, today)


def _faults(manifest: Manifest, today: str) -> Iterator[InputFault]:
    """Yield the faults of an evenspread policy or a scheduler configuration.

    Errors of the parser are fatal faults, except at a placeholder such as ``${NAME}`` and for the apiVersion of a
    scheduler configuration. Warnings are not fatal. The scheduler file named by a policy is not read.
    """
    in_place = not (manifest.prefix or manifest.document.json)
    text = manifest.document.text.decode("utf-8", "replace") if in_place else json.dumps(json.loads(manifest.json_text))
    faults: Sequence[ConfigFault] = ()
    is_invalid = False
    try:
        if manifest.kind == _SCHEDULER[1]:
            read_profiles(text, file=manifest.file)
        else:
            faults = parse_policy(text, file=manifest.file, today=today, read=lambda _path: None).warnings
            # The other warnings would compare the policy with the unopened scheduler file.
            faults = () if any(warning.path == _SCHEDULER_FILE for warning in faults) else faults
    except ConfigError as error:
        faults, is_invalid = error.faults, True
    for fault in faults:
        place = manifest.locate(fault.path or "kind")
        line, column = place.line, place.column
        if in_place and fault.line:
            line, column = manifest.document.line + fault.line - 1, fault.column
        message = ": ".join(part for part in (manifest.kind, fault.path, fault.message) if part)
        fatal = is_invalid and "${" not in place.text  # envsubst and Flux fill in placeholders
        if manifest.kind == _SCHEDULER[1] and fault.path == "apiVersion":
            fatal = False  # valid for older kube-schedulers
        yield InputFault(file=manifest.file, message=message, line=line, column=column, fatal=fatal)


def _config_map_faults(manifest: Manifest, today: str) -> Iterator[InputFault]:
    data = json.loads(manifest.json_text).get("data")
    for key, text in data.items() if isinstance(data, dict) else ():
        if not isinstance(text, str) or not _KIND_LINE.search(text):
            continue
        place = manifest.locate(f"data[{key}]")
        for inner in read_manifests(key, text.encode()):
            if isinstance(inner, Manifest):
                faults = [*_faults(inner, today)] if is_configuration(inner) else []
            else:
                faults = [] if inner.foreign else [inner]
            for fault in faults:
                yield structs.replace(
                    fault,
                    file=manifest.file,
                    message=f"{manifest.title}: {fault}",
                    line=place.line,
                    column=place.column,
                )
