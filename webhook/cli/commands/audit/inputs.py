"""The clusters to audit: a live one for each context, or the snapshots among the files.

A snapshot holds a whole cluster. Other files are parts of one cluster, for example a List of each kind.
"""

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import click
from msgspec import Struct

from webhook.cli.checking.whole_cluster import is_snapshot
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.frame import Frame
from webhook.cli.live_cluster import ClusterSelection
from webhook.cli.options import cluster_options, review_options
from webhook.cli.output.long_runs import Progress
from webhook.cli.output.terminal import print_faults, print_message
from webhook.core.text import one_line
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File, read_files

Content = Sequence[File | InputFault]
Settings = Callable[[str | None], tuple[Frame, ClusterSelection]]


class ClusterInput(Struct, frozen=True, kw_only=True):
    """A cluster, and how to read it with its settings. ``open`` raises CommandError if it cannot be read.

    The only cluster of a run has no name.
    """

    name: str = ""
    live: bool = False
    open: Callable[[], tuple[Frame, Content]]


def settings_options(command: Callable[..., object]) -> Callable[..., object]:
    """Add `review_options`, and `cluster_options` with a repeatable --context.

    The command gets ``contexts`` and the function ``settings``. ``settings(context)`` returns the frame and the cluster
    selection of a context, because each live cluster has a policy of its own.
    """
    settings_of = cluster_options(review_options(_settings, _NAMESPACE_HELP), repeatable=True)

    @functools.wraps(settings_of, assigned=())  # for its options
    @functools.wraps(command)
    def with_settings(*, files: tuple[str, ...], summary: bool, context: tuple[str, ...], **options: object) -> object:
        return command(
            files=files,
            summary=summary,
            results=options["results"],
            contexts=tuple(dict.fromkeys(context)),
            settings=lambda name: settings_of(context=name, **options),
        )

    return with_settings


def _settings(*, frame: Frame, selection: ClusterSelection, **_others: object) -> tuple[Frame, ClusterSelection]:
    return frame, selection


def cluster_inputs(
    files: tuple[str, ...], contexts: tuple[str, ...], settings: Settings, progress: Progress
) -> Iterator[ClusterInput]:
    """Yield the clusters of the command line. Raises click.UsageError for files beside a live cluster."""
    if len(contexts) > 1:
        if files:
            raise click.UsageError(_EXCLUSIVE)
        for name in contexts:
            yield ClusterInput(name=name, live=True, open=partial(_open_live, name, settings, progress))
        return
    frame, selection = settings(contexts[0] if contexts else None)
    if selection.live and files:
        raise click.UsageError(_EXCLUSIVE)
    if selection.live:
        yield ClusterInput(live=True, open=lambda: (frame, _read_live(selection, frame, progress)))
        return
    if sys.stdin.isatty() and not (files or selection.snapshot):
        raise click.UsageError("add --cluster, or FILE (- for the standard input)")
    named = (*files, selection.snapshot) if selection.snapshot else files
    for name, content in _split(read_files(named or ("-",), unpack=True)):
        yield ClusterInput(name=name, open=partial(_opened, frame, name, content))


def _split(files: Iterator[File | InputFault]) -> Iterator[tuple[str, Content]]:
    """Yield the name and the files of each cluster.

    Each file is a separate cluster in two cases: there are two or more snapshots, or there is one snapshot and all
    other files are unreadable. Otherwise all files are one cluster, with an empty name.

    Files are read one by one, so only a few clusters are in memory at once.
    """
    first, snapshots, parts = list[File | InputFault](), 0, False
    for file in files:
        first.append(file)
        if is_snapshot(file):
            snapshots += 1
        elif isinstance(file, File):
            parts = True
        if snapshots > 1:
            break
    unread = [file for file in first if isinstance(file, InputFault) and file.fatal]
    if snapshots < 2 and not (snapshots and unread and not parts):
        yield "", first
        return
    while first:
        yield from _alone(first.pop(0))
    for file in files:
        yield from _alone(file)


def _alone(file: File | InputFault) -> Iterator[tuple[str, Content]]:
    """Yield a file as the input of a separate cluster, also for a fatal fault. Other faults are printed."""
    if isinstance(file, File):
        yield file.name, [file]
    elif file.fatal:
        yield file.file, [file]
    else:
        print_faults([file])


def _opened(frame: Frame, name: str, content: Content) -> tuple[Frame, Content]:
    """Return the files of a cluster and its frame. Raises CommandError if a named cluster is no snapshot."""
    for file in content if name else ():
        if isinstance(file, InputFault):
            raise CommandError(str(file), Exit.UNREADABLE)
        if not is_snapshot(file):
            raise CommandError(f"{one_line(name)}: {_NOT_A_SNAPSHOT}", Exit.UNREADABLE)
    return frame, content


def _open_live(name: str, settings: Settings, progress: Progress) -> tuple[Frame, Content]:
    frame, selection = settings(name)
    return frame, _read_live(selection, frame, progress)


def _read_live(selection: ClusterSelection, frame: Frame, progress: Progress) -> Content:
    """Read a live cluster as a snapshot. So an audit has the same findings for a cluster and its snapshot."""
    from webhook.cli.live_cluster import open_cluster, reading  # noqa: PLC0415 offline work does without
    from webhook.snapshot.capture import capture  # noqa: PLC0415 as above

    live = open_cluster(selection)
    with reading():
        taken = capture(live, frame.policy, progress)
    for line in taken.missing:
        print_message(f"{live.source}: note: {line}")
    return [File(live.source, b"".join(taken.lines()))]


_NAMESPACE_HELP = "Check only this namespace. Objects without a namespace belong to it."
_EXCLUSIVE = "files and a live cluster exclude each other: remove one of them"
_NOT_A_SNAPSHOT = "not a snapshot; evenspread snapshot --snapshot FILE makes one of any other file"
