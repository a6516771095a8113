"""Files -> the same files with the constraints that injection would give their workloads.

Nothing is taken on trust: the new text is read again, and must hold the same objects but for those constraints.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct, structs

from webhook.cli.documents import Fault
from webhook.cli.insertion import FIELD, Edit, RefusedError, insertion
from webhook.cli.looking import Frame
from webhook.cli.manifests import Manifest, read_manifests
from webhook.cli.sources import File
from webhook.core.adoption import adopted
from webhook.core.decoding import DecodeError
from webhook.core.index import ClusterIndex
from webhook.core.kinds import has_template, read_workload
from webhook.core.model import Service, SpreadConstraint, TypeMeta
from webhook.core.objects import Autoscaler, decode_object
from webhook.core.rules.finding import one_line

Json = Any  # raw JSON from outside: core.decoding gives it types

# Where kubectl puts an object that names no namespace, unless it is told otherwise.
_NAMESPACE = "default"
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


class Addition(Struct, frozen=True, kw_only=True):
    """Constraints for one workload; ``path`` leads to its pod spec, ``number`` is its place among what a file holds."""

    manifest: Manifest
    number: int
    path: str
    constraints: tuple[Mapping[str, Json], ...]

    @property
    def names(self) -> str:
        """The constraints as messages call them: ``zone[0], hostname[1]``."""
        keys = (str(each["topologyKey"]).rpartition("/")[2] for each in self.constraints)
        return ", ".join(f"{one_line(key, 40)}[{place}]" for place, key in enumerate(keys))


_Placed = tuple[Addition, Edit]


class Amended(Struct, frozen=True, kw_only=True):
    """One file before and after; each addition has its edit, in the order of the text."""

    file: File
    additions: tuple[Addition, ...]
    edits: tuple[Edit, ...]
    after: bytes


class Amendment(Struct, frozen=True, kw_only=True):
    """Everything that a run comes to.

    Shape: ``files`` are those that change. ``refused`` are workloads whose text cannot take the constraints; ``spared``
    counts the reasons why others get none.
    """

    files: tuple[Amended, ...]
    refused: tuple[Fault, ...]
    faults: tuple[Fault, ...]
    spared: Mapping[str, int]


def amend(files: Iterable[File | Fault], frame: Frame, index: ClusterIndex) -> Amendment:
    """Add to every workload what injection would give its pods.

    Shape: ``index`` is told of the Services, autoscalers, namespaces and nodes of the files.
    """
    read: list[tuple[File, list[Manifest | Fault]]] = []
    faults: list[Fault] = []
    for file in files:
        if isinstance(file, Fault):
            faults.append(file)
        else:
            found = [*read_manifests(file.name, file.data)]
            faults += (each for each in found if isinstance(each, Fault))
            read.append((file, found))
    for _, found in read:
        for manifest in found:
            if isinstance(manifest, Manifest):
                _index(manifest, frame, index)
    spared: Counter[str] = Counter()
    refused: list[Fault] = []
    amended = [_amended(file, found, [*_wanted(found, frame, index, spared)], refused) for file, found in read]
    changed = tuple(each for each in amended if each.additions)
    return Amendment(files=changed, refused=tuple(refused), faults=tuple(faults), spared=spared)


def _index(manifest: Manifest, frame: Frame, index: ClusterIndex) -> None:
    """Tell the index of an object around the workloads, in the namespace where it will be."""
    of = TypeMeta(api_version=manifest.api_version, kind=manifest.kind)
    if has_template(manifest.api_version, manifest.kind, frame.policy.workloads):
        return
    try:
        value = decode_object(Raw(_json(manifest)), of, frame.policy.workloads)
    except (ValueError, RecursionError):
        return
    if isinstance(value, Service | Autoscaler) and value.metadata is not None:
        meta = structs.replace(value.metadata, namespace=_namespace(manifest, frame))
        value = structs.replace(value, metadata=meta)
    if value is not None:
        index.apply("ADDED", value)


def _namespace(manifest: Manifest, frame: Frame) -> str:
    return manifest.namespace or frame.namespace or _NAMESPACE


def _wanted(
    found: Sequence[Manifest | Fault], frame: Frame, index: ClusterIndex, spared: Counter[str]
) -> Iterable[Addition]:
    """The additions to one file; why other workloads get none is counted."""
    for number, manifest in enumerate(found):
        if isinstance(manifest, Fault):
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
        given = adopted(workload, _namespace(manifest, frame), frame.policy, index, frame.version)
        if isinstance(given, str):
            spared[given] += 1
        else:
            path = f"{workload.templates[0].path}spec"
            yield Addition(manifest=manifest, number=number, path=path, constraints=tuple(map(_plain, given)))


def _plain(constraint: SpreadConstraint) -> Mapping[str, Json]:
    value: Mapping[str, Json] = msgspec.json.decode(msgspec.json.encode(constraint))
    return value


def _amended(
    file: File, found: Sequence[Manifest | Fault], wanted: Sequence[Addition], refused: list[Fault]
) -> Amended:
    """The file with all additions that its text can take; those that it cannot are told."""
    edits: list[_Placed] = []
    for addition in wanted:
        try:
            edit = insertion(file.data, addition.manifest, addition.path, addition.constraints)
        except RefusedError as error:
            refused.append(_refusal(addition, str(error)))
        else:
            edits.append((addition, edit))
    kept = _proven(file, found, sorted(edits, key=lambda each: each[1].start))
    told = {addition.number for addition, _ in kept}
    refused += (
        _refusal(addition, "read again, the file would differ in more than the constraints")
        for addition, _ in edits
        if addition.number not in told
    )
    return Amended(
        file=file,
        additions=tuple(addition for addition, _ in kept),
        edits=tuple(edit for _, edit in kept),
        after=_edited(file.data, kept),
    )


def _refusal(addition: Addition, reason: str) -> Fault:
    place = addition.manifest.locate(addition.path)
    message = f"{addition.manifest.title}: {addition.names} not added: {reason}"
    return Fault(file=addition.manifest.file, message=message, line=place.line, column=place.column)


def _proven(file: File, found: Sequence[Manifest | Fault], edits: Sequence[_Placed]) -> list[_Placed]:
    """The edits after which the file holds what it should; none, if they only do apart."""
    kept = _holding(file, found, edits)
    return kept if len(kept) == len(edits) or _holds(file, found, kept) else []


def _holding(file: File, found: Sequence[Manifest | Fault], edits: Sequence[_Placed]) -> list[_Placed]:
    """All edits if they hold, else what holds of either half: one that does not is found in few readings."""
    if not edits or _holds(file, found, edits):
        return [*edits]
    half = len(edits) // 2
    return [*_holding(file, found, edits[:half]), *_holding(file, found, edits[half:])] if half else []


def _holds(file: File, found: Sequence[Manifest | Fault], edits: Sequence[_Placed]) -> bool:
    """Whether the edited text, read again, holds the same objects and faults, but for the constraints."""
    given = {addition.number: addition for addition, _ in edits}
    again = [*read_manifests(file.name, _edited(file.data, edits))]
    if len(again) != len(found):
        return False
    return all(
        _same(before, after, given.get(number)) for number, (before, after) in enumerate(zip(found, again, strict=True))
    )


def _same(before: Manifest | Fault, after: Manifest | Fault, addition: Addition | None) -> bool:
    if isinstance(before, Fault) or isinstance(after, Fault):
        return isinstance(before, Fault) and isinstance(after, Fault) and before.message == after.message
    value = msgspec.json.decode(before.value) if isinstance(before.value, bytes) else before.value
    if addition is not None:
        steps = [name or int(index) for name, index in _STEP.findall(f"{addition.path}.{FIELD}")]
        value = _with(value, steps, list(addition.constraints))
    # As text: to Python true is 1, and 1.0 too.
    return json.dumps(value, sort_keys=True) == json.dumps(msgspec.json.decode(_json(after)), sort_keys=True)


def _with(value: Json, steps: Sequence[str | int], given: Json) -> Json:
    """A copy with another value at a path; what it shares with other objects is left alone."""
    if not steps:
        return given
    first, rest = steps[0], steps[1:]
    if isinstance(first, int):
        return [*value[:first], _with(value[first], rest, given), *value[first + 1 :]]
    return {**value, first: _with(value.get(first), rest, given)}


def _json(manifest: Manifest) -> bytes:
    return manifest.value if isinstance(manifest.value, bytes) else json.dumps(manifest.value).encode()


def _edited(data: bytes, edits: Sequence[_Placed]) -> bytes:
    pieces, at = [], 0
    for _, edit in edits:
        pieces += [data[at : edit.start], edit.text]
        at = edit.end
    return b"".join((*pieces, data[at:]))
