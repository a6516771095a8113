"""``evenspread check``: the rules over manifests."""

import sys
from collections.abc import Iterable, Sequence
from itertools import chain

import click

from webhook.cli.checking.results import exit_code, print_failures
from webhook.cli.checking.run import look
from webhook.cli.commands.check.kustomize import built
from webhook.cli.exit_codes import Exit
from webhook.cli.formats import renderer
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import Given
from webhook.cli.options import Results, cluster_options, looking_options, result_options
from webhook.cli.terminal import Progress, collect_rarely, colored, print_faults, print_results
from webhook.core.policy.options import DefaultsMode
from webhook.core.policy.policy import Policy
from webhook.core.rules.frame.rule import Severity
from webhook.core.scheduler.profile import DefaultingType
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import STDIN, File, read_files


class _Check(click.Command):
    """The command; ``--fix`` alone means ``--fix=some``, and never takes the next argument for its value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = args[: args.index("--")] if "--" in args else args
        rest = args[len(options) :]
        return super().parse_args(ctx, [*("--fix=some" if each == "--fix" else each for each in options), *rest])


@click.command(
    cls=_Check,
    short_help="Check manifests: what is refused, and what is legal but wrong.",
    epilog="Exit code: 0 fine, 1 findings, 2 usage or configuration, 3 unreadable input, 4 no cluster, "
    "5 a fault of evenspread.",
)
@click.argument("paths", nargs=-1, metavar="PATH...|-")
@click.option(
    "-f", "--filename", "files", multiple=True, metavar="PATH", help="The same as an argument, as in kubectl."
)
@click.option(
    "--ignore", multiple=True, metavar="PATTERN", help="Skip files and directories with a matching path or name."
)
@click.option(
    "--kustomize",
    "-k",
    "kustomized",
    multiple=True,
    metavar="DIR",
    help="Check the output of kustomize or kubectl for this directory. Repeat it for several.",
)
@click.option(
    "--fix",
    type=click.Choice(["some", "all"]),
    metavar="[=all]",
    help="Print fixes for findings of high and medium severity as a diff, and the remaining findings. "
    "--fix=all also fixes low severity.",
)
@click.option(
    "--add-defaults",
    is_flag=True,
    help="Print the configured defaults for workloads without constraints as a diff.",
)
@click.option("--write", is_flag=True, help="Write the changes of --fix or --add-defaults into the files.")
@result_options()
@cluster_options
@looking_options
def check(  # noqa: PLR0913 one parameter an option
    *,
    paths: tuple[str, ...],
    files: tuple[str, ...],
    ignore: tuple[str, ...],
    kustomized: tuple[str, ...],
    fix: str | None,
    add_defaults: bool,
    write: bool,
    results: Results,
    frame: Frame,
    given: Given,
) -> None:
    """Check the spread constraints of manifests: faults that kube-apiserver refuses, and legal mistakes.

    PATH is a file, a directory (all .yaml, .yml and .json files below it), a pattern, or - for the standard input:

      helm template CHART | evenspread check -
    """
    named = (*paths, *files)
    if not named and not kustomized:
        raise click.UsageError("name the manifests to check: files, directories, patterns, or - for the standard input")
    collect_rarely()
    progress = Progress()
    if fix or add_defaults or write:
        if kustomized:
            raise click.UsageError(
                "--kustomize checks built output, which --fix, --add-defaults and --write cannot change: name the files"
            )
        _check_usage(named, frame.policy, fix=fix, add_defaults=add_defaults, write=write, output=results.output)
        looked = _with_cluster(frame, given, progress)
        progress.close()
        asked = read_files(named, ignore)
        code = _change(asked, looked, fix=fix, write=write, fail_on=results.fail_on)
        click.get_current_context().exit(code)
    read = chain(read_files(named, ignore), built(kustomized))
    result = look(read, _with_cluster(frame, given, progress), progress=progress)
    progress.close()
    print_faults(result.faults, verbose=results.verbose)
    render = renderer(results.output, results.report_api, verbose=results.verbose)
    print_results(render(result, color=colored(sys.stdout)))
    print_failures(result.failures)
    click.get_current_context().exit(exit_code(result, results.fail_on))


def _with_cluster(frame: Frame, given: Given, progress: Progress) -> Frame:
    """The frame with the cluster named by options, if any."""
    if given == Given():
        return frame
    from webhook.cli.cluster_source import beside, read_cluster  # noqa: PLC0415 offline work does without

    known = read_cluster(given, frame.policy, progress, as_version=frame.asked_version)
    return frame if known is None else beside(known, frame)


def _check_usage(  # noqa: PLR0913 one parameter an option
    paths: Sequence[str], policy: Policy, *, fix: str | None, add_defaults: bool, write: bool, output: str
) -> None:
    """Refuse combinations of options that make no sense. Errors: click.UsageError."""
    if fix and add_defaults:
        raise click.UsageError("--fix and --add-defaults may change the same lines: one first, then the other")
    if not fix and not add_defaults:
        raise click.UsageError("--write writes what --fix or --add-defaults shows: give one of them too")
    if output != "text":
        option = "--fix" if fix else "--add-defaults"
        raise click.UsageError(f"-o is for findings, which {option} does not print")
    if write and STDIN in paths:
        raise click.UsageError("the standard input cannot be written to; without --write the changes are printed")
    defaults = policy.defaults
    given = defaults.defaulting_type == DefaultingType.SYSTEM or defaults.default_constraints or defaults.overrides
    if add_defaults and (defaults.mode == DefaultsMode.OFF or not given):
        raise click.UsageError(
            "--add-defaults needs a configuration with defaults: --config FILE, with defaults.defaultConstraints in it "
            "and a defaults.mode that is not off"
        )


def _change(files: Iterable[File | InputFault], frame: Frame, *, fix: str | None, write: bool, fail_on: str) -> Exit:
    """Print the changes as a diff, or write them."""
    if fix:
        from webhook.cli.commands.check.fix import fix_files  # noqa: PLC0415 each alone is quicker to load

        lowest = Severity.LOW if fix == "all" else Severity.MEDIUM
        return fix_files(files, frame, lowest=lowest, write=write, fail_on=fail_on)
    from webhook.cli.commands.check.add_defaults import add_defaults  # noqa: PLC0415 as above

    return add_defaults(files, frame, write=write)
