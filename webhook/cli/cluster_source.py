"""The cluster that a command reads: a snapshot file, or lists of a live one; neither is ever written to."""

from collections.abc import Callable
from datetime import UTC, datetime

from msgspec import Raw, Struct, structs

from webhook.cli.exit_codes import CommandError, Exit, no_namespace
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import Given, open_cluster, reading
from webhook.cli.terminal import Progress, say
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
    """A cluster as it was read.

    Shape: ``source`` is what people call it: ``cluster prod``, ``snapshot prod.jsonl``. ``missing`` has a line for each
    kind that could not be read, with what is lost by it. ``namespace`` is where manifests go that name none, empty
    where nobody knows. ``version`` is None where the cluster does not say, or runs a release that is not supported.
    ``kept`` are the objects that were asked for, as they were read.
    """

    index: ClusterIndex
    version: KubernetesVersion | None
    source: str
    missing: tuple[str, ...] = ()
    server: ApiServer | None = None
    namespace: str = ""
    kept: tuple[Item, ...] = ()


def read_cluster(
    given: Given,
    policy: Policy,
    progress: Callable[[int], None],
    *,
    as_version: KubernetesVersion | None = None,
    keep: Callable[[Item], bool] = lambda _item: False,
) -> ClusterSource | None:
    """The cluster that the options name, if they name one; ``progress`` is told how many objects were read so far.

    Shape: ``keep`` says which objects are wanted as they are too; those of a live cluster have no line.
    Unreadable objects is said on the standard error. Pods are measured as the cluster's own release does, unless
    ``as_version`` names another.
    Errors: CommandError with exit code 4 for a cluster that cannot be read, 3 for a snapshot.
    """
    if given.snapshot is not None:
        return read_snapshot(given.snapshot, policy, as_version, keep)
    return _from_cluster(given, policy, progress, as_version, keep) if given.live else None


def read_snapshot(
    file: str,
    policy: Policy,
    as_version: KubernetesVersion | None,
    keep: Callable[[Item], bool] = lambda _item: False,
) -> ClusterSource:
    """The cluster of a snapshot file, as in `read_cluster`."""
    try:
        snapshot = load_snapshot(file, policy.workloads, as_version=as_version, keep=keep)
    except SnapshotError as error:
        raise CommandError(str(error), Exit.UNREADABLE) from error
    for line in snapshot.left_out:
        say(line)
    source = f"snapshot {file}"
    return ClusterSource(index=snapshot.index, version=snapshot.version, source=source, kept=snapshot.kept)


def _from_cluster(
    given: Given,
    policy: Policy,
    progress: Callable[[int], None],
    as_version: KubernetesVersion | None,
    wanted: Callable[[Item], bool],
) -> ClusterSource:
    live, unreadable = open_cluster(given), list[str]()
    index, missing, kept = ClusterIndex(as_version or live.version or RECORDED, scoring=True), list[str](), list[Item]()
    index.taken_at = datetime.now(UTC).isoformat()

    def keep(raw: Raw, of: TypeMeta) -> tuple[TypeMeta, ApiObject] | None:
        item = Item(line=0, of=of, raw=raw)
        if wanted(item):
            kept.append(Item(line=0, of=of, raw=raw.copy()))  # which lets go of the page that it is a part of
        try:
            value = decode_object(raw, of, policy.workloads)
        except (ValueError, RecursionError) as error:  # as in the feed, such an object is treated as absent
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
        say(f"{live.source}: note: {line}")
    return ClusterSource(
        index=index,
        version=live.version,
        source=live.source,
        missing=tuple(missing),
        server=live.server,
        namespace=live.namespace,
        kept=tuple(kept),
    )


def put(index: ClusterIndex, value: ApiObject, kind: str, where: str = "the input") -> None:
    """Add an object of the input to the index. One that the index leaves out gets a note."""
    if why := index.apply("ADDED", value):
        say(f"{where}: note: {left_out_line(kind, value, why)}")


def cluster_with_pods(
    given: Given, frame: Frame, keep: Callable[[Item], bool], *, lost: str
) -> tuple[ClusterSource, Context]:
    """The cluster that the options name, and the context with its index, version and namespace.

    A counter shows how far the cluster was read.

    Args:
        given: The options that name the cluster.
        frame: Its namespace, if any, must be one of the cluster.
        keep: As in `read_cluster`.
        lost: What cannot be had without nodes and pods.

    Raises:
        CommandError: As in `read_cluster` and `beside`, and where pods or nodes could not be read.
    """
    progress = Progress()
    known = read_cluster(given, frame.policy, progress, as_version=frame.asked_version, keep=keep)
    progress.close()
    if known is None or (missing := known.index.lacks("nodes", "pods")):
        source, why = (known.source, missing) if known else ("evenspread", "no cluster")
        code = Exit.CLUSTER if known is None or known.server is not None else Exit.UNREADABLE
        raise CommandError(f"{source}: {why}: {lost}", code)
    frame = beside(known, frame)
    return known, frame.context(frame.namespace)


def beside(known: ClusterSource, frame: Frame) -> Frame:
    """The frame with the index, version and namespace of the cluster.

    Errors: CommandError with exit code 2 for a namespace that the cluster does not have, as far as these are known.
    """
    namespace, names = frame.namespace, known.index.known_namespaces()
    if namespace and names and namespace not in names and not known.index.lacks("namespaces"):
        raise no_namespace(known.source, namespace, names)
    namespace = namespace or known.namespace
    return structs.replace(frame, index=known.index, cluster_version=known.version, namespace=namespace)
