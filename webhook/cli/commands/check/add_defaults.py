"""``check --add-defaults``: the constraints that injection would add, printed as a diff or written."""

from collections.abc import Iterable, Iterator, Mapping

import click
from msgspec import structs

from webhook.cli.commands.check.files_with_defaults import Addition, Amended, Amendment, amend
from webhook.cli.exit_codes import Exit
from webhook.cli.frame import Frame
from webhook.cli.terminal import print_faults, print_results
from webhook.core.api.types import DO_NOT_SCHEDULE
from webhook.core.api.well_known import HOSTNAME
from webhook.core.defaulting.injection import SkipReason
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.json_edits import Edit, applied
from webhook.core.policy.policy import Mode, Policy
from webhook.core.review.review import examine
from webhook.core.rules.frame.rule import Finding
from webhook.core.rules.frame.subject import Subject, place
from webhook.core.rules.placement.frame.case import templates_under_rule
from webhook.core.rules.placement.pod_fits import DO_NOT_FIT
from webhook.core.rules.rule_set import OF_PODS_WITHOUT_NODES
from webhook.core.text import one_line, plural
from webhook.core.workloads.reading import read_workload
from webhook.core.workloads.workload import namespace_of
from webhook.manifests.editing.atomic_write import written
from webhook.manifests.editing.insertion import FIELD
from webhook.manifests.editing.proven_edits import value_of
from webhook.manifests.editing.unified_diff import line_diff
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File
from webhook.manifests.reading.manifest import Manifest


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
    """Write each file, and say what was added where."""
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
    """Print findings of rules that use the cluster which the workloads have only with their new constraints."""
    hard = [each for file in files for each in file.additions if any(map(_is_hard, each.constraints))]
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


def _is_hard(constraint: Mapping[str, object]) -> bool:
    return constraint["whenUnsatisfiable"] == DO_NOT_SCHEDULE


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
    """How many pods a workload has, if all find a node without hard constraints but maybe not with them; else 0."""
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
