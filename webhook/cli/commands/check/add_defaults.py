"""``check --add-defaults``: the constraints that injection would add, printed as a diff or written.

The new text is read again, and must have the same objects except for those constraints.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click
import msgspec
from msgspec import Raw, Struct, structs

from webhook.cli.checking.patches import read_patch
from webhook.cli.checking.run import as_note, with_patches
from webhook.cli.cluster_source import put
from webhook.cli.exit_codes import Exit
from webhook.cli.frame import Frame
from webhook.cli.terminal import print_faults, print_results
from webhook.core.api.types import DO_NOT_SCHEDULE, Service
from webhook.core.api.well_known import HOSTNAME
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.coming_pods.declared import declarable_constraints
from webhook.core.defaulting.injection import Skip, SkipReason
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import Autoscaler
from webhook.core.index.readers import decode_or_none
from webhook.core.json_edits import Edit, applied
from webhook.core.json_edits import Edit as EditOfObject
from webhook.core.policy.policy import Mode, Policy
from webhook.core.review.examination import examine
from webhook.core.rules.frame.rule import Finding
from webhook.core.rules.frame.subject import Subject, place
from webhook.core.rules.placement.frame.case import templates_under_rule
from webhook.core.rules.placement.pod_fits import DO_NOT_FIT
from webhook.core.rules.rule_set import OF_PODS_WITHOUT_NODES
from webhook.core.text import constraint_name, one_line, plural
from webhook.core.workloads.kind_fields import has_template
from webhook.core.workloads.reading import read_workload
from webhook.core.workloads.workload import namespace_of
from webhook.manifests.editing.atomic_write import written
from webhook.manifests.editing.insertion import FIELD, TextEdit, UneditableError, insertion
from webhook.manifests.editing.proven_edits import ObjectChange, edited, in_text_order, proven, value_of
from webhook.manifests.editing.unified_diff import line_diff
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

    Attributes:
        files: The changed files.
        refused: A fault for each workload whose text cannot be edited.
        faults: What cannot be read.
        spared: The number of workloads without new constraints, by reason.
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
    value = decode_or_none(Raw(manifest.json_text), manifest.type_meta, frame.policy.workloads)
    if isinstance(value, Service | Autoscaler) and value.metadata is not None:
        meta = structs.replace(value.metadata, namespace=namespace_of(manifest.namespace, frame.namespace))
        value = structs.replace(value, metadata=meta)
    if value is not None:
        put(index, value, manifest.kind, manifest.file)


def _wanted(
    content: Sequence[Manifest | InputFault], frame: Frame, index: ClusterIndex, spared: Counter[str]
) -> Iterable[Addition]:
    """The additions to one file. Counts the reasons why other workloads get none."""
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
        given = declarable_constraints(
            workload, namespace_of(manifest.namespace, frame.namespace), frame.context().with_index(index)
        )
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


def add_defaults(files: Iterable[File | InputFault], frame: Frame, *, write: bool) -> Exit:
    """Print the changes as a diff, or write them."""
    index = frame.index or ClusterIndex()
    amendment = amend(files, frame, index)
    print_faults(amendment.faults)
    print_faults(amendment.refused)
    unwritten: list[InputFault] = []
    if write:
        print_results(_written(amendment.files, unwritten))
        print_faults(unwritten)
    else:
        print_results(
            line for each in amendment.files for line in line_diff(each.file.name, each.file.data, each.edits)
        )
    failed = {fault.file for fault in unwritten}
    done = tuple(each for each in amendment.files if each.file.name not in failed)
    _summarize(structs.replace(amendment, files=done), frame.policy, index, write=write)
    _warn(done, structs.replace(frame, index=index))
    if any(fault.fatal for fault in amendment.faults):
        return Exit.UNREADABLE
    # Something is left to do: what could not be written, and without --write everything.
    left = amendment.refused or unwritten or (amendment.files and not write)
    return Exit.FINDINGS if left else Exit.FINE


def _written(files: Iterable[Amended], unwritten: list[InputFault]) -> Iterator[str]:
    """Write each file, and yield a line per addition."""
    for amended in files:
        if fault := written(amended.file, amended.after):
            unwritten.append(fault)
            continue
        for addition in amended.additions:
            line = addition.manifest.locate(addition.path).line
            yield f"{one_line(amended.file.name)}:{line}: {addition.manifest.title}: {addition.names}\n"


def _summarize(amendment: Amendment, policy: Policy, index: ClusterIndex, *, write: bool) -> None:
    """One line of numbers, and what could not be looked at."""
    added = sum(len(each.additions) for each in amendment.files)
    spared = ", ".join(f"{count:,} {reason}" for reason, count in sorted(amendment.spared.items()))
    told = f"constraints {'were' if write else 'would be'} added to {plural(added, 'workload')}"
    told += f"; left alone: {spared}" if spared else ""
    click.echo(told, err=True)
    if SkipReason.NODES_UNKNOWN in amendment.spared:
        click.echo(
            "nodes-unknown: the defaults depend on the domains of the cluster: name it with --cluster or --snapshot",
            err=True,
        )
    constraints = (each for file in amendment.files for addition in file.additions for each in addition.constraints)
    hostnames = any(each["topologyKey"] == HOSTNAME for each in constraints)
    if hostnames and index.lacks("nodes") and not policy.defaults.accept_node_growth:
        click.echo(
            f"note: no nodes are known: where Karpenter adds nodes, the webhook leaves out constraints over {HOSTNAME}",
            err=True,
        )


def _warn(files: Iterable[Amended], frame: Frame) -> None:
    """Print findings that only the new constraints cause, by rules that use the cluster."""
    hard = [
        addition
        for file in files
        for addition in file.additions
        if any(each["whenUnsatisfiable"] == DO_NOT_SCHEDULE for each in addition.constraints)
    ]
    if hard and frame.index is not None and (missing := frame.index.lacks("nodes")):
        click.echo(
            f"note: DoNotSchedule may leave pods Pending; whether it does here is not known ({missing}): "
            "name the cluster with --cluster or --snapshot",
            err=True,
        )
        return
    for addition in hard:
        place = addition.manifest.locate(addition.path)
        for told in _effects(addition, frame):
            head = f"{one_line(addition.manifest.file)}:{place.line}: warning: {addition.manifest.title}"
            click.echo(f"{head}: with the added constraints {told}", err=True)


def _effects(addition: Addition, frame: Frame) -> Iterator[str]:
    """The effects of the new constraints on pods that find a node without them."""
    before = value_of(addition.manifest)
    after = applied(before, [Edit(f"{addition.path}.{FIELD}", [*addition.constraints])])
    # What was wrong before is no doing of the new constraints.
    known = {each.rule for each in _found(before, addition.manifest, frame)}
    brought = [each for each in _found(after, addition.manifest, frame) if each.rule not in known]
    yield from (one_line(each.summary) for each in brought)
    if not brought and (wanted := _uncertain(after, addition.manifest, frame)):
        yield (
            f"some of the {wanted} pods may stay Pending, depending on the order in which they are placed; "
            "without them all have a place"
        )


def _found(value: Mapping[str, object], manifest: Manifest, frame: Frame) -> Iterator[Finding]:
    namespace = namespace_of(manifest.namespace, frame.namespace)
    examined = examine(value, frame.context(namespace))
    found = (each.finding for each in examined.findings if each.finding.rule in OF_PODS_WITHOUT_NODES)
    # Of pods for which there is no room either way, the added constraints are not the cause.
    yield from (each for each in found if each.rule != DO_NOT_FIT.id or each.at_most is not Mode.AUDIT)


def _uncertain(value: Mapping[str, object], manifest: Manifest, frame: Frame) -> int:
    """The number of pods that all fit without hard constraints but may not fit with them. 0 if sure."""
    workload = read_workload(value, frame.policy.workloads, api_version=manifest.api_version, kind=manifest.kind)
    if workload is None or frame.index is None:
        return 0
    meta = structs.replace(workload.meta, namespace=namespace_of(manifest.namespace, frame.namespace))
    workload = structs.replace(workload, meta=meta)
    subject = Subject(workload=workload, placed=place(workload), context=frame.context())
    for case in templates_under_rule(subject, frame.index):
        if not case.fits(case.places.hard, case.wanted) and case.has_room(case.wanted):
            return case.wanted
    return 0
