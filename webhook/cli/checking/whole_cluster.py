"""A whole cluster -> a result: like `run`, but each template is examined once, in the object that its author wrote.

ReplicaSets of a Deployment and their pods repeat its template; they are skipped if the controller is in the input. Of
the pods of a controller that is not in the input, one is examined.
"""

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Raw, structs

from webhook.cli.checking.frame import Frame
from webhook.cli.checking.results import RunResult
from webhook.cli.checking.run import CheckRun
from webhook.cli.checking.zone_losses import zone_losses
from webhook.cli.exit_codes import no_namespace
from webhook.core.api.types import Named, OwnerReference, TypeMeta
from webhook.core.api.version import KubernetesVersion, parse_version
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.readers import decode_object
from webhook.core.workloads.kinds import group_kind, group_of
from webhook.core.workloads.reading import has_template, makes
from webhook.core.workloads.workload import Workload
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File
from webhook.manifests.reading.manifest import Manifest
from webhook.snapshot.load import Header, absent, read_header

_NAMED = msgspec.json.Decoder(Named)

_NAMESPACE = ("v1", "Namespace")

_Key = tuple[str, str, str, str]  # namespace, group, kind, name


def examine_cluster(
    files: Sequence[File | InputFault], frame: Frame, *, progress: Callable[[int], None] = lambda _objects: None
) -> RunResult:
    """Examine every object that was not made by another object of the input.

    The text is read twice, first into the index, since rules may ask for objects that come later. Keeping the objects
    of 150,000 pods would take a GiB in addition to their text; reading their JSON again takes seven seconds.
    Errors: CommandError for a namespace that the input does not have.
    """
    here, index, kinds, namespaces = set[_Key](), ClusterIndex(frame.version), set[str](), set[str]()
    for manifest in CheckRun().manifests(files, duplicates=False):
        kinds.add(manifest.kind)
        namespaces.add(manifest.name if (manifest.api_version, manifest.kind) == _NAMESPACE else manifest.namespace)
        if has_template(manifest.api_version, manifest.kind, frame.policy.workloads):
            here.add((manifest.namespace, group_of(manifest.api_version), manifest.kind, manifest.name))
        _index(manifest, frame, index)
    if frame.namespace and namespaces and frame.namespace not in namespaces:
        raise no_namespace("the input", frame.namespace, namespaces)
    header = _stated_header(files)
    index.taken_at = (header and header.taken_at) or ""
    for resource, why in (absent(kinds) if header is None else header.lacks).items():
        index.lack(resource, why)
    seen, elsewhere, frame = CheckRun(), set[_Key](), structs.replace(frame, index=index)
    workloads: list[Workload] = []
    for manifest in seen.manifests(files, duplicates=False):
        if frame.namespace not in {"", manifest.namespace}:
            seen.leave_out(manifest)
            continue
        owner = _controller(manifest, frame)
        key = owner and (manifest.namespace, group_of(owner.api_version), owner.kind, owner.name)
        if key and (key in here or key in elsewhere):
            seen.pass_by(manifest)
        else:
            examined = seen.examine(manifest, frame)
            if examined.workload is not None and not key:
                workloads.append(examined.workload)
            if key:
                # Its controller is not in the input: the first of the objects that it made stands for the others.
                elsewhere.add(key)
        progress(seen.objects)
    return structs.replace(seen.result(), losses=zone_losses(workloads, frame), whole=header is not None)


def _stated_header(files: Sequence[File | InputFault]) -> Header | None:
    """The header of the first snapshot among the files; with one, the files are a whole cluster."""
    for file in files:
        if isinstance(file, File):
            header = read_header(file.data.partition(b"\n")[0])
            if header is not None:
                return header
    return None


def stated_version(files: Sequence[File | InputFault]) -> KubernetesVersion | None:
    """The release that a snapshot's header names, if it is a supported one."""
    header = _stated_header(files)
    try:
        return parse_version(header.kubernetes_version or "") if header else None
    except ValueError:
        return None


def _index(manifest: Manifest, frame: Frame, index: ClusterIndex) -> None:
    """Add an object to the index; one that cannot be decoded is still examined later."""
    of = TypeMeta(api_version=manifest.api_version, kind=manifest.kind)
    try:
        value = decode_object(Raw(manifest.json_text), of, frame.policy.workloads)
    except (ValueError, RecursionError):
        return
    if value is not None:
        index.apply("ADDED", value)


def _controller(manifest: Manifest, frame: Frame) -> OwnerReference | None:
    """The controller of an object with a template; None if the controller's kind makes no such objects."""
    workloads = frame.policy.workloads
    if not has_template(manifest.api_version, manifest.kind, workloads):
        return None
    try:
        owner = _NAMED.decode(manifest.json_text).meta.controller
    except (ValueError, RecursionError):
        return None
    made = group_kind(manifest.api_version, manifest.kind)
    return owner if owner and makes(owner.api_version, owner.kind, made, workloads) else None
