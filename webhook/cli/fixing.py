"""``check --fix`` and ``check --write``: what injection would do, printed or applied."""

from collections.abc import Iterable, Iterator, Sequence

import click

from webhook.cli.amendment import Amended, Amendment, amend
from webhook.cli.console import print_faults, print_results
from webhook.cli.documents import Fault
from webhook.cli.exits import Exit
from webhook.cli.line_diff import line_diff
from webhook.cli.looking import Frame
from webhook.cli.replacement import replace_file
from webhook.cli.sources import STDIN, File
from webhook.core.adoption import NODES_UNKNOWN
from webhook.core.index import ClusterIndex
from webhook.core.model import HOSTNAME
from webhook.core.policy import Policy
from webhook.core.rules.finding import one_line, plural


def check_usage(paths: Sequence[str], policy: Policy, *, fix: bool, write: bool, output: str) -> None:
    """Refuse what makes no sense. Errors: click.UsageError."""
    if fix and write:
        raise click.UsageError("--fix prints and --write applies: give one of them")
    option = "--write" if write else "--fix"
    if output != "text":
        raise click.UsageError(f"-o is for findings, which {option} does not print")
    if write and STDIN in paths:
        raise click.UsageError("the standard input cannot be written to; --fix prints")
    defaults = policy.defaults
    given = defaults.defaulting_type == "System" or defaults.default_constraints or defaults.overrides
    if defaults.mode == "off" or not given:
        raise click.UsageError(
            f"{option} needs defaults to add: --config FILE with defaults.defaultConstraints, defaults.mode not off"
        )


def fix_files(files: Iterable[File | Fault], frame: Frame, *, write: bool) -> Exit:
    """Print the changes as a diff, or make them."""
    index = frame.index or ClusterIndex()
    amendment = amend(files, frame, index)
    print_faults(amendment.faults)
    print_faults(amendment.refused)
    unwritten: list[Fault] = []
    if write:
        print_results(_written(amendment.files, unwritten))
        print_faults(unwritten)
    else:
        print_results(
            line for each in amendment.files for line in line_diff(each.file.name, each.file.data, each.edits)
        )
    _summarize(amendment, frame.policy, index, write=write)
    if any(fault.fatal for fault in amendment.faults):
        return Exit.UNREADABLE
    left = amendment.refused or unwritten or (amendment.files and not write)
    return Exit.FINDINGS if left else Exit.FINE


def _written(files: Iterable[Amended], unwritten: list[Fault]) -> Iterator[str]:
    """Write each file, and say what was added where."""
    for amended in files:
        name = amended.file.name
        try:
            replace_file(name, amended.file.data, amended.after)
        except OSError as error:
            unwritten.append(Fault(file=name, message=f"not written: {(error.strerror or str(error)).lower()}"))
            continue
        for addition in amended.additions:
            line = addition.manifest.locate(addition.path).line
            yield f"{one_line(name)}:{line}: {addition.manifest.title}: {addition.names}\n"


def _summarize(amendment: Amendment, policy: Policy, index: ClusterIndex, *, write: bool) -> None:
    """One line of numbers, and what could not be looked at."""
    added = sum(len(each.additions) for each in amendment.files)
    spared = ", ".join(f"{count:,} {reason}" for reason, count in sorted(amendment.spared.items()))
    told = f"constraints {'were' if write else 'would be'} added to {plural(added, 'workload')}"
    told += f"; left alone: {spared}" if spared else ""
    click.echo(told, err=True)
    if NODES_UNKNOWN in amendment.spared:
        click.echo(
            "nodes-unknown: the cluster's domains decide how hard a default is: name it by --cluster or --snapshot",
            err=True,
        )
    constraints = (each for file in amendment.files for addition in file.additions for each in addition.constraints)
    hostnames = any(each["topologyKey"] == HOSTNAME for each in constraints)
    if hostnames and index.lacks("nodes") and not policy.defaults.accept_node_growth:
        click.echo(
            "note: no nodes known; where Karpenter makes them, a webhook leaves constraints by hostname out", err=True
        )
