"""Read the SpreadGroups of a command line, and the workloads of their shards.

The files contain workloads, and a SpreadGroup or a ConfigMap with caps. The cluster's workloads are added. If no
workload has the labels of a group, the plan uses invented pods without requests.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from webhook.answers.planned import plan_answer
from webhook.cli.checking.run import CheckRun
from webhook.cli.cluster_source import ClusterSource
from webhook.cli.commands.plan.manifests import (
    PlannedGroup,
    SourceObject,
    WrittenWorkload,
    applicable,
    group_manifest,
    object_of,
)
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.output.terminal import Json, print_faults, print_message
from webhook.cluster.live import undecodable_line
from webhook.core.api.selectors import compile_selector
from webhook.core.api.spread_group import KIND, RESOURCE, IndexedGroupStatus
from webhook.core.api.types import LabelSelector, TypeMeta
from webhook.core.api.well_known import BETA_ZONE, OUR_PREFIX, ZONE
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.context import Context
from webhook.core.groups.derive import stored_of
from webhook.core.groups.fields import missing_apart_terms
from webhook.core.groups.group import Group, Shard, StoredPlan
from webhook.core.groups.group_constraints import replaced_constraints
from webhook.core.groups.reading import GroupError, describes_cluster, read_config_map, read_group, unread_keys
from webhook.core.groups.status.members import GroupMember, duplicate_shards, shards_in_cluster
from webhook.core.groups.zone_pin import split_pin
from webhook.core.index.nodes import NodeView
from webhook.core.pods_to_create.next_pod import next_pod_of
from webhook.core.scheduler.not_evaluated import NOT_EVALUATED
from webhook.core.text import one_line
from webhook.core.what_if.sources import ReplicatedSource, sources_of
from webhook.core.workloads.kinds import DEPLOYMENT, REPLICA_SET, STATEFUL_SET, group_kind
from webhook.manifests.reading.files import read_files

_CONFIG_MAP = "ConfigMap"
_MAX_NAME = 63  # characters, as in Kubernetes


class _Wanted(NamedTuple):
    """A group, the SpreadGroup to apply, and notes for its author."""

    group: Group
    manifest: Json
    notes: tuple[str, ...] = ()


class _Read(Struct, frozen=True):
    """Groups, ConfigMaps and workloads of the files and the cluster."""

    groups: list[_Wanted]
    configured: list[Mapping[str, object]]
    workloads: list[WrittenWorkload]


def is_group(of: TypeMeta) -> bool:
    """Whether an object of this type is a SpreadGroup."""
    return of.kind == KIND and (of.api_version or "").startswith(OUR_PREFIX)


def objects_in(files: Sequence[str]) -> list[SourceObject]:
    """Read the objects of the files. Raises CommandError if a file cannot be read."""
    run = CheckRun()
    objects = [
        SourceObject(manifest.type_meta, manifest.value, manifest.title, applied=False)
        for manifest in run.manifests(read_files(files, unpack=True), duplicates=False)
    ]
    print_faults(run.faults)
    if any(fault.fatal for fault in run.faults):
        raise CommandError("some files could not be read, see the errors above", Exit.UNREADABLE)
    return objects


def planned_groups(
    files: Sequence[str], objects: Iterable[SourceObject], name: str, known: ClusterSource, context: Context
) -> list[PlannedGroup]:
    """Plan the groups in the objects of the files. Without files, plan all groups of the namespace.

    With a ``name``, plan only the group of this name.

    Raises:
        CommandError: A group cannot be read, or there is none.
    """
    read = _Read([], [], [])
    # Files replace the cluster's SpreadGroups.
    kept = (item for item in known.kept if not (files and is_group(item.of)))
    stored = (SourceObject(item.of, item.raw, known.source, applied=True) for item in kept)
    for source in chain(objects, stored):
        _sort_in(read, source, context)
    here = [wanted for wanted in read.groups if files or wanted.group.namespace == context.namespace]
    groups = [wanted for wanted in here if not name or wanted.group.name == name]
    groups += [_configured(config_map, read, context, known.index.nodes.view()) for config_map in read.configured]
    if not groups and not files and known.server is not None and (why := known.index.lacks(RESOURCE)):
        raise CommandError(f"{known.source}: {why}", Exit.CLUSTER)
    if not groups:
        where = ", ".join(files) or known.source
        raise CommandError(
            f"{where}: no {KIND}{f' {name}' * bool(name)} and no ConfigMap with the key cluster-size", Exit.UNREADABLE
        )
    return [_planned(wanted, read, known, context) for wanted in groups]


def _sort_in(read: _Read, item: SourceObject, context: Context) -> None:
    """Add an object to ``read``. Files override the cluster. Raises CommandError for a faulty group or file."""
    of = item.of
    try:
        if is_group(of):
            value = object_of(item.value)
            group = read_group(value, context.namespace)
            read.groups.append(_Wanted(group, applicable(of, value, group.namespace)))
        elif of.kind == _CONFIG_MAP:
            value = object_of(item.value)
            read.configured.extend([value] if describes_cluster(value) else ())
        else:
            titles = {workload.source.title for workload in read.workloads}
            read.workloads.extend(
                WrittenWorkload(source, of, item.value)
                for source in sources_of(item.value, of, context, applied=item.applied)
                if source.title not in titles and _may_be_shard(source)
            )
    except GroupError as error:
        raise CommandError(_faults_text(item.where, error), Exit.UNREADABLE) from error
    except DecodeError as error:
        if not item.applied:
            raise CommandError(f"{item.where}: {error.message}", Exit.UNREADABLE) from error
        print_message(f"{item.where}: note: {undecodable_line(of.kind, item.value, error.message)}")


def _may_be_shard(source: ReplicatedSource) -> bool:
    """Whether the controller counts this kind as a shard. ReplicaSets of Deployments do not count."""
    workload = source.workload
    kind = group_kind(workload.api_version, workload.kind)
    return kind in {STATEFUL_SET, DEPLOYMENT} or (kind == REPLICA_SET and workload.meta.controller is None)


def _configured(value: Mapping[str, object], read: _Read, context: Context, view: NodeView) -> _Wanted:
    """The group of a ConfigMap. Raises CommandError if the ConfigMap is faulty."""
    meta = value.get("metadata")
    name = one_line(str(meta.get("name", "")), _MAX_NAME) if isinstance(meta, Mapping) else ""
    try:
        # Such ConfigMaps are older than the present label. Use the label of more nodes.
        key = max((ZONE, BETA_ZONE), key=lambda label: view.column(label).present.bit_count())
        group = read_config_map(value, context.namespace, view.column(key).values, key)
        group = _with_labels(group, [workload.source for workload in read.workloads])
    except GroupError as error:
        raise CommandError(_faults_text(f"{_CONFIG_MAP} {name}".rstrip(), error), Exit.UNREADABLE) from error
    notes = [f"data[{one_line(name, _MAX_NAME)}] is ignored" for name in unread_keys(value)]
    if key == BETA_ZONE:
        notes.append(f"zones come from the deprecated label {BETA_ZONE}; add the label {ZONE} to the nodes")
    return _Wanted(group, group_manifest(group), tuple(notes))


def _faults_text(what: str, error: GroupError) -> str:
    return f"{what} cannot be planned: {'; '.join(error.faults)}"


def _with_labels(group: Group, workloads: Sequence[ReplicatedSource]) -> Group:
    """Return the group with the pods' common labels as selector, and a distinct label as shard label, if any."""
    labels = [
        source.template.pod.labels for source in workloads if source.namespace == group.namespace and not source.applied
    ]
    if len(labels) < 2:
        return group
    common = {key: value for key, value in labels[0].items() if all(other.get(key) == value for other in labels)}
    distinct = [key for key in labels[0] if len({other.get(key) for other in labels}) == len(labels)]
    if not common or not distinct:
        return group
    return replace(group, selector=LabelSelector(match_labels=common), shard_label=distinct[0])


def _planned(wanted: _Wanted, read: _Read, known: ClusterSource, context: Context) -> PlannedGroup:
    group = wanted.group
    groups = known.index.namespaces.all_groups().get(group.namespace, ())
    status = next((other.status for other in groups if other.meta.name == group.name), None) or IndexedGroupStatus()
    before = stored_of(group, status.workloads)
    workloads = _group_workloads(group, read.workloads)
    members = [_member(workload.source, group, context) for workload in workloads]
    if duplicates := duplicate_shards(members):
        raise CommandError(f"group {group.namespace}/{group.name} cannot be planned: {duplicates}", Exit.UNREADABLE)
    plan_input = shards_in_cluster(group, members, context, before.zones)
    before = before if before.zones else _template_fields(group, plan_input.shards)
    shards = {shard.name for shard in plan_input.shards if shard.exists}
    others = {workload.name for workload in read.workloads if workload.source.namespace == group.namespace} - shards
    taken = tuple(shard.name for shard in plan_input.expected if shard.name in others)
    labels = f"{one_line(compile_selector(group.selector).text, 200)} and {one_line(group.shard_label, _MAX_NAME)}"
    invented = f"no workload has the labels {labels}, so the plan uses invented pods without requests"
    freed = shards_in_cluster(group, members, context) if status.workloads else plan_input
    return PlannedGroup(
        answer=plan_answer(plan_input, freed, before),
        stored=bool(status.workloads),
        written={workload.name: workload for workload in workloads if workload.name in shards},
        manifest=wanted.manifest,
        taken=taken,
        notes=(
            *wanted.notes,
            *([] if workloads else [invented]),
            *map(foreign_name, taken),
            *_unevaluated(plan_input.shards),
        ),
    )


def _template_fields(group: Group, shards: Iterable[Shard]) -> StoredPlan:
    """Return the plan found in the pod templates of all shards. Empty if the templates differ."""
    existing = [shard for shard in shards if shard.exists]
    constraints = [replaced_constraints(group, shard.pod.pod_spec.constraints) for shard in existing]
    if any(other != constraints[0] for other in constraints) or any(
        missing_apart_terms(group, shard) for shard in existing
    ):
        return StoredPlan()
    common = constraints[0] if constraints else ()
    zones = {shard.value: split_pin(group, shard.pod)[1] for shard in existing}
    return StoredPlan(common, zones, frozenset(group.never_share))


def _unevaluated(shards: Iterable[Shard]) -> Iterator[str]:
    """A line for each plugin that affects the pods but is not evaluated."""
    specs = [shard.pod.pod_spec for shard in shards]
    used = {
        "DynamicResources": any(spec.resource_claims for spec in specs),
        "PodGroup": any(spec.scheduling_group for spec in specs),
    }
    return (f"not evaluated: {key}, {NOT_EVALUATED[key]}" for key, is_used in used.items() if is_used)


def _group_workloads(group: Group, workloads: Iterable[WrittenWorkload]) -> list[WrittenWorkload]:
    """The workloads whose pods match the group's selector and have its shard label."""
    selector = compile_selector(group.selector)
    return [
        workload
        for workload in workloads
        for source in [workload.source]
        if source.namespace == group.namespace
        and selector.matches(source.template.pod.labels)
        and group.shard_label in source.template.pod.labels
    ]


def _member(source: ReplicatedSource, group: Group, context: Context) -> GroupMember:
    pod = next_pod_of(source, context).pod
    value = source.template.pod.labels[group.shard_label]
    return GroupMember(workload=source.workload, shard=value, pod=pod, pods=source.replicas)


def foreign_name(name: str) -> str:
    """Return the error message: a workload that is not in the group already has a shard's name."""
    name = one_line(name, _MAX_NAME)
    return f"workload {name} exists but is not a shard of the group, so -o manifest skips the shard of this name"
