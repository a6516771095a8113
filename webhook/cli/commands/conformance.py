"""``evenspread conformance``: compare evenspread's results with recorded results of Kubernetes."""

from pathlib import Path

import click
import msgspec

from webhook.cli.exit_codes import Exit
from webhook.cli.parameters import VERSION
from webhook.conformance.vectors import Comparison, VectorError, compare_file
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
def conformance(*, files: tuple[Path, ...], kube_version: KubernetesVersion | None, output: str) -> Exit:
    """Run evenspread on recorded cases (vector files), and list where its answer differs from Kubernetes'.

    FILE is JSON Lines, plain or gzip, as described in conformance/README.md. Unsupported kinds are listed and never
    count as agreeing.
    """
    comparisons: list[Comparison] = []
    unreadable = False
    for file in files:
        try:
            comparisons += compare_file(file, as_version=kube_version)
        except VectorError as error:
            unreadable = True
            click.echo(f"evenspread: {error}", err=True)
    click.echo(comparisons_as_json(comparisons) if output == "json" else as_text(comparisons))
    return comparison_exit_code(comparisons, unreadable=unreadable)


def comparison_exit_code(comparisons: list[Comparison], *, unreadable: bool) -> Exit:
    """Return the exit code of ``evenspread conformance``. A run without compared cases fails."""
    compared = [comparison for comparison in comparisons if comparison.supported]
    if any(comparison.agree < comparison.cases for comparison in compared):
        return Exit.FINDINGS
    if unreadable:
        return Exit.UNREADABLE
    return Exit.FINE if compared else Exit.FINDINGS


def comparisons_as_json(comparisons: list[Comparison]) -> str:
    """Format the comparisons as JSON.

    ``[{file, kind, cases, agree, first: [{id, where, expected, got}], supported, release}]``
    """
    return msgspec.json.format(msgspec.json.encode(comparisons)).decode()


def as_text(comparisons: list[Comparison]) -> str:
    """A line for each file and kind, with its first differences, and a line with the totals."""
    lines = []
    for comparison in comparisons:
        if not comparison.supported:
            lines.append(
                f"{comparison.file}: {comparison.kind}: not supported yet; {_cases(comparison.cases)} not compared"
            )
            continue
        # Rounded down, so that 100 % means all cases.
        rate = f"{int(comparison.rate * 10_000) / 100:.2f} %"
        kind = (
            comparison.kind
            if comparison.release == str(RECORDED)
            else f"{comparison.kind} as Kubernetes {comparison.release}"
        )
        lines.append(f"{comparison.file}: {kind}: {comparison.agree} of {comparison.cases} cases agree ({rate})")
        for difference in comparison.first[:_MAX_DIFFERENCES]:
            lines.append(f"  {difference.id}: {difference.where}")
            lines.append(f"    expected {_shown(difference.expected)}")
            lines.append(f"    got      {_shown(difference.got)}")
    compared = [comparison for comparison in comparisons if comparison.supported]
    skipped = sum(comparison.cases for comparison in comparisons if not comparison.supported)
    agree = sum(comparison.agree for comparison in compared)
    cases = sum(comparison.cases for comparison in compared)
    total = f"{agree} of {cases} compared cases agree"
    return "\n".join([*lines, f"{total}; {_cases(skipped)} not compared" if skipped else total])


def _cases(number: int) -> str:
    return "1 case was" if number == 1 else f"{number} cases were"


def _shown(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _MAX_CHARS else text[:_MAX_CHARS] + "..."
