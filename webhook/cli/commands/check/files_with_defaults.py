"""Files -> the same files with the constraints that injection would give their workloads.

The new text is read again, and must have the same objects except for those constraints.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct, structs

from webhook.cli.checking.patches import read_patch
from webhook.cli.checking.run import as_note, with_patches
from webhook.cli.cluster_source import put
from webhook.cli.frame import Frame
from webhook.core.api.types import Service
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.coming_pods.declared import adopted
from webhook.core.defaulting.injection import Skip
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import Autoscaler
from webhook.core.index.readers import readable
from webhook.core.json_edits import Edit as EditOfObject
from webhook.core.json_edits import applied
from webhook.core.text import constraint_name
from webhook.core.workloads.reading import has_template, read_workload
from webhook.core.workloads.workload import namespace_of
from webhook.manifests.editing.insertion import FIELD, TextEdit, UneditableError, insertion
from webhook.manifests.editing.proven_edits import ObjectChange, edited, in_text_order, proven, value_of
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File
from webhook.manifests.reading.manifest import Manifest, read_manifests

Json = Any  # raw JSON from outside: core.apiserver.decoding gives it types


class Addition(Struct, frozen=True, kw_only=True):
    """Constraints for one workload; ``path`` leads to its pod spec, ``number`` is its index in the file's content."""

    manifest: Manifest
    number: int
    path: str
    constraints: tuple[Mapping[str, Json], ...]

    @property
    def names(self) -> str:
        """The names of the constraints in messages: ``zone[0], hostname[1]``."""
        names = (constraint_name(str(each["topologyKey"]), index) for index, each in enumerate(self.constraints))
        return ", ".join(names)


class Amended(Struct, frozen=True, kw_only=True):
    """One file before and after; each addition has its edit, in the order of the text."""

    file: File
    additions: tuple[Addition, ...]
    edits: tuple[TextEdit, ...]
    after: bytes


class Amendment(Struct, frozen=True, kw_only=True):
    """The result of a run.

    Shape: ``files`` are those that change. ``refused`` are workloads whose text cannot be edited; ``spared`` counts the
    reasons why others get no constraints.
    """

    files: tuple[Amended, ...]
    refused: tuple[InputFault, ...]
    faults: tuple[InputFault, ...]
    spared: Mapping[str, int]


def amend(files: Iterable[File | InputFault], frame: Frame, index: ClusterIndex) -> Amendment:
    """Add to every workload the constraints that injection would give its pods.

    Shape: Services, autoscalers, namespaces and nodes of the files are added to ``index``.
    """
    read: list[tuple[File, list[Manifest | InputFault]]] = []
    faults: list[InputFault] = []
    given = [*files]
    frame = with_patches(frame, (each for each in given if isinstance(each, File)))
    for file in given:
        if isinstance(file, InputFault):
            faults.append(file)
        else:
            is_patch = os.path.realpath(file.name) in frame.patches
            content = [*read_manifests(file.name, file.data, is_patch=is_patch)]
            faults += (as_note(each) for each in content if isinstance(each, InputFault))
            read.append((file, content))
    # All files first: a Service in a later one decides which selector a workload in an earlier one gets.
    for _, content in read:
        for manifest in content:
            if isinstance(manifest, Manifest) and read_patch(manifest, frame) is None:
                _index(manifest, frame, index)
    spared: Counter[str] = Counter()
    refused: list[InputFault] = []
    amended = [_amended(file, content, [*_wanted(content, frame, index, spared)], refused) for file, content in read]
    changed = tuple(each for each in amended if each.additions)
    return Amendment(files=changed, refused=tuple(refused), faults=tuple(faults), spared=+spared)


def _index(manifest: Manifest, frame: Frame, index: ClusterIndex) -> None:
    """Add an object that matters to the workloads to the index, in the namespace where it will be."""
    # Workloads stay out: each is asked about as if it were applied alone, and brings its own owners.
    if has_template(manifest.api_version, manifest.kind, frame.policy.workloads):
        return
    value = readable(Raw(manifest.json_text), manifest.type_meta, frame.policy.workloads)
    if isinstance(value, Service | Autoscaler) and value.metadata is not None:
        meta = structs.replace(value.metadata, namespace=namespace_of(manifest.namespace, frame.namespace))
        value = structs.replace(value, metadata=meta)
    if value is not None:
        put(index, value, manifest.kind, manifest.file)


def _wanted(
    content: Sequence[Manifest | InputFault], frame: Frame, index: ClusterIndex, spared: Counter[str]
) -> Iterable[Addition]:
    """The additions to one file; the reasons why other workloads get none are counted."""
    for number, manifest in enumerate(content):
        if isinstance(manifest, InputFault):
            continue
        if (patch := read_patch(manifest, frame)) is not None:
            of = patch.manifest
            spared["kustomize-patch"] += has_template(of.api_version, of.kind, frame.policy.workloads)
            continue
        try:
            workload = read_workload(
                manifest.value, frame.policy.workloads, api_version=manifest.api_version, kind=manifest.kind
            )
        except DecodeError:
            spared["unreadable"] += 1
            continue
        if workload is None or not workload.whole:
            continue
        given = adopted(workload, namespace_of(manifest.namespace, frame.namespace), frame.context().beside(index))
        if isinstance(given, Skip):
            spared[given.reason] += 1
        else:
            path = f"{workload.templates[0].path}spec"
            added = tuple(msgspec.json.decode(msgspec.json.encode(given)))
            yield Addition(manifest=manifest, number=number, path=path, constraints=added)


def _amended(
    file: File, content: Sequence[Manifest | InputFault], wanted: Sequence[Addition], refused: list[InputFault]
) -> Amended:
    """The file with all additions that can be written into its text; the others are added to ``refused``."""
    changes: dict[int, ObjectChange] = {}
    for addition in wanted:
        try:
            edit = insertion(file.data, addition.manifest, addition.path, addition.constraints)
        except UneditableError as error:
            refused.append(_refusal(addition, str(error)))
            continue
        given = EditOfObject(f"{addition.path}.{FIELD}", [*addition.constraints])
        after = applied(value_of(addition.manifest), [given])
        changes[addition.number] = ObjectChange(addition.number, after, (edit,))
    # A file may hold what no edit can tell apart, so each is read again with its edits before they count.
    kept = proven(file, content, sorted(changes.values(), key=lambda each: each.edits[0].start))
    told = {each.number for each in kept}
    refused += (
        _refusal(addition, "read again, the file would differ in more than the constraints")
        for addition in wanted
        if addition.number in changes and addition.number not in told
    )
    by_number = {addition.number: addition for addition in wanted}
    return Amended(
        file=file,
        additions=tuple(by_number[each.number] for each in kept),
        edits=tuple(in_text_order(kept)),
        after=edited(file.data, kept),
    )


def _refusal(addition: Addition, reason: str) -> InputFault:
    message = f"{addition.manifest.title}: {addition.names} not added: {reason}"
    return addition.manifest.fault(addition.path, message)
