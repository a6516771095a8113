"""The console's data: from a file, or from the controller's scans.

A file is scanned once: by `controller --snapshot` at its start, by `webhook --example` for the first page.
"""

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Raw, structs, to_builtins

from webhook.cli.checking.results import RunResult
from webhook.cli.checking.run import CheckRun
from webhook.cli.checking.whole_cluster import examine_cluster, stated_moment, stated_version
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.frame import Frame
from webhook.cli.output.terminal import print_faults
from webhook.cluster.writing.lease import Elector
from webhook.console.app import LOCAL_HOSTS, create_console
from webhook.console.rendering import single_file
from webhook.console.serving import ConsoleServer
from webhook.console.shown import Health, Shown
from webhook.console.what_if import Simulator
from webhook.controller.authority import AuthorityUpkeep
from webhook.controller.scan import Scanner
from webhook.core.api.spread_group import RESOURCE
from webhook.core.api.types import Pod, TypeMeta
from webhook.core.context import Context
from webhook.core.groups.status.assess import unevaluated_status
from webhook.core.groups.status.forms import GroupWithStatus, SpreadGroupStatus, read_status
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.index.readers import decode_or_none
from webhook.core.policy.policy import Policy
from webhook.core.scan.group_members import GroupInput, every_group, group_status, selector_of
from webhook.core.scan.scan_results import ClusterScan
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File, read_files

_HOST, _PORT = "127.0.0.1", 8080
WHAT_IF_WORKER = "webhook.cli.commands.simulate.worker"


def shown(scan: ClusterScan, policy: Policy, source: str, moment: str) -> Shown:
    """A scan with its source and time, for the console. An empty ``moment`` is now."""
    health = Health(ceiling=str(policy.ceiling), defaults_mode=str(policy.defaults.mode))
    return Shown(scan=scan, source=source, health=health, moment=moment or datetime.now(UTC).isoformat())


def page(result: RunResult, policy: Policy, source: str, moment: str) -> Iterator[str]:
    """Render the scan of a whole cluster as one HTML file. Yields nothing without a scan."""
    if result.scan is not None:
        yield single_file(shown(result.scan, policy, source, moment), result.scan)


def shown_file(file: str, frame: Frame) -> Shown:
    """Scan a snapshot or output of kubectl for the console. Raises CommandError if the file has no readable object."""
    read = [*read_files((file,), unpack=True)]
    result = examine_cluster(read, structs.replace(frame, cluster_version=stated_version(read)))
    print_faults(result.faults)
    if result.scan is None or result.index is None or not result.objects:
        raise CommandError(f"{file}: no readable object in this file", Exit.UNREADABLE)
    scan = shown(result.scan, frame.policy, f"snapshot {Path(file).name}", stated_moment(read))
    return structs.replace(scan, groups=_groups(read, result.index, frame.policy, scan.moment))


def _groups(
    read: Sequence[File | InputFault], index: ReadOnlyIndex, policy: Policy, moment: str
) -> tuple[GroupWithStatus, ...] | None:
    """The groups of the file, with the controller's status. None if the file lacks SpreadGroups."""
    if RESOURCE in index.lacking and not index.namespaces.all_groups():
        return None
    groups = every_group(_selected_pods(read, index), index)
    context = Context(policy=policy, version=index.version, index=index, now=moment)
    return tuple(GroupWithStatus(observed.group, _status(observed, context)) for observed in groups)


def _status(observed: GroupInput, context: Context) -> SpreadGroupStatus:
    group, before = observed.group, read_status(to_builtins(observed.group.status))
    try:
        return group_status(group, observed.older, observed.pods, before, context)
    except Exception as error:  # noqa: BLE001 a bug on one group must not hide the others
        text = f"failed because of a bug: {type(error).__name__}"
        return unevaluated_status(text, group.generation, before, context.now)


def _selected_pods(read: Sequence[File | InputFault], index: ReadOnlyIndex) -> Iterator[Pod]:
    """Yield the file's pods that a group selects. The index keeps only counts of pods."""
    selectors = {namespace: [*map(selector_of, groups)] for namespace, groups in index.namespaces.all_groups().items()}
    of_pods = TypeMeta(api_version="v1", kind="Pod")
    for manifest in CheckRun().manifests(read, duplicates=False) if selectors else ():
        if manifest.kind != "Pod" or manifest.namespace not in selectors:
            continue
        pod = decode_or_none(Raw(manifest.json_text), of_pods)
        if isinstance(pod, Pod) and any(selector.matches(pod.labels) for selector in selectors[manifest.namespace]):
            yield pod


def computed_once(compute: Callable[[], Shown]) -> Callable[[], Shown]:
    """Return a function with the cached result of ``compute``.

    The first call runs ``compute``. Concurrent calls wait for its result.
    """
    lock, cached = threading.Lock(), functools.cache(compute)

    def get() -> Shown:
        with lock:
            return cached()

    return get


def scanner_source(
    scanner: Scanner, elector: Elector, policy: Callable[[], Policy], authority: AuthorityUpkeep | None = None
) -> Callable[[], Shown]:
    """Return a function that returns the data of the console's pages.

    The data is the last scan, and the health of the installation. On a standby replica, it also names the leader.
    """

    def get() -> Shown:
        latest, feed, decided = scanner.latest, scanner.feed, policy()
        age = None if feed is None or not feed.synced else feed.age
        ends = None if authority is None else authority.expires
        health = Health(
            ceiling=str(decided.ceiling),
            defaults_mode=str(decided.defaults.mode),
            fault=scanner.fault,
            cluster_age=age,
            certificate_days=None if ends is None else (ends - datetime.now(UTC)) / timedelta(days=1),
        )
        leader = f"{elector.holder} leads and scans" if elector.holder else "no replica leads yet"
        waiting = "" if elector.leading else f"This replica is on standby: {leader}."
        return Shown(
            scan=None if latest is None else latest.scan,
            source="the cluster",
            health=health,
            moment="" if latest is None else latest.scan.ended,
            live=True,
            waiting=waiting or scanner.fault,
            groups=tuple(scanner.groups.found.values()),
        )

    return get


def start(source: Callable[[], Shown], cluster: Sequence[str], bind: tuple[str, int] | None = None) -> str:
    """Serve the console from a thread of this process, and return its URL. Without ``bind``, it uses a free port.

    ``cluster`` are options for `simulate` to read the same cluster. Raises OSError if the address is not available.
    """
    host, port = bind or (_HOST, _PORT)
    hosts = LOCAL_HOSTS | {f"[{host}]" if ":" in host else host}
    app = create_console(source, Simulator(WHAT_IF_WORKER, cluster), hosts)
    try:
        server = ConsoleServer(host, port, app)
    except OSError:
        if bind is not None:
            raise
        server = ConsoleServer(_HOST, 0, app)  # another program has the port
    server.start()
    return server.url


def file_source(file: str, config: str | None, frame: Frame) -> tuple[Callable[[], Shown], Sequence[str]]:
    """Return the console's data source for a file, and the options for `simulate` to read the file."""
    return computed_once(lambda: shown_file(file, frame)), (
        "--snapshot",
        file,
        *(("--config", config) if config else ()),
    )
