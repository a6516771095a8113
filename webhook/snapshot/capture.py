"""Capture a live cluster as a snapshot: watched objects and workloads, reduced to the fields evenspread reads."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Raw, Struct, structs

from webhook.cluster.errors import ClusterError, RefusedError
from webhook.cluster.live import LiveCluster, missing_kind_line, read_kinds, unreachable_error
from webhook.cluster.resources import Resource, watched, with_workloads
from webhook.core.api.times import api_time
from webhook.core.api.types import TypeMeta
from webhook.core.policy.policy import Policy
from webhook.snapshot.load import Header, SnapshotError, header_of_list, read_header, read_items
from webhook.snapshot.open_file import open_cluster_file
from webhook.snapshot.projection import is_read, project


class CapturedSnapshot(Struct, frozen=True, kw_only=True):
    """A snapshot in memory.

    Attributes:
        source: The cluster's name in messages.
        header: The first line of the file.
        objects: The objects as JSON, each with apiVersion and kind.
        kinds: The number of objects by kind.
        missing: A line for each unreadable kind, with the consequence.
    """

    source: str
    header: Header
    objects: tuple[bytes, ...]
    kinds: Mapping[str, int]
    missing: tuple[str, ...]

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of the snapshot file."""
        yield msgspec.json.encode({"kind": Header.KIND, **msgspec.to_builtins(self.header)}) + b"\n"
        for text in self.objects:
            yield text + b"\n"


def capture(
    live: LiveCluster, policy: Policy, progress: Callable[[int], None], more: Sequence[Resource] = ()
) -> CapturedSnapshot:
    """Read the cluster's objects into a snapshot, also objects of the policy's workload kinds.

    Args:
        live: The cluster.
        policy: Names further workload kinds.
        progress: Called with the number of objects read so far.
        more: Resources to read beside those of the index and the workloads.

    Raises:
        UnreadableClusterError: The cluster is unreachable, or `read_kinds` fails.
    """
    missing, refused = list[str](), dict[str, str]()
    try:
        resources = with_workloads(live.server, policy)
    except RefusedError as refusal:
        resources = watched(policy)
        missing.append(f"custom resources: {refusal}: workloads of other kinds are not checked")
    except ClusterError as error:
        raise unreachable_error(live.source, error) from error
    resources += (*more,)

    def keep(raw: Raw, type_meta: TypeMeta) -> bytes:
        return project(raw, type_meta, policy.workloads)

    objects, kinds = list[bytes](), Counter[str]()
    for resource, listing in zip(resources, read_kinds(live, resources, keep, progress), strict=True):
        objects += listing.values
        kinds[resource.kind] += len(listing.values)
        if listing.refused:
            refused[listing.resource] = listing.refused
            missing.append(missing_kind_line(listing))
    asked = tuple(resource.name for resource in resources if resource.name)
    now = api_time(time.time())
    header = Header(kubernetes_version=live.release or None, taken_at=now, missing=refused, resources=asked)
    return CapturedSnapshot(
        source=live.source, header=header, objects=tuple(objects), kinds=+kinds, missing=tuple(missing)
    )


def without_names(snapshot: CapturedSnapshot) -> CapturedSnapshot:
    """Return the snapshot with all names replaced."""
    from webhook.snapshot.anonymise import Names  # noqa: PLC0415 most snapshots keep their names

    objects = [msgspec.json.decode(text) for text in snapshot.objects]
    names = Names(objects)
    replaced = tuple(msgspec.json.encode(names.replaced(value)) for value in objects)
    return structs.replace(snapshot, header=structs.replace(snapshot.header, anonymised=True), objects=replaced)


def take_file(file: str, policy: Policy) -> CapturedSnapshot:
    """Return the captured objects of a snapshot file, or of kubectl's output.

    Raises:
        SnapshotError: The file cannot be read.
    """
    header, objects, kinds = None, list[bytes](), Counter[str]()
    try:
        with open_cluster_file(file) as stream:
            for item in read_items(stream, file):
                if item.of.kind == Header.KIND:
                    header = read_header(bytes(item.raw))
                elif is_read(item.of, policy.workloads):
                    objects.append(project(item.raw, item.of, policy.workloads))
                    kinds[item.of.kind or ""] += 1
    except OSError as error:
        raise SnapshotError(file, error.strerror or "cannot be read") from error
    except ValueError as error:
        raise SnapshotError(file, str(error)) from error
    header = header or header_of_list(kinds)
    missing = tuple(f"{resource}: {why}" for resource, why in header.missing.items())
    return CapturedSnapshot(source=file, header=header, objects=tuple(objects), kinds=kinds, missing=missing)
