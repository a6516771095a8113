"""The objects of a group: as somebody wrote them, and what there is to apply or to patch with the plan's fields."""

import json
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Raw, Struct

from webhook.answers.planned import PlanAnswer
from webhook.cli.terminal import Json
from webhook.core.api.spread_group import API_VERSION, KIND
from webhook.core.api.types import TypeMeta
from webhook.core.api.well_known import INJECTED_ANNOTATION, LAST_APPLIED_ANNOTATION
from webhook.core.groups.group import Fields, Group, Shard
from webhook.core.groups.label_values import replace_label_value
from webhook.core.json_edits import Edit, applied, value_at
from webhook.core.what_if.sources import ReplicatedSource
from webhook.core.workloads.reading import parse_object
from webhook.core.yaml_text import block

Value = bytes | Raw | Mapping[str, object]
_META = ("labels", "annotations")
_MADE_UP = "made up: give it your containers, volumes and Service"


class Written(Struct, frozen=True):
    """A workload, and the object that it was read from."""

    source: ReplicatedSource
    of: TypeMeta
    value: Value

    @property
    def name(self) -> str:
        """The workload's."""
        return self.source.workload.meta.name

    def manifest(self, namespace: str) -> Json:
        """The object to apply."""
        return applicable(self.of, object_of(self.value), namespace)


class PlannedGroup(Struct, frozen=True, kw_only=True):
    """A group with its plan, and the objects of it that somebody has written.

    Attributes:
        answer: The plan.
        stored: Whether the cluster has stored a plan for it.
        written: The existing workloads by name.
        manifest: The SpreadGroup to apply.
        taken: Names of expected shards that other workloads of the namespace have.
        notes: What the group's author should know.
    """

    answer: PlanAnswer
    stored: bool
    written: Mapping[str, Written]
    manifest: Json
    taken: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def object_of(value: Value) -> Mapping[str, object]:
    """The object; empty for anything else. Errors: DecodeError."""
    decoded = parse_object(value)
    return decoded if isinstance(decoded, Mapping) else {}


def applicable(of: TypeMeta, value: Mapping[str, object], namespace: str) -> Json:
    """The object as one applies it in this namespace."""
    meta = value.get("metadata")
    given = meta if isinstance(meta, Mapping) else {}
    kept = {key: given[key] for key in _META if given.get(key)}
    if isinstance(notes := kept.get("annotations"), Mapping) and LAST_APPLIED_ANNOTATION in notes:
        kept["annotations"] = {key: each for key, each in notes.items() if key != LAST_APPLIED_ANNOTATION}
    named = {"name": given.get("name"), "namespace": namespace}
    return {"apiVersion": of.api_version, "kind": of.kind, "metadata": named | kept, "spec": value.get("spec")}


def group_manifest(group: Group) -> Json:
    """The SpreadGroup that says what a ConfigMap of the field does."""
    (apart,) = group.never_share
    required = {"requiredDomains": {"topologyKey": group.domains_key, "values": group.domains}}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": group.name, "namespace": group.namespace},
        "spec": {
            "selector": msgspec.to_builtins(group.selector),
            "shard": {"label": group.shard_label, "neverShare": apart},
            "expected": {"shards": group.shards, "podsPerShard": group.pods_per_shard},
            **({"planFor": {"shards": group.plan_for}} if group.plan_for > group.shards else {}),
            **(required if group.domains is not None else {}),
            "caps": [{"topologyKey": each.topology_key, "atMost": int(each.amount)} for each in group.caps],
        },
    }


def manifests(of: PlannedGroup) -> Iterator[str]:
    """A YAML document for the SpreadGroup, and one for each shard; none without a plan, nor over another workload."""
    plan = of.answer.derived.plan
    if plan is None:
        return
    yield _document(of.manifest)
    for shard in plan.shards:
        if shard.name in of.taken:
            continue
        yield from _shard(of, shard, plan.fields[shard.name])


def patches(of: PlannedGroup) -> Iterator[str]:
    """A kubectl command for each existing workload: merge patches, which replace whole lists."""
    plan = of.answer.derived.plan
    for name, fields in plan.fields.items() if plan is not None else ():
        if (written := of.written.get(name)) is None:
            continue
        patch = json.dumps({"spec": {"template": {"spec": spec_of(fields)}}}, separators=(",", ":"))
        quoted = patch.replace("'", "'\\''")
        kind = written.source.workload.kind.lower()
        yield f"kubectl patch {kind} {name} -n {of.answer.group.namespace} --type merge -p '{quoted}'\n"


def spec_of(fields: Fields) -> Json:
    """The plan's part of a pod's spec."""
    return {
        "topologySpreadConstraints": msgspec.to_builtins(fields.constraints),
        "affinity": msgspec.to_builtins(fields.affinity),
    }


def _shard(of: PlannedGroup, shard: Shard, fields: Fields) -> Iterator[str]:
    """The workload of a shard; one that nobody has written is as the first that somebody has, else made up."""
    group, written = of.answer.group, of.written
    own = written.get(shard.name)
    first = own or next(iter(written.values()), None)
    if first is None:
        value, path, note = _made_up(group, shard), "spec.template.", _MADE_UP
    else:
        value, path, note = first.manifest(group.namespace), first.source.template.path, ""
    if first is not None and own is None:
        value = _renamed(value, first, group, shard)
        note = f"as {first.name}; see whether more in it is of that shard alone"
    given = spec_of(fields)
    edits = (
        Edit(f"{path}spec.topologySpreadConstraints", given["topologySpreadConstraints"] or None),
        Edit(f"{path}spec.affinity", given["affinity"]),
    )
    yield _document(applied(value, edits), note)


def _made_up(group: Group, shard: Shard) -> Json:
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


def _renamed(value: Json, of: Written, group: Group, shard: Shard) -> Json:
    """The workload of another shard: with its name, its value of the label, and the pods that a shard is to have."""
    path, label = of.source.template.path, group.shard_label
    value = replace_label_value(value, label, of.source.template.template.labels[label], shard.value)
    edits = [Edit("metadata.name", shard.name), Edit("spec.replicas", group.pods_per_shard)]
    if value_at(value, "spec.serviceName") == of.name:
        edits.append(Edit("spec.serviceName", shard.name))
    notes = value_at(value, f"{path}metadata.annotations")
    if isinstance(notes, Mapping):
        own = {key: each for key, each in notes.items() if key != INJECTED_ANNOTATION}  # what the first was given
        edits.append(Edit(f"{path}metadata.annotations", own or None))
    return applied(value, edits)


def _document(value: Mapping[str, object], note: str = "") -> str:
    return f"---\n{f'# {note}' + chr(10) if note else ''}{block(value)}"
