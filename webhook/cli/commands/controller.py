"""``evenspread controller``: scan the cluster and maintain the CA, until a signal ends it."""

import logging
import os
import signal
import socket
import sys
import threading
import uuid
from datetime import timedelta
from pathlib import Path

import click
from msgspec import Struct

from webhook import logs
from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.frame import Frame, today
from webhook.cli.parameters import OBJECT_NAME, duration
from webhook.cli.server_options import address, api_server, ca_options, lifetimes, loaded_policy, option
from webhook.cluster.connection import ApiServer
from webhook.cluster.writing.ca_bundle import KINDS
from webhook.cluster.writing.ca_secret import CaSecret
from webhook.cluster.writing.lease import Elector
from webhook.config import reloaded
from webhook.console.shown import Source
from webhook.controller.admission_policies import PolicyUpkeep
from webhook.controller.authority import AuthorityUpkeep, Replicas
from webhook.controller.run import Controller, run
from webhook.controller.scan import Scanner
from webhook.controller.scan_inputs import ScanSettings
from webhook.core.policy.policy import Policy

_HEALTH_BIND = "0.0.0.0:10251"
_CONSOLE = "127.0.0.1:8080"

_log = logging.getLogger(__name__)


class ControllerOptions(Struct, frozen=True, kw_only=True):
    """The options of the command line and of EVENSPREAD_* variables."""

    ca_secret: tuple[str, str] | None
    ca_duration: timedelta
    leaf_duration: timedelta
    configuration: str
    expect: tuple[str, ...]
    deployment: tuple[str, str] | None
    settle_seconds: float
    lease: tuple[str, str] | None
    admission_policies: bool
    scan: bool
    config: str | None
    scan_interval: timedelta
    scan_full_interval: timedelta
    scan_share: float
    reports: bool
    events: bool
    guard_scale_in: bool
    all_workloads: bool
    health_bind: str
    log_level: str
    console: str | None
    snapshot: str | None
    kubeconfig: str | None
    context: str | None

    @property
    def tasks(self) -> tuple[object, ...]:
        """The options that give the controller something to do."""
        return self.ca_secret, self.deployment, self.scan, self.admission_policies


def _share(_context: click.Context, _parameter: click.Parameter, value: float) -> float:
    if value <= 0:
        raise click.BadParameter("must be more than 0")
    return value


@click.command(name="controller", short_help="Run the controller: scans, reports, CA rotation.")
@ca_options
@option(
    "--configuration",
    metavar="NAME",
    default="evenspread",
    show_default=True,
    help="Name of the webhook configurations.",
)
@option(
    "--expect",
    type=click.Choice([kind.removesuffix("WebhookConfiguration").lower() for kind in KINDS]),
    multiple=True,
    help="Webhook configurations of the release. This replica is ready when they are complete.",
)
@option(
    "--deployment",
    type=OBJECT_NAME,
    metavar="NAMESPACE/NAME",
    help="The webhook's Deployment. Configurations with failurePolicy Fail get their rules when it is available.",
)
@option(
    "--settle-seconds",
    type=click.FloatRange(0),
    default=6.0,
    show_default=True,
    help="Seconds from a rollout of the webhook's Deployment until this controller replica reports ready.",
)
@option("--lease", type=OBJECT_NAME, metavar="NAMESPACE/NAME", help="Lease that elects the active replica.")
@option(
    "--admission-policies",
    is_flag=True,
    help="Write the admission policies of the chart's bindings, which have the name in --configuration.",
)
@option("--scan/--no-scan", default=False, help="Scan the running workloads of the cluster.")
@option("--config", metavar="FILE", help="SpreadPolicy file. It is reloaded when it changes. Without it, the defaults.")
@option(
    "--scan-interval",
    type=duration(timedelta(seconds=1)),  # --scan-share limits the cost of short intervals
    default=timedelta(minutes=5),
    metavar="DURATION",
    help="Time between two lists of unwatched kinds, and between two rescans of over 50 workloads. [default: 5m]",
)
@option(
    "--scan-full-interval",
    type=duration(timedelta(seconds=1)),
    default=timedelta(hours=1),
    metavar="DURATION",
    help="Time between the starts of two full scans. [default: 1h]",
)
@option(
    "--scan-share",
    type=click.FloatRange(0, 1),
    callback=_share,
    default=0.25,
    show_default=True,
    help="Largest share of one core for scans.",
)
@option("--reports/--no-reports", default=True, help="Write reports, if the cluster has an API for them.")
@option("--events/--no-events", default=True, help="Write an event for each new problem.")
@option(
    "--guard-scale-in/--no-guard-scale-in",
    default=False,
    help="Write pod deletion costs, where the policy's scaleIn or an annotation is guard.",
)
@option(
    "--all-workloads/--worst-workloads",
    default=False,
    help="Export the skew of at most 1,000 workloads: of all, or only those above maxSkew.",
)
@option(
    "--health-bind",
    metavar="HOST:PORT",
    default=_HEALTH_BIND,
    show_default=True,
    help="Address for /healthz, /readyz and /metrics, over plain HTTP.",
)
@option(
    "--log-level", type=click.Choice(logs.LEVELS), default="info", show_default=True, help="Lowest level of log lines."
)
@option("--console", metavar="HOST:PORT", help="With --scan: address of the console, over plain HTTP.")
@click.option(
    "--snapshot", metavar="FILE", help="Only show this file in the console, on 127.0.0.1:8080 or a free port."
)
@click.option("--kubeconfig", metavar="FILE", help="Kubeconfig of the cluster. Without it, the cluster of this pod.")
@click.option("--context", metavar="NAME", help="Context in the kubeconfig.")
def controller(**given: object) -> None:
    """Scan the cluster, publish reports, events and metrics, and rotate the CA in a Secret.

    You can run several replicas: a Lease elects the active one. The controller answers no admission requests.
    """
    options = ControllerOptions(**given)  # type: ignore[arg-type]  # click made each value of the option's own type
    console = None if options.console is None else address("--console", options.console, _CONSOLE)
    if options.snapshot is not None:
        _show_file(options.snapshot, options.config, console)
        return
    if options.lease is None or not any(options.tasks):
        raise CommandError(
            "add --lease, and at least one of --ca-secret, --deployment, --scan and --admission-policies"
        )
    bind = address("--health-bind", options.health_bind, _HEALTH_BIND)
    if options.kubeconfig is None and "KUBERNETES_SERVICE_HOST" not in os.environ:
        raise CommandError("the controller needs a cluster: run it in a pod, or add --kubeconfig FILE")
    policy = _PolicyFile(options.config)
    server = api_server(options.kubeconfig, options.context)
    logs.configure(options.log_level, sys.stderr)
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    elector = Elector(server, options.lease, identity)
    upkeep = _upkeep(server, options) if options.ca_secret or options.deployment else None
    settings = ScanSettings(
        interval=options.scan_interval.total_seconds(),
        full_interval=options.scan_full_interval.total_seconds(),
        share=options.scan_share,
        reports=options.reports,
        events=options.events,
        guard=options.guard_scale_in,
        all_workloads=options.all_workloads,
    )
    scanner = (
        Scanner(server, settings, identity, leading=lambda: elector.leading, policy=policy) if options.scan else None
    )
    if console is not None and scanner is not None:
        from webhook.cli.console_sources import scanner_source  # noqa: PLC0415 only with a console

        _show_scans(scanner_source(scanner, elector, policy, upkeep), options, console)
    policies = PolicyUpkeep(server, options.configuration, policy) if options.admission_policies else None
    try:
        run(Controller(elector, upkeep, scanner, policies), elector, scanner, bind)
    except OSError as error:
        raise CommandError(f"--health-bind {options.health_bind}: {error.strerror}") from error


def _upkeep(server: ApiServer, options: ControllerOptions) -> AuthorityUpkeep:
    secret = replicas = None
    if options.ca_secret is not None:
        secret = CaSecret(server, *options.ca_secret), lifetimes(options.ca_duration, options.leaf_duration)
    if options.deployment is not None:
        replicas = Replicas(server, options.deployment, options.settle_seconds)
    expected = [f"{kind.capitalize()}WebhookConfiguration" for kind in options.expect]
    return AuthorityUpkeep(server, options.configuration, secret, replicas, expected)


def _show_file(file: str, config: str | None, bind: tuple[str, int] | None) -> None:
    """Serve the console for a file until a signal ends it."""
    from webhook.cli.console_sources import file_source, start  # noqa: PLC0415 only with a console

    if not Path(file).is_file():
        raise CommandError(f"{file}: no such file", Exit.UNREADABLE)
    policy = _PolicyFile(config)()
    frame = Frame(policy=policy, today=today())
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    source, cluster = file_source(file, config, frame)
    source()  # reports faults of the file
    try:
        url = start(source, cluster, bind)
    except OSError as error:
        raise CommandError(f"--console: {error.strerror}") from error
    click.echo(f"console: {url} (press Ctrl-C to stop)")
    stop.wait()


def _show_scans(source: Source, options: ControllerOptions, bind: tuple[str, int]) -> None:
    """Serve the console with the controller's scans. If its address is not available, only log a warning."""
    from webhook.cli.console_sources import start  # noqa: PLC0415 only with a console

    named = {"--kubeconfig": options.kubeconfig, "--context": options.context, "--config": options.config}
    cluster = ("--cluster", *(word for flag, value in named.items() if value for word in (flag, value)))
    try:
        url = start(source, cluster, bind)
    except OSError as error:
        _log.warning("the console cannot listen at %s: %s", options.console, error.strerror)
        return
    _log.info("serving the console", extra={"fields": {"console": url}})


class _PolicyFile:
    """Returns the policy in a file, or its last valid version. Raises CommandError for faults at the start."""

    def __init__(self, file: str | None) -> None:
        self._loaded = loaded_policy(file) if file is not None else None

    def __call__(self) -> Policy:
        if self._loaded is None:
            return Policy()
        fresh = reloaded(self._loaded)
        if fresh is not self._loaded and fresh.error is not None:
            _log.error("the configuration is invalid; the last good version stays in use: %s", fresh.error)
        self._loaded = fresh
        return fresh.policy
