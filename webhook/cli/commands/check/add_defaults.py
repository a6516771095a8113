"""``check --add-defaults``: add the constraints that injection would add, as a diff or in the files.

The new text is read again. Its objects may only differ in those constraints.
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
from webhook.cli.cluster_source import add_to_index
from webhook.cli.exit_codes import Exit
from webhook.cli.frame import Frame
from webhook.cli.output.terminal import print_faults, print_results
from webhook.core.api.types import DO_NOT_SCHEDULE, Service
from webhook.core.api.well_known import HOSTNAME
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.defaulting.injection import Skip, SkipReason
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import Autoscaler
from webhook.core.index.readers import decode_or_none
from webhook.core.json_edits import Edit, applied
from webhook.core.pods_to_create.declared import declarable_constraints
from webhook.core.policy.policy import Mode, Policy
from webhook.core.review.examination import examine
from webhook.core.rules.frame.rule import Finding
from webhook.core.rules.frame.subject import Subject, placed_constraints
from webhook.core.rules.placement.frame.case import templates_under_rule
from webhook.core.rules.placement.pod_fits import DO_NOT_FIT
from webhook.core.rules.rule_set import OF_PODS_WITHOUT_NODES
from webhook.core.text import constraint_name, one_line, plural
from webhook.core.workloads.kind_fields import has_template
from webhook.core.workloads.reading import read_workload
from webhook.core.workloads.workload import namespace_of
from webhook.manifests.editing.atomic_write import written
from webhook.manifests.editing.document_text import TextEdit, UneditableError
from webhook.manifests.editing.insertion import FIELD, insertion
from webhook.manifests.editing.proven_edits import ObjectChange, edited, in_text_order, proven, value_of
from webhook.manifests.editing.unified_diff import line_diff
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File
from webhook.manifests.reading.manifest import Manifest, read_manifests

Json = Any  # unchecked JSON; core.apiserver.decoding checks types


class Addition(Struct, frozen=True, kw_only=True):
    """The new constraints of a workload.

    Attributes:
        number: The index of the workload's object in the file.
        path: The path of the pod spec in the object.
    """

    manifest: Manifest
    number: int
    path: str
    constraints: tuple[Mapping[str, Json], ...]

    @property
    def names(self) -> str:
        """The names of the constraints in messages: ``zone[0], hostname[1]``."""
        keys = (str(constraint["topologyKey"]) for constraint in self.constraints)
        return ", ".join(constraint_name(key, index) for index, key in enumerate(keys))

    @property
    def after(self) -> Json:
        """The object with the new constraints."""
        return applied(value_of(self.manifest), [Edit(f"{self.path}.{FIELD}", [*self.constraints])])


class Amended(Struct, frozen=True, kw_only=True):
    """A manifest file with added default constraints.

    Additions and edits are in the order of the text. ``after`` is the edited content.
    """

    file: File
    additions: tuple[Addition, ...]
    edits: tuple[TextEdit, ...]
    after: bytes


class Amendment(Struct, frozen=True, kw_only=True):
    """The result of adding default constraints to files.

    Attributes:
        files: The changed files.
        refused: A fault for each workload whose text cannot be edited.
        faults: Faults of the input.
        spared: Number of workloads without new constraints, by reason.
    """

    files: tuple[Amended, ...]
    refused: tuple[InputFault, ...]
    faults: tuple[InputFault, ...]
    spared: Mapping[str, int]

    @property
    def additions(self) -> list[Addition]:
        """The additions to all files."""
        return [addition for amended in self.files for addition in amended.additions]


def amend(files: Iterable[File | InputFault], frame: Frame, index: ClusterIndex) -> Amendment:
    """Add the policy's default constraints to every workload in the files.

    ``index`` receives the other objects of the files.
    """
    read: list[tuple[File, list[Manifest | InputFault]]] = []
    faults: list[InputFault] = []
    inputs = [*files]
    frame = with_patches(frame, (file for file in inputs if isinstance(file, File)))
    for file in inputs:
        if isinstance(file, InputFault):
            faults.append(file)
        else:
            is_patch = os.path.realpath(file.name) in frame.patches
            content = [*read_manifests(file.name, file.data, is_patch=is_patch)]
            faults += (as_note(item) for item in content if isinstance(item, InputFault))
            read.append((file, content))
    # All files first: a Service in a later file can decide the selector of an earlier workload.
    for _, content in read:
        for manifest in content:
            if isinstance(manifest, Manifest) and read_patch(manifest, frame) is None:
                _index(manifest, frame, index)
    spared: Counter[str] = Counter()
    refused: list[InputFault] = []
    amended = [_amended(file, content, [*_wanted(content, frame, index, spared)], refused) for file, content in read]
    changed = tuple(file for file in amended if file.additions)
    return Amendment(files=changed, refused=tuple(refused), faults=tuple(faults), spared=+spared)


def _index(manifest: Manifest, frame: Frame, index: ClusterIndex) -> None:
    """Add an object with an effect on other workloads to the index, in its future namespace."""
    # No workloads: each is treated as if it were applied alone.
    if has_template(manifest.api_version, manifest.kind, frame.policy.workloads):
        return
    value = decode_or_none(Raw(manifest.json_text), manifest.type_meta, frame.policy.workloads)
    if isinstance(value, Service | Autoscaler) and value.metadata is not None:
        meta = structs.replace(value.metadata, namespace=namespace_of(manifest.namespace, frame.namespace))
        value = structs.replace(value, metadata=meta)
    if value is not None:
        add_to_index(index, value, manifest.kind, manifest.file)


def _wanted(
    content: Sequence[Manifest | InputFault], frame: Frame, index: ClusterIndex, spared: Counter[str]
) -> Iterable[Addition]:
    """Yield the additions to a file. Counts the reasons for unchanged workloads."""
    for number, manifest in enumerate(content):
        if isinstance(manifest, InputFault):
            continue
        if (patch := read_patch(manifest, frame)) is not None:
            version, kind = patch.manifest.api_version, patch.manifest.kind
            spared["kustomize-patch"] += has_template(version, kind, frame.policy.workloads)
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
        defaults = declarable_constraints(
            workload, namespace_of(manifest.namespace, frame.namespace), frame.context().with_index(index)
        )
        if isinstance(defaults, Skip):
            spared[defaults.reason] += 1
        else:
            path = f"{workload.templates[0].path}spec"
            added = tuple(msgspec.json.decode(msgspec.json.encode(defaults)))
            yield Addition(manifest=manifest, number=number, path=path, constraints=added)


def _amended(
    file: File, content: Sequence[Manifest | InputFault], wanted: Sequence[Addition], refused: list[InputFault]
) -> Amended:
    """Write the additions into the text of a file. Unwritable additions go to ``refused``."""
    changes: dict[int, ObjectChange] = {}
    for addition in wanted:
        try:
            edit = insertion(file.data, addition.manifest, addition.path, addition.constraints)
        except UneditableError as error:
            refused.append(_refusal(addition, str(error)))
            continue
        changes[addition.number] = ObjectChange(addition.number, addition.after, (edit,))
    # Unusual YAML can defeat an edit, so the edited file is read again.
    kept = proven(file, content, sorted(changes.values(), key=lambda change: change.edits[0].start))
    numbers = {change.number for change in kept}
    refused += (
        _refusal(addition, "the edited file would differ in more than the constraints")
        for addition in wanted
        if addition.number in changes and addition.number not in numbers
    )
    by_number = {addition.number: addition for addition in wanted}
    return Amended(
        file=file,
        additions=tuple(by_number[change.number] for change in kept),
        edits=tuple(in_text_order(kept)),
        after=edited(file.data, kept),
    )


def _refusal(addition: Addition, reason: str) -> InputFault:
    message = f"{addition.manifest.title}: {addition.names} not added: {reason}"
    return addition.manifest.fault(addition.path, message)


def add_defaults(files: Iterable[File | InputFault], frame: Frame, *, write: bool) -> Exit:
    """Add default constraints to the files. Write the files with ``write``, else print the changes as a diff."""
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
            line
            for amended in amendment.files
            for line in line_diff(amended.file.name, amended.file.data, amended.edits)
        )
    failed = {fault.file for fault in unwritten}
    done = structs.replace(
        amendment, files=tuple(amended for amended in amendment.files if amended.file.name not in failed)
    )
    _summarize(done, frame.policy, index, write=write)
    _warn(done.additions, structs.replace(frame, index=index))
    if any(fault.fatal for fault in amendment.faults):
        return Exit.UNREADABLE
    # Work that is left: unwritable changes, and without --write all of them.
    left = amendment.refused or unwritten or (amendment.files and not write)
    return Exit.FINDINGS if left else Exit.FINE


def _written(files: Iterable[Amended], unwritten: list[InputFault]) -> Iterator[str]:
    """Write each file, and yield a line for each addition."""
    for amended in files:
        if fault := written(amended.file, amended.after):
            unwritten.append(fault)
            continue
        for addition in amended.additions:
            line = addition.manifest.locate(addition.path).line
            yield f"{one_line(amended.file.name)}:{line}: {addition.manifest.title}: {addition.names}\n"


def _summarize(amendment: Amendment, policy: Policy, index: ClusterIndex, *, write: bool) -> None:
    """Print a line with totals, and notes about missing facts."""
    spared = ", ".join(f"{count:,} {reason}" for reason, count in sorted(amendment.spared.items()))
    summary = f"constraints {'added' if write else 'can be added'} to {plural(len(amendment.additions), 'workload')}"
    click.echo(f"{summary}; skipped: {spared}" if spared else summary, err=True)
    if SkipReason.NODES_UNKNOWN in amendment.spared:
        click.echo(
            "nodes-unknown: the defaults depend on the nodes of the cluster; add --cluster or --snapshot FILE", err=True
        )
    keys = {constraint["topologyKey"] for addition in amendment.additions for constraint in addition.constraints}
    if HOSTNAME in keys and index.lacks("nodes") and not policy.defaults.accept_node_growth:
        click.echo(
            f"note: the nodes are unknown. In a cluster with Karpenter, the webhook omits constraints over {HOSTNAME}",
            err=True,
        )


def _warn(additions: Iterable[Addition], frame: Frame) -> None:
    """Print warnings about pods that the new constraints can leave Pending."""
    hard = [
        addition
        for addition in additions
        if any(constraint["whenUnsatisfiable"] == DO_NOT_SCHEDULE for constraint in addition.constraints)
    ]
    if hard and frame.index is not None and (missing := frame.index.lacks("nodes")):
        click.echo(
            f"note: DoNotSchedule can leave pods Pending. This was not checked ({missing}); "
            "add --cluster or --snapshot FILE",
            err=True,
        )
        return
    for addition in hard:
        place = addition.manifest.locate(addition.path)
        for effect in _effects(addition, frame):
            head = f"{one_line(addition.manifest.file)}:{place.line}: warning: {addition.manifest.title}"
            click.echo(f"{head}: with the added constraints {effect}", err=True)


def _effects(addition: Addition, frame: Frame) -> Iterator[str]:
    """Yield the faults that the new constraints cause."""
    manifest = addition.manifest
    # The new constraints do not cause earlier findings.
    known = {finding.rule for finding in _findings(value_of(manifest), manifest, frame)}
    caused = [finding for finding in _findings(addition.after, manifest, frame) if finding.rule not in known]
    yield from (one_line(finding.summary) for finding in caused)
    if not caused and (wanted := _uncertain_pods(addition.after, manifest, frame)):
        yield f"some of the {wanted} pods may stay Pending, depending on their order; without these constraints all fit"


def _findings(value: Mapping[str, object], manifest: Manifest, frame: Frame) -> Iterator[Finding]:
    """Yield the findings about pods without a node."""
    namespace = namespace_of(manifest.namespace, frame.namespace)
    examined = examine(value, frame.context(namespace))
    found = (judged.finding for judged in examined.findings if judged.finding.rule in OF_PODS_WITHOUT_NODES)
    # If pods do not fit without the constraints either, these are not the cause.
    yield from (finding for finding in found if finding.rule != DO_NOT_FIT.id or finding.at_most is not Mode.AUDIT)


def _uncertain_pods(value: Mapping[str, object], manifest: Manifest, frame: Frame) -> int:
    """Return the number of pods if only the hard constraints can leave a pod Pending, in some orders, else 0."""
    workload = read_workload(value, frame.policy.workloads, api_version=manifest.api_version, kind=manifest.kind)
    if workload is None or frame.index is None:
        return 0
    meta = structs.replace(workload.meta, namespace=namespace_of(manifest.namespace, frame.namespace))
    workload = structs.replace(workload, meta=meta)
    subject = Subject(workload=workload, placed=placed_constraints(workload), context=frame.context())
    for case in templates_under_rule(subject, frame.index):
        if not case.fits(case.facts.hard, case.wanted) and case.has_room(case.wanted):
            return case.wanted
    return 0
