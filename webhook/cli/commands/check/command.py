"""``evenspread check``: the rules over manifests."""

import sys
from itertools import chain

import click

from webhook.cli.checking.results import exit_code, print_failures
from webhook.cli.checking.run import look
from webhook.cli.commands.check.kustomize import built
from webhook.cli.formats import renderer
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import Given
from webhook.cli.options import Results, cluster_options, looking_options, result_options
from webhook.cli.terminal import Progress, collect_rarely, colored, print_faults, print_results
from webhook.manifests.reading.files import read_files


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
    "--ignore", multiple=True, metavar="PATTERN", help="Leave out files and directories whose path or name matches."
)
@click.option(
    "--kustomize",
    "-k",
    "kustomized",
    multiple=True,
    metavar="DIR",
    help="Check what kustomize, or kubectl, builds of this directory; may be repeated.",
)
@click.option(
    "--fix",
    type=click.Choice(["some", "all"]),
    metavar="[=all]",
    help="Print the fixes of findings of high and medium severity as a diff, and the findings that they leave. "
    "--fix=all: of low severity too.",
)
@click.option(
    "--add-defaults",
    is_flag=True,
    help="Print as a diff what the configured defaults add to workloads without constraints.",
)
@click.option("--write", is_flag=True, help="Write what --fix or --add-defaults shows into the files.")
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
    """Check manifests: what kube-apiserver would say of their spread constraints, and what is legal but wrong.

    PATH is a file, a directory (all .yaml, .yml and .json files below it), a pattern, or - for the standard input:

      helm template CHART | evenspread check -
    """
    named = (*paths, *files)
    if not named and not kustomized:
        raise click.UsageError("name the manifests to check: files, directories, patterns, or - for the standard input")
    collect_rarely()
    progress = Progress()
    if fix or add_defaults or write:
        from webhook.cli.commands.check.changes import check_usage, make  # noqa: PLC0415 most runs do without

        if kustomized:
            raise click.UsageError(
                "--kustomize checks built output, which --fix, --add-defaults and --write cannot change: name the files"
            )
        check_usage(named, frame.policy, fix=fix, add_defaults=add_defaults, write=write, output=results.output)
        looked = _with_cluster(frame, given, progress)
        progress.close()
        asked = read_files(named, ignore)
        code = make(asked, looked, fix=fix, write=write, fail_on=results.fail_on)
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
    """The frame with what is known of the cluster that was named, if one was."""
    if given == Given():
        return frame
    from webhook.cli.cluster_source import beside, read_cluster  # noqa: PLC0415 offline work does without

    known = read_cluster(given, frame.policy, progress, as_version=frame.asked_version)
    return frame if known is None else beside(known, frame)
