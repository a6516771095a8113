"""The objects of a group as read, and with the plan's fields: ``plan -o patch`` and ``plan -o manifest``."""

import json
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Raw, Struct

from webhook.answers.planned import PlanAnswer
from webhook.cli.output.terminal import Json
from webhook.core.api.spread_group import API_VERSION, KIND
from webhook.core.api.types import TypeMeta
from webhook.core.api.well_known import INJECTED_ANNOTATION, LAST_APPLIED_ANNOTATION
from webhook.core.groups.fields import replace_label_value
from webhook.core.groups.group import Fields, Group, Shard
from webhook.core.json_edits import Edit, applied, value_at
from webhook.core.what_if.sources import ReplicatedSource
from webhook.core.workloads.reading import parse_object
from webhook.core.yaml_text import block

_Value = bytes | Raw | Mapping[str, object]
_META = ("labels", "annotations")
_INVENTED = "invented: add your containers, volumes and Service"


class SourceObject(Struct, frozen=True):
    """An object with its type and origin. It is ``applied`` if the cluster has it."""

    of: TypeMeta
    value: _Value
    where: str
    applied: bool


class WrittenWorkload(Struct, frozen=True):
    """A workload read from the input, with its original object. The workload can be printed as a manifest."""

    source: ReplicatedSource
    of: TypeMeta
    value: _Value

    @property
    def name(self) -> str:
        """The workload's name."""
        return self.source.workload.meta.name

    def manifest(self, namespace: str) -> Json:
        """The object to apply."""
        return applicable(self.of, object_of(self.value), namespace)


def object_of(value: _Value) -> Mapping[str, object]:
    """Parse an object. Empty for any other JSON. Raises DecodeError if the text is not JSON."""
    decoded = parse_object(value)
    return decoded if isinstance(decoded, Mapping) else {}


def applicable(of: TypeMeta, value: Mapping[str, object], namespace: str) -> Json:
    """The object without server fields, for ``kubectl apply`` in this namespace."""
    meta = value.get("metadata")
    stated = meta if isinstance(meta, Mapping) else {}
    kept = {key: stated[key] for key in _META if stated.get(key)}
    if isinstance(annotations := kept.get("annotations"), Mapping) and LAST_APPLIED_ANNOTATION in annotations:
        kept["annotations"] = {key: text for key, text in annotations.items() if key != LAST_APPLIED_ANNOTATION}
    named = {"name": stated.get("name"), "namespace": namespace}
    return {"apiVersion": of.api_version, "kind": of.kind, "metadata": named | kept, "spec": value.get("spec")}


class PlannedGroup(Struct, frozen=True, kw_only=True):
    """A group with its plan and its existing workloads.

    Attributes:
        answer: The plan.
        stored: Whether the cluster has stored a plan.
        written: The existing workloads, by name.
        manifest: The SpreadGroup to apply.
        taken: Names of expected shards that belong to other workloads of the namespace.
        notes: Notes for the group's author.
    """

    answer: PlanAnswer
    stored: bool
    written: Mapping[str, WrittenWorkload]
    manifest: Json
    taken: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def group_manifest(group: Group) -> Json:
    """Return the SpreadGroup manifest for a group read from a ConfigMap."""
    (unshared_key,) = group.never_share
    required = {"requiredDomains": {"topologyKey": group.domains_key, "values": group.domains}}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": group.name, "namespace": group.namespace},
        "spec": {
            "selector": msgspec.to_builtins(group.selector),
            "shard": {"label": group.shard_label, "neverShare": unshared_key},
            "expected": {"shards": group.shards, "podsPerShard": group.pods_per_shard},
            **({"planFor": {"shards": group.plan_for}} if group.plan_for > group.shards else {}),
            **(required if group.domains is not None else {}),
            "caps": [{"topologyKey": cap.topology_key, "atMost": int(cap.amount)} for cap in group.caps],
        },
    }


def manifests(planned: PlannedGroup) -> Iterator[str]:
    """Yield YAML documents: the SpreadGroup, then each shard of the plan.

    A shard is skipped if another workload has its name. Yield nothing without a plan.
    """
    plan = planned.answer.derived.plan
    if plan is None:
        return
    yield _document(planned.manifest)
    for shard in plan.shards:
        if shard.name in planned.taken:
            continue
        yield _shard_document(planned, shard, plan.fields[shard.name])


def patches(planned: PlannedGroup) -> Iterator[str]:
    """Yield a kubectl command for each existing workload. Its merge patch replaces whole lists."""
    plan = planned.answer.derived.plan
    for name, fields in plan.fields.items() if plan is not None else ():
        if (written := planned.written.get(name)) is None:
            continue
        patch = json.dumps({"spec": {"template": {"spec": spec_of(fields)}}}, separators=(",", ":"))
        quoted = patch.replace("'", "'\\''")
        kind = written.source.workload.kind.lower()
        yield f"kubectl patch {kind} {name} -n {planned.answer.group.namespace} --type merge -p '{quoted}'\n"


def spec_of(fields: Fields) -> Json:
    """The plan's fields in a pod's spec."""
    return {
        "topologySpreadConstraints": msgspec.to_builtins(fields.constraints),
        "affinity": msgspec.to_builtins(fields.affinity),
    }


def _shard_document(planned: PlannedGroup, shard: Shard, fields: Fields) -> str:
    """Return a shard's YAML: its own workload, a copy of the first, or an invention, with the plan's fields."""
    group, written = planned.answer.group, planned.written
    own = written.get(shard.name)
    first = own or next(iter(written.values()), None)
    if first is None:
        value, path, note = _invented(group, shard), "spec.template.", _INVENTED
    else:
        value, path, note = first.manifest(group.namespace), first.source.template.path, ""
    if first is not None and own is None:
        value = _renamed(value, first, group, shard)
        note = f"copied from {first.name}: adapt other values that belong to {first.name}"
    spec = spec_of(fields)
    edits = (
        Edit(f"{path}spec.topologySpreadConstraints", spec["topologySpreadConstraints"] or None),
        Edit(f"{path}spec.affinity", spec["affinity"]),
    )
    return _document(applied(value, edits), note)


def _invented(group: Group, shard: Shard) -> Json:
    labels = shard.pod.labels
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": shard.name, "namespace": group.namespace, "labels": labels},
        "spec": {
            "serviceName": group.name,
            "replicas": group.pods_per_shard,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": group.name, "image": group.name}]},
            },
        },
    }


def _renamed(value: Json, first: WrittenWorkload, group: Group, shard: Shard) -> Json:
    """A copy of the first workload with the shard's name, label value and number of pods."""
    path, label = first.source.template.path, group.shard_label
    value = replace_label_value(value, label, first.source.template.pod.labels[label], shard.value)
    edits = [Edit("metadata.name", shard.name), Edit("spec.replicas", group.pods_per_shard)]
    if value_at(value, "spec.serviceName") == first.name:
        edits.append(Edit("spec.serviceName", shard.name))
    annotations = value_at(value, f"{path}metadata.annotations")
    if isinstance(annotations, Mapping):
        # The injected constraints of the first workload are not the shard's.
        own = {key: text for key, text in annotations.items() if key != INJECTED_ANNOTATION}
        edits.append(Edit(f"{path}metadata.annotations", own or None))
    return applied(value, edits)


def _document(value: Mapping[str, object], note: str = "") -> str:
    return f"---\n{f'# {note}' + chr(10) if note else ''}{block(value)}"
