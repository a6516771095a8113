"""The SpreadGroups in the input: they count as if they were in the cluster, and what is wrong with one is said."""

from collections.abc import Iterable, Iterator

from msgspec import structs

from webhook.core.api.spread_group import API_VERSION, KIND, GroupMeta, SpreadGroup
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.decoders import decoder_of
from webhook.core.groups.reading import GroupError, read_group
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File
from webhook.manifests.reading.manifest import Manifest, read_manifests

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
