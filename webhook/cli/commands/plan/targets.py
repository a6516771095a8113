"""Which groups a command line asks about, and the workloads that are their shards.

A file has a SpreadGroup, or a ConfigMap as the field writes it, and any number of workloads; those of the cluster come
to them. Without any workload the pods of the group are made up.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from webhook.answers.planned import plan_answer
from webhook.cli.checking.run import CheckRun
from webhook.cli.cluster_source import ClusterSource
from webhook.cli.commands.plan.manifests import PlannedGroup, Value, Written, applicable, group_manifest, object_of
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.terminal import Json, print_faults, say
from webhook.cluster.live import undecodable_line
from webhook.core.api.selectors import compile_selector
from webhook.core.api.spread_group import KIND, RESOURCE, GroupStatus
from webhook.core.api.types import LabelSelector, TypeMeta
from webhook.core.api.well_known import BETA_ZONE, OUR_PREFIX, ZONE
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.coming_pods.next_pod import coming_pod
from webhook.core.context import Context
from webhook.core.groups.derive import stored_of
from webhook.core.groups.fields import missing_apart_terms
from webhook.core.groups.group import Group, Shard, StoredPlan
from webhook.core.groups.group_constraints import replaced_constraints
from webhook.core.groups.reading import GroupError, describes_cluster, read_config_map, read_group, unread_keys
from webhook.core.groups.status.members import GroupMember, duplicate_shards, shards_in_cluster
from webhook.core.groups.zone_pin import split_pin
from webhook.core.index.nodes import NodeView
from webhook.core.scheduler.problem import NOT_EVALUATED
from webhook.core.text import one_line
from webhook.core.what_if.sources import ReplicatedSource, sources_of
from webhook.core.workloads.kinds import DEPLOYMENT, REPLICA_SET, STATEFUL_SET, group_kind
from webhook.manifests.reading.files import read_files
from webhook.snapshot.load import Item

_CONFIG_MAP = "ConfigMap"


class _Wanted(NamedTuple):
    """A group, the SpreadGroup to apply, and what its author should know."""

    group: Group
    manifest: Json
    notes: tuple[str, ...] = ()


class _Read(Struct):
    """Groups, ConfigMaps and workloads of the files and the cluster."""

    groups: list[_Wanted]
    configured: list[Mapping[str, object]]
    workloads: list[Written]


def is_group(item: Item) -> bool:
    """Whether an object of the cluster is a SpreadGroup."""
    return item.of.kind == KIND and (item.of.api_version or "").startswith(OUR_PREFIX)


class Object(Struct, frozen=True):
    """An object as it was read; ``where`` says in which file, or that it is the cluster's."""

    of: TypeMeta
    value: Value
    where: str
    applied: bool


def objects_in(files: Sequence[str]) -> list[Object]:
    """What the files have.

    Errors: CommandError where a file cannot be read.
    """
    seen = CheckRun()
    found = [
        Object(each.type_meta, each.value, each.title, applied=False)
        for each in seen.manifests(read_files(files, unpack=True), duplicates=False)
    ]
    print_faults(seen.faults)
    if any(each.fatal for each in seen.faults):
        raise CommandError("not all of the files could be read", Exit.UNREADABLE)
    return found


def planned_groups(
    files: Sequence[str], objects: Iterable[Object], name: str, known: ClusterSource, within: Context
) -> list[PlannedGroup]:
    """The groups among the files' objects; without files those of the namespace, or the one of that name.

    Errors: CommandError for a group that cannot be read, and where there is none.
    """
    read = _Read([], [], [])
    for item in chain(objects, _of_cluster(known, groups=not files)):
        _take(read, item, within)
    here = [each for each in read.groups if files or each.group.namespace == within.namespace]
    groups = [each for each in here if not name or each.group.name == name]
    groups += [_configured(each, read, within, known.index.nodes.view()) for each in read.configured]
    if not groups and not files and known.server is not None and (why := known.index.lacks(RESOURCE)):
        raise CommandError(f"{known.source}: {why}", Exit.CLUSTER)
    if not groups:
        where = ", ".join(files) or known.source
        raise CommandError(
            f"{where}: no {KIND}{f' {name}' * bool(name)}, and no ConfigMap with cluster-size", Exit.UNREADABLE
        )
    return [_planned(each, read, known, within) for each in groups]


def _of_cluster(known: ClusterSource, *, groups: bool) -> Iterator[Object]:
    """The kept objects of the cluster. Its SpreadGroups count only without files."""
    for item in known.kept:
        if groups or not is_group(item):
            yield Object(item.of, item.raw, known.source, applied=True)


def _take(read: _Read, each: Object, within: Context) -> None:
    """Sort an object in. Workloads of files win over those of the cluster."""
    of = each.of
    try:
        if of.kind == KIND and (of.api_version or "").startswith(OUR_PREFIX):
            value = object_of(each.value)
            group = read_group(value, within.namespace)
            read.groups.append(_Wanted(group, applicable(of, value, group.namespace)))
        elif of.kind == _CONFIG_MAP:
            value = object_of(each.value)
            read.configured += [value] if describes_cluster(value) else []
        else:
            known = {one.source.title for one in read.workloads}
            found = sources_of(each.value, of, within, applied=each.applied)
            read.workloads += [
                Written(source, of, each.value)
                for source in found
                if source.title not in known and _may_be_shard(source)
            ]
    except GroupError as error:
        raise CommandError(_told(each.where, error), Exit.UNREADABLE) from error
    except DecodeError as error:
        if not each.applied:
            raise CommandError(f"{each.where}: {error.message}", Exit.UNREADABLE) from error
        say(f"{each.where}: note: {undecodable_line(of.kind, each.value, error.message)}")


def _may_be_shard(source: ReplicatedSource) -> bool:
    """Whether the controller would count it as a shard: no ReplicaSet of a Deployment."""
    of = source.workload
    kind = group_kind(of.api_version, of.kind)
    return kind in {STATEFUL_SET, DEPLOYMENT} or (kind == REPLICA_SET and of.meta.controller is None)


def _configured(value: Mapping[str, object], read: _Read, within: Context, view: NodeView) -> _Wanted:
    """The group of a ConfigMap. Errors: CommandError."""
    meta = value.get("metadata")
    name = one_line(str(meta.get("name", "")), 63) if isinstance(meta, Mapping) else ""
    try:
        # The field's own design uses the deprecated key. Take the key of more nodes.
        key = max((ZONE, BETA_ZONE), key=lambda each: view.column(each).present.bit_count())
        given = read_config_map(value, within.namespace, view.column(key).values, key)
        group = _named_by(given, [each.source for each in read.workloads])
    except GroupError as error:
        raise CommandError(_told(f"{_CONFIG_MAP} {name}".rstrip(), error), Exit.UNREADABLE) from error
    notes = [f"data[{one_line(name, 63)}] is not read" for name in unread_keys(value)]
    if key == BETA_ZONE:
        notes.append(f"zones are read from the deprecated label {BETA_ZONE}; label the nodes with {ZONE} too")
    return _Wanted(group, group_manifest(group), tuple(notes))


def _told(what: str, error: GroupError) -> str:
    return f"{what} cannot be planned: {'; '.join(error.faults)}"


def _named_by(group: Group, found: Sequence[ReplicatedSource]) -> Group:
    """The group with the labels that all workloads of the files share, and the one that tells them apart."""
    labelled = [
        each.template.template.labels for each in found if each.namespace == group.namespace and not each.applied
    ]
    if len(labelled) < 2:
        return group
    common = {key: value for key, value in labelled[0].items() if all(each.get(key) == value for each in labelled)}
    apart = [key for key in labelled[0] if len({each.get(key) for each in labelled}) == len(labelled)]
    if not common or not apart:
        return group
    return replace(group, selector=LabelSelector(match_labels=common), shard_label=apart[0])


def _planned(wanted: _Wanted, read: _Read, known: ClusterSource, within: Context) -> PlannedGroup:
    group = wanted.group
    there = known.index.namespaces.all_groups().get(group.namespace, ())
    status = next((each.status for each in there if each.meta.name == group.name), None) or GroupStatus()
    before = stored_of(group, status.workloads)
    mine = _mine(group, read.workloads)
    members = [_member(each.source, group, within) for each in mine]
    if twice := duplicate_shards(members):
        raise CommandError(f"group {group.namespace}/{group.name} cannot be planned: {twice}", Exit.UNREADABLE)
    found = shards_in_cluster(group, members, within, before.zones)
    before = before if before.zones else _of_templates(group, found.shards)
    shards = {each.name for each in found.shards if each.exists}
    others = {each.name for each in read.workloads if each.source.namespace == group.namespace} - shards
    taken = tuple(each.name for each in found.expected if each.name in others)
    labels = f"{one_line(compile_selector(group.selector).text, 200)} and {one_line(group.shard_label, 63)}"
    none = f"no workload with the labels {labels} is known: pods are made up, and request nothing"
    freed = shards_in_cluster(group, members, within) if status.workloads else found
    return PlannedGroup(
        answer=plan_answer(found, freed, before),
        stored=bool(status.workloads),
        written={each.name: each for each in mine if each.name in shards},
        manifest=wanted.manifest,
        taken=taken,
        notes=(*wanted.notes, *([] if mine else [none]), *map(no_shard, taken), *_unseen(found.shards)),
    )


def _of_templates(group: Group, shards: Iterable[Shard]) -> StoredPlan:
    """The plan in the templates of all shards, for a group without a status. Empty if they differ."""
    there = [each for each in shards if each.exists]
    constraints = [replaced_constraints(group, each.pod.pod_spec.constraints) for each in there]
    if any(each != constraints[0] for each in constraints) or any(missing_apart_terms(group, each) for each in there):
        return StoredPlan()
    given = constraints[0] if constraints else ()
    return StoredPlan(
        given, {each.value: split_pin(group, each.pod)[1] for each in there}, frozenset(group.never_share)
    )


def _unseen(shards: Iterable[Shard]) -> Iterator[str]:
    """A line for each plugin that decides too and is not evaluated."""
    specs = [each.pod.pod_spec for each in shards]
    concerned = {
        "DynamicResources": any(each.resource_claims for each in specs),
        "PodGroup": any(each.scheduling_group for each in specs),
    }
    return (f"not evaluated: {key}, {NOT_EVALUATED[key]}" for key, is_so in concerned.items() if is_so)


def _mine(group: Group, workloads: Iterable[Written]) -> list[Written]:
    """The workloads whose pods belong to a shard of the group."""
    selector = compile_selector(group.selector)
    return [
        one
        for one in workloads
        for each in [one.source]
        if each.namespace == group.namespace
        and selector.matches(each.template.template.labels)
        and group.shard_label in each.template.template.labels
    ]


def _member(of: ReplicatedSource, group: Group, within: Context) -> GroupMember:
    pod = coming_pod(of, within).pod
    value = of.template.template.labels[group.shard_label]
    return GroupMember(workload=of.workload, shard=value, pod=pod, pods=of.replicas)


def no_shard(name: str) -> str:
    """What is said of a name that a workload has which is no shard."""
    return f"{one_line(name, 63)} is there already, and no shard of the group: -o manifest prints none of that name"
