"""``evenspread check``: check manifests."""

from collections.abc import Iterable, Sequence
from itertools import chain

import click
from msgspec import structs

from webhook.cli.checking.baseline import read_baseline, without_known, written_baseline
from webhook.cli.checking.levels import Level, Levels, exit_code, levels, selected
from webhook.cli.checking.results import RunResult, print_failures
from webhook.cli.checking.run import examine_files
from webhook.cli.commands.check.kustomize import built
from webhook.cli.exit_codes import Exit
from webhook.cli.formats import renderer
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import ClusterSelection
from webhook.cli.options import ResultOptions, cluster_options, result_options, review_options
from webhook.cli.output.long_runs import Progress, collect_rarely
from webhook.cli.output.terminal import print_faults, print_results
from webhook.core.policy.options import DefaultsMode
from webhook.core.policy.policy import Policy
from webhook.core.scheduler.profile import DefaultingType
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import STDIN, File, read_files


class _Check(click.Command):
    """The command. ``--fix`` alone means ``--fix=some``, and never consumes the next argument."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = args[: args.index("--")] if "--" in args else args
        rest = args[len(options) :]
        return super().parse_args(ctx, [*("--fix=some" if word == "--fix" else word for word in options), *rest])


@click.command(
    cls=_Check,
    short_help="Check manifests before you apply them, and fix them.",
    epilog="Exit code: 0 no findings at or above --fail-on, 1 findings at or above it, 2 usage or configuration, "
    "3 unreadable input, 4 cluster not readable, 5 a bug of evenspread.",
)
@click.argument("paths", nargs=-1, metavar="PATH...|-")
@click.option("-f", "--filename", "files", multiple=True, metavar="PATH", help="The same as the argument PATH.")
@click.option(
    "--ignore", multiple=True, metavar="PATTERN", help="Skip files and directories with a matching path or name."
)
@click.option(
    "--kustomize",
    "-k",
    "kustomized",
    multiple=True,
    metavar="DIR",
    help="Build this directory with kustomize or kubectl, and check the output. Repeat -k for more.",
)
@click.option(
    "--fix",
    type=click.Choice(["some", "all"]),
    metavar="[=all]",
    help="Print fixes of levels high and medium as a diff, then the remaining findings. --fix=all includes all levels.",
)
@click.option(
    "--add-defaults",
    is_flag=True,
    help="Print a diff that adds the configured defaults to workloads without constraints.",
)
@click.option("--require-reasons", is_flag=True, help="Require a reason in every ignore comment.")
@click.option(
    "--level",
    type=click.Choice([*map(str, Level)]),
    help="Lowest printed level. audit adds findings that the webhook only records.  [default: low; audit with --rule "
    "or -o report]",
)
@click.option("--baseline", metavar="FILE", help="Hide the findings in this file. List those that are fixed.")
@click.option("--write-baseline", metavar="FILE", help="Write all findings into a file for --baseline.")
@click.option("--write", is_flag=True, help="Write the changes of --fix or --add-defaults into the files.")
@result_options()
@cluster_options
@review_options
def check(  # noqa: PLR0913 one parameter an option
    *,
    paths: tuple[str, ...],
    files: tuple[str, ...],
    ignore: tuple[str, ...],
    kustomized: tuple[str, ...],
    fix: str | None,
    add_defaults: bool,
    require_reasons: bool,
    level: str | None,
    baseline: str | None,
    write_baseline: str | None,
    write: bool,
    results: ResultOptions,
    frame: Frame,
    selection: ClusterSelection,
) -> Exit:
    """Check the spread constraints of manifests, for errors of kube-apiserver and for mistakes that it accepts.

      evenspread check manifests/

      helm template CHART | evenspread check -

    PATH is a file, a directory with .yaml, .yml and .json files, a pattern, or - for the standard input. Some rules
    need nodes and pods: add --cluster, or --snapshot FILE.
    """
    named = (*paths, *files)
    if not named and not kustomized:
        raise click.UsageError("add the manifests to check: files, directories, patterns, or - for the standard input")
    frame = structs.replace(frame, reasons_required=require_reasons)
    collect_rarely()
    progress = Progress()
    if (baseline or write_baseline) and (fix or add_defaults or write or (baseline and write_baseline)):
        raise click.UsageError("--baseline, --write-baseline, --fix and --add-defaults exclude each other: use one")
    named_levels = bool(frame.rules) or results.output == "report"
    chosen = levels(level, fix, results.fail_on, named=named_levels)
    if fix or add_defaults or write:
        _check_usage(named, kustomized, frame.policy, results.output, fix=fix, add_defaults=add_defaults, write=write)
        whole = _with_cluster(frame, selection, progress)
        progress.close()
        return _change(read_files(named, ignore), whole, chosen, fix=fix is not None, write=write)
    known = read_baseline(baseline) if baseline else None
    read = chain(read_files(named, ignore), built(kustomized))
    examined = examine_files(read, _with_cluster(frame, selection, progress), progress=progress)
    progress.close()
    if write_baseline is not None:
        return _write_baseline(write_baseline, examined, verbose=results.verbose)
    if baseline and known:
        examined = without_known(examined, known, baseline, frame.rules)
    result = selected(examined, chosen.shown)
    print_faults(result.faults, verbose=results.verbose)
    render = renderer(results.output, results.report_api, verbose=results.verbose)
    print_results(render(result))
    print_failures(result.failures)
    return exit_code(result, chosen.fail_on)


def _write_baseline(name: str, examined: RunResult, *, verbose: bool) -> Exit:
    """Write the baseline file if the check is complete. Return the exit code."""
    print_faults(examined.faults, verbose=verbose)
    print_failures(examined.failures)
    code = exit_code(examined, None)
    if code is Exit.FINE:
        click.echo(written_baseline(name, examined), err=True)
    return code


def _with_cluster(frame: Frame, selection: ClusterSelection, progress: Progress) -> Frame:
    if selection == ClusterSelection():
        return frame
    from webhook.cli.cluster_source import with_selected_cluster  # noqa: PLC0415 offline work does without

    return with_selected_cluster(frame, selection, progress)


def _check_usage(  # noqa: PLR0913 one parameter an option
    paths: Sequence[str],
    kustomized: Sequence[str],
    policy: Policy,
    output: str,
    *,
    fix: str | None,
    add_defaults: bool,
    write: bool,
) -> None:
    """Raise click.UsageError if the options contradict each other."""
    if kustomized:
        raise click.UsageError(
            "--fix, --add-defaults and --write cannot change the output of --kustomize: add the files instead"
        )
    if fix and add_defaults:
        raise click.UsageError("--fix and --add-defaults may change the same lines: run one first, then the other")
    if not fix and not add_defaults:
        raise click.UsageError("--write needs --fix or --add-defaults")
    if output != "text":
        option = "--fix" if fix else "--add-defaults"
        raise click.UsageError(f"{option} prints a diff: remove -o")
    if write and STDIN in paths:
        raise click.UsageError("--write needs files: remove it to print the changes of the standard input")
    defaults = policy.defaults
    has_defaults = (
        defaults.defaulting_type == DefaultingType.SYSTEM or defaults.default_constraints or defaults.overrides
    )
    if add_defaults and (defaults.mode == DefaultsMode.OFF or not has_defaults):
        raise click.UsageError(
            "--add-defaults needs a configuration with defaults: add --config FILE with defaults.defaultConstraints "
            "and a defaults.mode other than off"
        )


def _change(files: Iterable[File | InputFault], frame: Frame, chosen: Levels, *, fix: bool, write: bool) -> Exit:
    """Fix findings with ``fix``, else add default constraints. Write the files with ``write``, else print a diff."""
    if fix:
        from webhook.cli.commands.check.fix import fix_files  # noqa: PLC0415 each alone is quicker to load

        return fix_files(files, frame, chosen, write=write)
    from webhook.cli.commands.check.add_defaults import add_defaults  # noqa: PLC0415 as above

    return add_defaults(files, frame, write=write)
