"""The console over a file, or over the controller's scans.

A file is looked through once: by `controller --snapshot` at its start, by `webhook --example` when the first page is
asked for.
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
from webhook.cli.terminal import print_faults
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
from webhook.core.scan.scanned import ClusterScan
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File, read_files

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
    if result.scan is None or result.index is None or not result.objects:
        raise CommandError(f"{file}: no object in it can be read", Exit.UNREADABLE)
    found = shown(result.scan, frame.policy, f"snapshot {Path(file).name}", stated_moment(read))
    return structs.replace(found, groups=_groups(read, result.index, frame.policy, found.moment))


def _groups(
    read: Sequence[File | InputFault], index: ReadOnlyIndex, policy: Policy, moment: str
) -> tuple[GroupWithStatus, ...] | None:
    """The groups of the file, as the controller would tell of them; None where the file says nothing of groups."""
    if RESOURCE in index.lacking and not index.namespaces.all_groups():
        return None
    looked = every_group(_selected_pods(read, index), index)
    within = Context(policy=policy, version=index.version, index=index, now=moment)
    return tuple(GroupWithStatus(each.group, _status(each, within)) for each in looked)


def _status(of: GroupInput, within: Context) -> SpreadGroupStatus:
    group, before = of.group, read_status(to_builtins(of.group.status))
    try:
        return group_status(group, of.older, of.pods, before, within)
    except Exception as error:  # noqa: BLE001 whatever one group does to us, the others are shown
        return unevaluated_status(f"failed by a bug: {type(error).__name__}", group.generation, before, within.now)


def _selected_pods(read: Sequence[File | InputFault], index: ReadOnlyIndex) -> Iterator[Pod]:
    """The pods of the file that any group selects; of others the index keeps what they count."""
    selectors = {namespace: [*map(selector_of, groups)] for namespace, groups in index.namespaces.all_groups().items()}
    of_pods = TypeMeta(api_version="v1", kind="Pod")
    for manifest in CheckRun().manifests(read, duplicates=False) if selectors else ():
        if manifest.kind != "Pod" or manifest.namespace not in selectors:
            continue
        pod = decode_or_none(Raw(manifest.json_text), of_pods)
        if isinstance(pod, Pod) and any(each.matches(pod.labels) for each in selectors[manifest.namespace]):
            yield pod


def once(look: Callable[[], Shown]) -> Callable[[], Shown]:
    """Look when it is first asked for; whoever asks meanwhile waits for the same answer."""
    lock, kept = threading.Lock(), functools.cache(look)

    def ask() -> Shown:
        with lock:
            return kept()

    return ask


def of_scanner(
    scanner: Scanner, elector: Elector, policy: Callable[[], Policy], authority: AuthorityUpkeep | None = None
) -> Callable[[], Shown]:
    """What the controller's last scan found; a replica that stands by says who leads."""

    def ask() -> Shown:
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
        waiting = "" if elector.leading else f"This replica stands by: {elector.holder or 'nobody'} leads, and scans."
        return Shown(
            scan=None if latest is None else latest.scan,
            source="the cluster",
            health=health,
            moment="" if latest is None else latest.scan.ended,
            live=True,
            waiting=waiting or scanner.fault,
            groups=tuple(scanner.groups.found.values()),
        )

    return ask


def start(source: Callable[[], Shown], cluster: Sequence[str], bind: tuple[str, int] | None = None) -> str:
    """Serve the console from a thread of this process, and say where.

    Shape: ``cluster`` are the options that name the same cluster for `simulate`. Without ``bind`` it is a free port of
    this machine.
    Errors: OSError if the address cannot be had.
    """
    host, port = bind or (_HOST, _PORT)
    app = create_console(source, Simulator(cluster), LOCAL_HOSTS | {f"[{host}]" if ":" in host else host})
    try:
        server = ConsoleServer(host, port, app)
    except OSError:
        if bind is not None:
            raise
        server = ConsoleServer(_HOST, 0, app)  # somebody else has the port
    server.start()
    return server.url


def of_file(file: str, config: str | None, frame: Frame) -> tuple[Callable[[], Shown], Sequence[str]]:
    """The source over a file, and the options that name it."""
    return once(lambda: over_file(file, frame)), ("--snapshot", file, *(("--config", config) if config else ()))
