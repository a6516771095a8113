"""``evenspread snapshot``: write a cluster into a file."""

import contextlib
import errno
import gzip
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.live_cluster import ClusterSelection, open_cluster, reading
from webhook.cli.options import cluster_options, policy_option
from webhook.cli.output.long_runs import Progress, collect_rarely
from webhook.cli.output.page import counted_kinds
from webhook.cli.output.terminal import print_message
from webhook.cluster.resources import BUDGETS
from webhook.core.policy.policy import Policy
from webhook.core.text import plural
from webhook.snapshot.capture import CapturedSnapshot, capture, take_file, without_names
from webhook.snapshot.load import SnapshotError

_MAX_KINDS = 4  # in the summary, those with most objects; it fits a line


def _with_directory(file: str | None) -> str | None:
    """Raise CommandError if the output's directory does not exist, before the cluster is read."""
    if file is not None and not Path(file).parent.is_dir():
        raise CommandError(f"{file}: cannot be written: {os.strerror(errno.ENOENT)}")
    return file


@click.command(
    short_help="Save a cluster into a file.",
    epilog="Exit code: 0 written, 2 usage or configuration, 3 unreadable input, 4 cluster not readable, 5 disk full.",
)
@click.option(
    "-o",
    "--output",
    "file",
    metavar="FILE",
    type=click.Path(),
    callback=lambda _context, _parameter, file: _with_directory(file),
    help="Output file, compressed if the name ends in .gz.  [default: stdout]",
)
@click.option("--anonymise", is_flag=True, help="Replace all names. Findings and verdicts stay the same.")
@cluster_options
@policy_option
def snapshot(*, file: str | None, anonymise: bool, selection: ClusterSelection, policy: Policy) -> None:
    """Save a cluster into a file. Read it with `audit FILE`, or with --snapshot in any other command.

    snapshot only uses get and list. It writes only fields with an effect on answers: no environment variables, commands
    or images, and nothing from Secrets and ConfigMaps. Only the file's owner may read it. The file appears when it is
    complete.

    snapshot reads the kubeconfig's current cluster unless you select another. With --snapshot, it converts a file:
    another snapshot, or output of kubectl.
    """
    if file is None and sys.stdout.isatty():
        raise click.UsageError("add -o FILE, or redirect the output into a file")
    collect_rarely()
    began, progress = time.monotonic(), Progress()
    with _opened(file) as target:
        taken = _taken(selection, policy, progress)
        if anonymise:
            taken = without_names(taken)
        progress.close()
        for line in taken.missing:
            print_message(f"{taken.source}: note: {line}")
        written = _write(taken, target, packed=file is not None and file.endswith(".gz"))
    objects = f"{plural(sum(taken.kinds.values()), 'object')} ({counted_kinds(taken.kinds, _MAX_KINDS)})"
    click.echo(f"{taken.source}, Kubernetes {taken.header.kubernetes_version or 'unknown'}: {objects}", err=True)
    click.echo(f"{file or 'written'}: {written}, {time.monotonic() - began:.1f} s", err=True)


def _taken(selection: ClusterSelection, policy: Policy, progress: Progress) -> CapturedSnapshot:
    """Take the snapshot of a cluster or file. Raises CommandError, with exit code 3 for a file, else 4."""
    if not selection.snapshot:
        with reading():
            return capture(open_cluster(selection), policy, progress, (BUDGETS,))
    try:
        return take_file(selection.snapshot, policy)
    except SnapshotError as error:
        raise CommandError(str(error), Exit.UNREADABLE) from error


@contextlib.contextmanager
def _opened(file: str | None) -> Iterator[BinaryIO]:
    """Open a file for writing, readable by its owner only.

    The content goes to a temporary file, renamed to ``file`` when complete. None means the standard output. Raises
    CommandError if the file cannot be created.
    """
    if file is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(file)
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
    except OSError as error:
        raise CommandError(f"{file}: cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(descriptor, "wb") as target:
            yield target
            target.flush()
            os.fsync(target.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _write(taken: CapturedSnapshot, target: BinaryIO, *, packed: bool) -> str:
    """Write the snapshot, and return its size as text."""
    before, plain = target.tell() if packed else 0, 0
    out: BinaryIO | gzip.GzipFile = target
    with contextlib.ExitStack() as stack:
        if packed:
            out = stack.enter_context(gzip.GzipFile(fileobj=target, mode="wb", filename="", mtime=0))
        for line in taken.lines():
            out.write(line)
            plain += len(line)
    return f"{_bytes(target.tell() - before)} ({_bytes(plain)} unpacked)" if packed else _bytes(plain)


def _bytes(count: int) -> str:
    if count < 2**20:
        return f"{count / 2**10:.1f} KiB"
    return f"{count / 2**20:.1f} MiB"
