"""The console: over a file, which is looked through once, when the first page is asked for; and served beside it."""

import functools
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from msgspec import structs

from webhook.cli.checking.frame import Frame
from webhook.cli.checking.results import RunResult
from webhook.cli.checking.whole_cluster import examine_cluster, stated_moment, stated_version
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.terminal import print_faults
from webhook.console.app import create_console
from webhook.console.serving import ConsoleServer
from webhook.console.shown import Health, Shown
from webhook.console.single_file import single_file
from webhook.console.what_if import Simulator
from webhook.core.policy.policy import Policy
from webhook.core.scan.scanned import ClusterScan
from webhook.manifests.reading.files import read_files

_HOST, _PORT = "127.0.0.1", 8080


def shown(scan: ClusterScan, policy: Policy, source: str, moment: str) -> Shown:
    """A scan of one moment; without one, of now."""
    health = Health(ceiling=str(policy.ceiling), defaults_mode=str(policy.defaults.mode))
    return Shown(scan=scan, source=source, health=health, moment=moment or datetime.now(UTC).isoformat())


def page(result: RunResult, policy: Policy, source: str, moment: str) -> Iterator[str]:
    """A whole cluster as one HTML file."""
    if result.scan is not None:
        yield single_file(shown(result.scan, policy, source, moment), result.scan)


def over_file(file: str, frame: Frame) -> Shown:
    """What a snapshot shows, or what kubectl printed.

    Errors: CommandError for a file in which no object can be read.
    """
    read = [*read_files((file,), unpack=True)]
    result = examine_cluster(read, structs.replace(frame, cluster_version=stated_version(read)))
    print_faults(result.faults)
    if result.scan is None or not result.objects:
        raise CommandError(f"{file}: no object in it can be read", Exit.UNREADABLE)
    return shown(result.scan, frame.policy, f"snapshot {Path(file).name}", stated_moment(read))


def once(look: Callable[[], Shown]) -> Callable[[], Shown]:
    """Look when it is first asked for; whoever asks meanwhile waits for the same answer."""
    lock, kept = threading.Lock(), functools.cache(look)

    def ask() -> Shown:
        with lock:
            return kept()

    return ask


def start(file: str, config: str | None, frame: Frame) -> str:
    """Serve the console over a file from a thread of this process, and say where."""
    cluster = ("--snapshot", file, *(("--config", config) if config else ()))
    app = create_console(once(lambda: over_file(file, frame)), Simulator(cluster))
    try:
        server = ConsoleServer(_HOST, _PORT, app)
    except OSError:
        server = ConsoleServer(_HOST, 0, app)  # somebody else has the port
    server.start()
    return server.url
