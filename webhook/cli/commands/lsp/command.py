"""``evenspread lsp``: the language server for editors."""

import gc

import click
from msgspec import structs

from webhook.cli.checking.levels import Level, levels
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import ClusterSelection
from webhook.cli.options import cluster_options, review_options
from webhook.cli.output.long_runs import Progress, collect_rarely


@click.command(
    short_help="Check manifests in your editor (language server).",
    epilog="Exit code: 0 the editor ended the server, 1 exit without a shutdown request, 2 usage or configuration, "
    "3 unreadable snapshot, 4 cluster not readable.",
)
@click.option("--require-reasons", is_flag=True, help="Require a reason in every ignore comment.")
@click.option(
    "--level",
    type=click.Choice([*map(str, Level)]),
    help="Lowest shown level. audit adds findings that the webhook only records.  [default: low; audit with --rule]",
)
@click.option("--stdio", is_flag=True, expose_value=False, help="Accepted, since some editors add it. No effect.")
@cluster_options
@review_options
def lsp(*, require_reasons: bool, level: str | None, frame: Frame, selection: ClusterSelection) -> None:
    """Run a language server (LSP) on standard input and output. Your editor starts it.

    It shows the findings of `evenspread check FILE` while you type, with fixes and ignore comments as code actions.
    With --snapshot or a cluster, it completes label keys of nodes, and shows the domains of a topologyKey.

    The policy and the cluster are read once, at the start.
    """
    from webhook.cli.commands.lsp.server import create_server  # noqa: PLC0415 --help needs no extra

    frame = structs.replace(frame, reasons_required=require_reasons)
    if selection != ClusterSelection():
        from webhook.cli.cluster_source import with_selected_cluster  # noqa: PLC0415 not needed offline

        progress = Progress()
        frame = with_selected_cluster(frame, selection, progress)
        progress.close()
    collect_rarely()
    gc.freeze()  # a collection over the cluster's objects would delay a keystroke
    shown = levels(level, None, None, named=bool(frame.rules)).shown
    create_server(frame, shown).start_io()
