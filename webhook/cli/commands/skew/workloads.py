"""Read the workloads of ``evenspread skew`` from a cluster."""

from collections.abc import Callable, Iterator

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from webhook.answers.scanned import NamedWorkload
from webhook.cli.cluster_source import ClusterSource, cluster_with_pods
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import ClusterSelection
from webhook.cli.output.terminal import print_message
from webhook.cli.target import NamedObject, find_object
from webhook.core.api.types import ObjectMeta
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.scan.scan_context import Representatives, ScanContext, key_of, scan_context, stands_for
from webhook.core.text import object_title, one_line
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.core.workloads.kind_fields import has_template
from webhook.core.workloads.kinds import POD, group_kind
from webhook.core.workloads.reading import read_exactly, read_meta, read_workload
from webhook.core.workloads.workload import Workload
from webhook.snapshot.load import Item


class ScannedObject(Struct, frozen=True, kw_only=True):
    """A workload of the cluster. ``stand_in`` is true for a pod that represents the pods of an unknown controller."""

    named: NamedWorkload
    workload: Workload
    stand_in: bool


class ScannedCluster(Struct, frozen=True, kw_only=True):
    """The workloads of a cluster. ``namespace`` is empty for all namespaces."""

    known: ClusterSource
    within: ScanContext
    objects: tuple[ScannedObject, ...]
    namespace: str


def read_objects(
    selection: ClusterSelection,
    frame: Frame,
    named: NamedObject | None,
    *,
    everywhere: bool,
    keep_too: Callable[[Item], bool] = lambda _item: False,
) -> ScannedCluster:
    """Read the cluster and the ``named`` workload. For None, read all workloads of the namespace, or ``everywhere``.

    ``keep_too`` selects more raw objects to keep.

    Raises:
        CommandError: Pods, nodes or the named object could not be read.
    """
    keep = _keeping(frame.policy.workloads)
    known, context = cluster_with_pods(
        selection,
        frame,
        lambda item: keep(item) or keep_too(item) or (named is not None and named.is_in(item)),
        lost="skew needs them",
    )
    namespace = "" if everywhere else context.namespace or DEFAULT_NAMESPACE
    within, embedded = scan_context(context), context.policy.workloads
    objects = [(item, read_meta(item.raw)) for item in known.kept if has_template(*item.type_names, embedded)]
    if named is None:
        present = {key_of(meta.namespace, *item.type_names, meta.name) for item, meta in objects}
        chosen = Representatives(present, embedded)
        mine = [
            (item, meta)
            for item, meta in objects
            if namespace in {"", meta.namespace} and chosen.takes(*item.type_names, meta)
        ]
    else:
        named = replace(named, namespace=namespace)
        raw, stated = find_object(named, known, guessed=not frame.namespace)
        item = Item(line=0, of=stated, raw=raw if isinstance(raw, Raw) else Raw(msgspec.json.encode(raw)))
        mine = [(item, read_meta(item.raw))]
    scanned = (found for item, meta in mine for found in _scanned(item, meta, within, known.source))
    return ScannedCluster(known=known, within=within, objects=tuple(scanned), namespace=namespace)


def _keeping(embedded: tuple[EmbeddedKind, ...]) -> Callable[[Item], bool]:
    """Return a filter for the raw objects needed: workloads, and the first pod of each controller."""
    first = Representatives((), embedded)

    def keep(item: Item) -> bool:
        api_version, kind = item.type_names
        if not has_template(api_version, kind, embedded):
            return False
        if kind != POD[1]:
            return True
        meta = read_meta(item.raw)
        return meta.controller is not None and first.takes(api_version, kind, meta)

    return keep


def _scanned(item: Item, meta: ObjectMeta, within: ScanContext, source: str) -> Iterator[ScannedObject]:
    (api_version, kind), embedded = item.type_names, within.context.policy.workloads
    try:
        value, _ = read_exactly(item.raw, item.of)
        workload = read_workload(value, embedded, api_version=api_version, kind=kind)
    except DecodeError as error:
        title = one_line(object_title(kind, meta.namespace, meta.name))
        print_message(f"{source}: note: {title}: {error.message}: not counted")
        return
    if workload is not None:
        stand_in = stands_for(group_kind(api_version, kind), api_version, meta, embedded) is not None
        named = NamedWorkload(namespace=meta.namespace, kind=kind, api_version=api_version, name=meta.name)
        yield ScannedObject(named=named, workload=workload, stand_in=stand_in)
