"""Which groups a command line asks about, and the workloads that are their shards.

A file has a SpreadGroup, or a ConfigMap as the field writes it, and any number of workloads; those of the cluster come
to them. Without any workload the pods of the group are made up.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from webhook.cli.checking.frame import Frame
from webhook.cli.checking.run import CheckRun
from webhook.cli.cluster_source import ClusterSource
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.simulating.pods import Maker, makers, next_of
from webhook.cli.terminal import print_faults
from webhook.core.api.selectors import compile_selector
from webhook.core.api.spread_group import KIND, RESOURCE
from webhook.core.api.types import LabelSelector, TypeMeta
from webhook.core.api.well_known import ZONE
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.groups.group import Group, Shard
from webhook.core.groups.reading import GroupError, is_cluster, read_config_map, read_group
from webhook.core.groups.standing.members import Member, gathered, of_one_shard
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.manifests.reading.files import read_files
from webhook.snapshot.load import Item

_CONFIG_MAP = "ConfigMap"


class Asked(Struct, frozen=True, kw_only=True):
    """A group, a shard for each that is planned for, and the cluster without their pods.

    Shape: ``running`` are the group's pods that have a node. ``kinds`` are those of the shards' workloads, by name.
    """

    group: Group
    shards: tuple[Shard, ...]
    index: ReadOnlyIndex
    running: int
    kinds: Mapping[str, str]
    assumed: str = ""


class _Read(Struct):
    """What the files and the cluster have of it."""

    groups: list[Group]
    configured: list[Mapping[str, object]]
    makers: list[Maker]


def is_group(item: Item) -> bool:
    """Whether an object of the cluster is a SpreadGroup."""
    return item.of.kind == KIND and (item.of.api_version or "").startswith("evenspread.io/")


def asked(files: Sequence[str], name: str, known: ClusterSource, frame: Frame) -> list[Asked]:
    """The groups of the files; without files those of the namespace, or the one of that name.

    Errors: CommandError for a group that cannot be read, and where there is none.
    """
    read = _Read([], [], [])
    for item in _objects(files, known):
        _take(read, item, frame)
    here = [each for each in read.groups if files or each.namespace == frame.namespace]
    groups = [each for each in here if not name or each.name == name]
    zones = known.index.view().column(ZONE).values
    for each in read.configured:
        try:
            groups.append(_named_by(read_config_map(each, frame.namespace, zones), read.makers))
        except GroupError as error:
            raise CommandError(_told(_CONFIG_MAP, error), Exit.UNREADABLE) from error
    if not groups and not files and known.server is not None and (why := known.index.lacks(RESOURCE)):
        raise CommandError(f"{known.source}: {why}", Exit.CLUSTER)
    if not groups:
        where = ", ".join(files) or known.source
        raise CommandError(
            f"{where}: no {KIND}{f' {name}' * bool(name)}, and no ConfigMap with cluster-size", Exit.UNREADABLE
        )
    return [_asked(each, read.makers, known, frame) for each in groups]


class _Object(Struct, frozen=True):
    """An object as it was read; ``where`` says in which file, or that it is the cluster's."""

    of: TypeMeta
    value: bytes | Raw | Mapping[str, object]
    where: str
    applied: bool


def _objects(files: Sequence[str], known: ClusterSource) -> Iterator[_Object]:
    """What is in the files; after it, what was kept of the cluster.

    Errors: CommandError where a file cannot be read.
    """
    seen = CheckRun()
    for manifest in seen.manifests([*read_files(files, unpack=True)], duplicates=False):
        of = TypeMeta(api_version=manifest.api_version, kind=manifest.kind)
        yield _Object(of, manifest.value, manifest.title, applied=False)
    print_faults(seen.faults)
    if any(each.fatal for each in seen.faults):
        raise CommandError("not all of the files could be read", Exit.UNREADABLE)
    for item in known.kept:
        if not is_group(item) or not files:
            yield _Object(item.of, item.raw, known.source, applied=True)


def _take(read: _Read, each: _Object, frame: Frame) -> None:
    """Put an object where it belongs; workloads of the files go before those of the cluster."""
    of = each.of
    try:
        if of.kind == KIND and (of.api_version or "").startswith("evenspread.io/"):
            read.groups.append(read_group(_plain(each.value), frame.namespace))
        elif of.kind == _CONFIG_MAP:
            value = _plain(each.value)
            read.configured += [value] if is_cluster(value) else []
        else:
            known = {maker.title for maker in read.makers}
            found = makers(each.value, of, frame, applied=each.applied)
            read.makers += [maker for maker in found if maker.title not in known and _is_whole(maker)]
    except GroupError as error:
        raise CommandError(_told(each.where, error), Exit.UNREADABLE) from error
    except DecodeError as error:
        raise CommandError(f"{each.where}: {error.message}", Exit.UNREADABLE) from error


def _is_whole(maker: Maker) -> bool:
    """Whether it is a workload of its own: no pod, and nothing that a controller made of another."""
    return not maker.workload.is_pod and maker.workload.meta.controller is None


def _plain(value: bytes | Raw | Mapping[str, object]) -> Mapping[str, object]:
    decoded = value if isinstance(value, Mapping) else msgspec.json.decode(value)
    return decoded if isinstance(decoded, Mapping) else {}


def _told(what: str, error: GroupError) -> str:
    return f"{what} cannot be planned: {'; '.join(error.faults)}"


def _named_by(group: Group, found: Sequence[Maker]) -> Group:
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


def _asked(group: Group, found: Sequence[Maker], known: ClusterSource, frame: Frame) -> Asked:
    selector = compile_selector(group.selector)
    mine = [
        each
        for each in found
        if each.namespace == group.namespace
        and selector.matches(each.template.template.labels)
        and group.shard_label in each.template.template.labels
    ]
    members = []
    for each in mine:
        pod, value = next_of(each, frame, known.index).problem.pod, each.template.template.labels[group.shard_label]
        members.append(Member(workload=each.workload, shard=value, pod=pod, pods=each.replicas))
    if twice := of_one_shard(members):
        raise CommandError(f"group {group.namespace}/{group.name} cannot be planned: {twice}", Exit.UNREADABLE)
    of = gathered(group, members, known.index)
    kinds = {each.workload.meta.name: each.workload.kind for each in mine}
    assumed = "" if mine else "no workload of the group is known: its pods are made up, and request nothing"
    return Asked(
        group=of.group,
        shards=of.shards,
        index=of.index,
        running=of.running,
        kinds=kinds,
        assumed=assumed,
    )
