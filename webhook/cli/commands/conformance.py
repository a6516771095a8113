"""``evenspread conformance``: compare answers with recorded ones of Kubernetes."""

from pathlib import Path

import click
import msgspec

from webhook.cli.exit_codes import Exit
from webhook.cli.parameters import VERSION
from webhook.conformance.vectors import Tally, VectorError, compare_file
from webhook.core.api.version import RECORDED, KubernetesVersion

_MAX_DIFFERENCES = 3  # of a kind; more of them mostly have the same cause, and JSON has ten
_MAX_CHARS = 400  # of a value; a verdict on many nodes is long


@click.command(
    short_help="Compare evenspread with recorded answers of Kubernetes.",
    epilog="Exit code: 0 all compared cases agree, 1 a case differs or nothing was compared, 2 usage, "
    "3 unreadable file.",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option(
    "--kube-version",
    type=VERSION,
    metavar="VERSION",
    help="Kubernetes release of the answers in the files.  [default: as stated in each file]",
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def conformance(*, files: tuple[Path, ...], kube_version: KubernetesVersion | None, output: str) -> None:
    """Decide the cases in vector files, and list the differences from Kubernetes' own answers.

    FILE is JSON Lines, plain or gzip, as described in conformance/README.md. Unsupported kinds are listed and never
    count as agreeing.
    """
    tallies: list[Tally] = []
    unreadable = False
    for file in files:
        try:
            tallies += compare_file(file, as_version=kube_version)
        except VectorError as error:
            unreadable = True
            click.echo(f"evenspread: {error}", err=True)
    click.echo(tallies_as_json(tallies) if output == "json" else as_text(tallies))
    click.get_current_context().exit(comparison_exit_code(tallies, unreadable=unreadable))


def comparison_exit_code(tallies: list[Tally], *, unreadable: bool) -> Exit:
    """The exit code. A run without compared cases fails."""
    compared = [tally for tally in tallies if tally.supported]
    if any(tally.agree < tally.cases for tally in compared):
        return Exit.FINDINGS
    if unreadable:
        return Exit.UNREADABLE
    return Exit.FINE if compared else Exit.FINDINGS


def tallies_as_json(tallies: list[Tally]) -> str:
    """The JSON: ``[{file, kind, cases, agree, first: [{id, where, expected, got}], supported, release}]``."""
    return msgspec.json.format(msgspec.json.encode(tallies)).decode()


def as_text(tallies: list[Tally]) -> str:
    """A line for each file and kind, with its first differences, and a line with the totals."""
    lines = []
    for tally in tallies:
        if not tally.supported:
            lines.append(f"{tally.file}: {tally.kind}: not supported yet; {_cases(tally.cases)} not compared")
            continue
        # Rounded down, so that 100 % means all cases.
        rate = f"{int(tally.rate * 10_000) / 100:.2f} %"
        kind = tally.kind if tally.release == str(RECORDED) else f"{tally.kind} as Kubernetes {tally.release}"
        lines.append(f"{tally.file}: {kind}: {tally.agree} of {tally.cases} cases agree ({rate})")
        for difference in tally.first[:_MAX_DIFFERENCES]:
            lines.append(f"  {difference.id}: {difference.where}")
            lines.append(f"    expected {_shown(difference.expected)}")
            lines.append(f"    got      {_shown(difference.got)}")
    compared = [tally for tally in tallies if tally.supported]
    skipped = sum(tally.cases for tally in tallies if not tally.supported)
    total = f"{sum(tally.agree for tally in compared)} of {sum(tally.cases for tally in compared)} compared cases agree"
    return "\n".join([*lines, f"{total}; {_cases(skipped)} not compared" if skipped else total])


def _cases(number: int) -> str:
    return "1 case was" if number == 1 else f"{number} cases were"


def _shown(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _MAX_CHARS else text[:_MAX_CHARS] + "..."
