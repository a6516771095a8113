"""Check a whole cluster. Each pod template is checked once, in its topmost controller."""

from collections.abc import Callable, Sequence

from msgspec import Raw, structs

from webhook.cli.checking.results import RunResult
from webhook.cli.checking.run import CheckRun, as_written
from webhook.cli.exit_codes import no_namespace
from webhook.cli.frame import Frame
from webhook.core.api.types import ObjectMeta
from webhook.core.api.version import KubernetesVersion, parse_version
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.readers import decode_or_none
from webhook.core.scan.cluster_scan import cluster_scan
from webhook.core.scan.scan_context import ObjectKey, Representatives, ScanContext, key_of, scan_context
from webhook.core.scan.scan_results import ScannedWorkload
from webhook.core.scan.workload_scan import REVIEW, scan_object
from webhook.core.workloads.kind_fields import has_template
from webhook.core.workloads.reading import read_meta
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File
from webhook.manifests.reading.manifest import Manifest
from webhook.snapshot.load import Header, header_of_list, read_header

_NAMESPACE = ("v1", "Namespace")


def examine_cluster(
    files: Sequence[File | InputFault], frame: Frame, *, progress: Callable[[int], None] = lambda _objects: None
) -> RunResult:
    """Examine every object without a controller in the input.

    The text is read twice, because rules need later objects in the index. For 150,000 pods, this takes seven seconds
    more, but keeping their objects would take a GiB.

    Raises:
        CommandError: The input lacks the frame's namespace.
    """
    here, index, kinds, namespaces = set[ObjectKey](), ClusterIndex(frame.version), set[str](), set[str]()
    faults = list[InputFault]()
    for manifest in CheckRun().manifests(files, duplicates=False):
        kinds.add(manifest.kind)
        namespaces.add(manifest.name if (manifest.api_version, manifest.kind) == _NAMESPACE else manifest.namespace)
        if has_template(manifest.api_version, manifest.kind, frame.policy.workloads):
            here.add(key_of(manifest.namespace, manifest.api_version, manifest.kind, manifest.name))
        value = decode_or_none(Raw(manifest.json_text), manifest.type_meta, frame.policy.workloads)
        # Undecodable objects are reported by their examination.
        if value is not None and (why := index.apply("ADDED", value)):
            faults.append(manifest.fault("", f"{manifest.title}: {why}: left out", fatal=False))
    if frame.namespace and namespaces and frame.namespace not in namespaces:
        raise no_namespace("the input", frame.namespace, namespaces)
    header = _stated_header(files)
    index.taken_at = stated_moment(files)
    for resource, why in (header or header_of_list(kinds)).lacks.items():
        index.mark_missing(resource, why)
    frame = structs.replace(frame, index=index)
    within, chosen = scan_context(frame.context(frame.namespace)), Representatives(here, frame.policy.workloads)
    run, scanned = CheckRun(), list[ScannedWorkload]()
    run.faults += faults
    for manifest in run.manifests(files, duplicates=False):
        if frame.namespace not in {"", manifest.namespace}:
            run.count_object(manifest)
        elif not chosen.takes(manifest.api_version, manifest.kind, _meta(manifest, frame)):
            run.count_owned(manifest)
        elif (workload := _scanned(manifest, frame, within, run)) is not None:
            scanned.append(workload)
        progress(run.objects)
    scan = cluster_scan(scanned, within)
    return structs.replace(run.result(), scan=scan, index=index, whole=header is not None, rules=frame.rules)


def _scanned(manifest: Manifest, frame: Frame, within: ScanContext, run: CheckRun) -> ScannedWorkload | None:
    """Scan an object and collect its findings. None for an object without pods."""
    run.count_object(manifest)
    examined, workload = scan_object(manifest.value, within, as_written=lambda path: as_written(manifest, path))
    rules = {gap.rule for gap in examined.not_evaluated}
    failures = [failure for failure in (workload.failures if workload else ()) if failure.part not in rules]
    for failure in failures:
        run.fail(manifest, f"the {failure.part}", failure.error)
    if not any(failure.part == REVIEW for failure in failures):
        run.collect(manifest, examined, frame)
    return workload


def _stated_header(files: Sequence[File | InputFault]) -> Header | None:
    """The header of the first snapshot among the files. None for other input."""
    return next((header for file in files if (header := _header(file)) is not None), None)


def _header(file: File | InputFault) -> Header | None:
    if isinstance(file, InputFault):
        return None
    end = file.data.find(b"\n")
    return read_header(file.data if end < 0 else file.data[:end])


def is_snapshot(file: File | InputFault) -> bool:
    """Whether the file is a snapshot, which holds a whole cluster."""
    return _header(file) is not None


def stated_version(files: Sequence[File | InputFault]) -> KubernetesVersion | None:
    """The supported release in the snapshot's header. None without a header."""
    header = _stated_header(files)
    try:
        return parse_version(header.kubernetes_version or "") if header else None
    except ValueError:
        return None


def stated_moment(files: Sequence[File | InputFault]) -> str:
    """The time in the snapshot's header, in ISO format. Empty without a header."""
    header = _stated_header(files)
    return (header and header.taken_at) or ""


def _meta(manifest: Manifest, frame: Frame) -> ObjectMeta:
    """The metadata of an object with a pod template. Empty for other or undecodable objects."""
    has_pods = has_template(manifest.api_version, manifest.kind, frame.policy.workloads)
    return read_meta(manifest.json_text) if has_pods else ObjectMeta()
