"""The workloads and SpreadGroups of one file, for rules that compare workloads without a cluster."""

from collections.abc import Iterable, Iterator

from msgspec import Raw, structs

from webhook.cli.checking.groups import spread_groups
from webhook.cli.cluster_source import put
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import Owner
from webhook.core.index.readers import readable
from webhook.core.policy.policy import Policy
from webhook.core.workloads.custom_kinds import CONSTRAINTS
from webhook.core.workloads.reading import has_template
from webhook.manifests.reading.files import File
from webhook.manifests.reading.manifest import Manifest, read_manifests

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
