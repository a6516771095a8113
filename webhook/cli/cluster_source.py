"""Read a cluster from a snapshot file or an API server. Neither is written to."""

from collections.abc import Callable
from datetime import UTC, datetime

from msgspec import Raw, Struct, structs

from webhook.cli.exit_codes import CommandError, Exit, no_namespace
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import ClusterSelection, open_cluster, reading
from webhook.cli.output.long_runs import Progress
from webhook.cli.output.terminal import print_message
from webhook.cluster.connection import ApiServer
from webhook.cluster.live import left_out_line, missing_kind_line, read_kinds, undecodable_line
from webhook.cluster.resources import watched
from webhook.core.api.types import TypeMeta
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.context import Context
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import ApiObject
from webhook.core.index.readers import decode_object
from webhook.core.policy.policy import Policy
from webhook.snapshot.load import Item, SnapshotError
from webhook.snapshot.open_file import load_snapshot


class ClusterSource(Struct, frozen=True, kw_only=True):
    """A cluster read into memory, from an API server or a snapshot.

    Attributes:
        index: The objects of the cluster.
        version: The Kubernetes release of the cluster. None if unknown or unsupported.
        source: The name of the cluster in messages: ``cluster prod`` or ``snapshot prod.jsonl``.
        missing: A line for each unreadable kind, with the consequence.
        server: The API server. None for a snapshot.
        namespace: The namespace of the kubeconfig's context. Empty for a snapshot.
        kept: The raw JSON objects selected by the caller (``keep`` of `read_cluster`).
    """

    index: ClusterIndex
    version: KubernetesVersion | None
    source: str
    missing: tuple[str, ...] = ()
    server: ApiServer | None = None
    namespace: str = ""
    kept: tuple[Item, ...] = ()


def read_cluster(
    selection: ClusterSelection,
    policy: Policy,
    progress: Callable[[int], None],
    *,
    as_version: KubernetesVersion | None = None,
    keep: Callable[[Item], bool] = lambda _item: False,
) -> ClusterSource | None:
    """Read the selected cluster. None without a selection.

    Prints a note for each unreadable kind or object.

    Args:
        selection: The options of the command line.
        policy: Its ``workloads`` name custom kinds to read as well.
        progress: Called with the number of objects so far.
        as_version: Release whose rules compute pod resources. None for the cluster's own release.
        keep: Selects objects to keep as raw JSON. Objects of a live cluster have line 0.

    Raises:
        CommandError: With exit code 4 for an unreadable cluster, 3 for an unreadable snapshot.
    """
    if selection.snapshot is not None:
        return read_snapshot(selection.snapshot, policy, as_version, keep)
    return _from_cluster(selection, policy, progress, as_version, keep) if selection.live else None


def read_snapshot(
    file: str, policy: Policy, as_version: KubernetesVersion | None, keep: Callable[[Item], bool] = lambda _item: False
) -> ClusterSource:
    """Read the cluster of a snapshot file, as `read_cluster` does. Prints a line for each skipped object.

    Raises:
        CommandError: With exit code 3 for an unreadable snapshot.
    """
    try:
        snapshot = load_snapshot(file, policy.workloads, as_version=as_version, keep=keep)
    except SnapshotError as error:
        raise CommandError(str(error), Exit.UNREADABLE) from error
    for line in snapshot.left_out:
        print_message(line)
    source = f"snapshot {file}"
    return ClusterSource(index=snapshot.index, version=snapshot.version, source=source, kept=snapshot.kept)


def _from_cluster(
    selection: ClusterSelection,
    policy: Policy,
    progress: Callable[[int], None],
    as_version: KubernetesVersion | None,
    wanted: Callable[[Item], bool],
) -> ClusterSource:
    live, unreadable = open_cluster(selection), list[str]()
    index, missing, kept = ClusterIndex(as_version or live.version or RECORDED, scoring=True), list[str](), list[Item]()
    index.taken_at = datetime.now(UTC).isoformat()

    def keep(raw: Raw, of: TypeMeta) -> tuple[TypeMeta, ApiObject] | None:
        item = Item(line=0, of=of, raw=raw)
        if wanted(item):
            kept.append(Item(line=0, of=of, raw=raw.copy()))  # a copy does not keep the whole response alive
        try:
            value = decode_object(raw, of, policy.workloads)
        except (ValueError, RecursionError) as error:  # absent, as in the feed
            unreadable.append(undecodable_line(of.kind, raw, str(error)))
            return None
        return None if value is None else (of, value)

    with reading():
        for listing in read_kinds(live, watched(policy), keep, progress):
            for of, value in filter(None, listing.values):
                if why := index.apply("ADDED", value):
                    unreadable.append(left_out_line(of.kind, value, why))
            if listing.refused:
                index.mark_missing(listing.resource, listing.refused)
                missing.append(missing_kind_line(listing))
    for line in (*missing, *unreadable):
        print_message(f"{live.source}: note: {line}")
    return ClusterSource(
        index=index,
        version=live.version,
        source=live.source,
        missing=tuple(missing),
        server=live.server,
        namespace=live.namespace,
        kept=tuple(kept),
    )


def add_to_index(index: ClusterIndex, value: ApiObject, kind: str, where: str = "the input") -> None:
    """Add an object of the input to the index. Prints a note if the index skips it."""
    if why := index.apply("ADDED", value):
        print_message(f"{where}: note: {left_out_line(kind, value, why)}")


def cluster_with_pods(
    selection: ClusterSelection, frame: Frame, keep: Callable[[Item], bool], *, lost: str
) -> tuple[ClusterSource, Context]:
    """Read the selected cluster with a progress counter, and return it with its context.

    ``keep`` is as in `read_cluster`. ``lost`` ends the error about missing nodes or pods: ``explain needs them``.

    Raises:
        CommandError: As in `read_cluster` and `frame_with_cluster`, or without nodes or pods.
    """
    progress = Progress()
    known = read_cluster(selection, frame.policy, progress, as_version=frame.asked_version, keep=keep)
    progress.close()
    if known is None or (missing := known.index.lacks("nodes", "pods")):
        source, why = (known.source, missing) if known else ("evenspread", "no cluster selected")
        code = Exit.CLUSTER if known is None or known.server is not None else Exit.UNREADABLE
        raise CommandError(f"{source}: {why}: {lost}", code)
    frame = frame_with_cluster(known, frame)
    return known, frame.context(frame.namespace)


def with_selected_cluster(frame: Frame, selection: ClusterSelection, progress: Progress) -> Frame:
    """Read the selected cluster into the frame. Without a selection, the frame stays as it is.

    Raises CommandError as `read_cluster` and `frame_with_cluster`.
    """
    known = read_cluster(selection, frame.policy, progress, as_version=frame.asked_version)
    return frame if known is None else frame_with_cluster(known, frame)


def frame_with_cluster(known: ClusterSource, frame: Frame) -> Frame:
    """Add the cluster's index, version and namespace to the frame.

    Raises CommandError with exit code 2 if the cluster lacks the namespace.
    """
    namespace, names = frame.namespace, known.index.known_namespaces()
    if namespace and names and namespace not in names and not known.index.lacks("namespaces"):
        raise no_namespace(known.source, namespace, names)
    namespace = namespace or known.namespace
    return structs.replace(frame, index=known.index, cluster_version=known.version, namespace=namespace)
