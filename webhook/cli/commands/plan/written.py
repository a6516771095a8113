"""Objects of a group as somebody would write them: without what the API server keeps in them."""

from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct

from webhook.answers.planned import PlanAnswer
from webhook.cli.terminal import Json
from webhook.core.api.spread_group import API_VERSION, KIND
from webhook.core.api.types import TypeMeta
from webhook.core.api.well_known import LAST_APPLIED_ANNOTATION
from webhook.core.groups.group import Group
from webhook.core.what_if.workloads import ReplicatedSource
from webhook.core.workloads.reading import parsed

Value = bytes | Raw | Mapping[str, object]
_META = ("labels", "annotations")


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
    decoded = parsed(value)
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
