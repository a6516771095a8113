"""``evenspread webhook``: answer admission requests until a signal ends it."""

import logging
import os
import shutil
import socket
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NoReturn

import click
from msgspec import Struct, structs

from certs.authority import CertificateError, issue_authority, issue_leaf
from certs.store import live_paths, read_pair, write_pair, write_public
from webhook import logs
from webhook.admission import Engine
from webhook.cli.commands.webhook import example, registered
from webhook.cli.exit_codes import CommandError
from webhook.cli.frame import Frame, today
from webhook.cli.parameters import VERSION
from webhook.cli.server_options import address, api_server, ca_options, lifetimes, loaded_policy, option
from webhook.cluster.connection import ApiServer
from webhook.cluster.feed import Feed
from webhook.cluster.resources import watched
from webhook.cluster.writing.ca_secret import CaSecret
from webhook.config import Loaded
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.policy.policy import Policy
from webhook.server.certificates import OwnCertificate, renew_certificates
from webhook.server.run import Certificates, ServerPlan, listen, serve

# The chart's ports: above 1024, and open in the default firewalls of managed clusters.
_BIND = "0.0.0.0:10250"
_HEALTH_BIND = "0.0.0.0:10251"
_LOCAL_BIND = "127.0.0.1:8443"
_LOCAL_HEALTH_BIND = "127.0.0.1:8081"


class WebhookOptions(Struct, frozen=True, kw_only=True):
    """The options of the command line and of EVENSPREAD_* variables."""

    bind: str | None
    health_bind: str | None
    cert: str | None
    key: str | None
    client_ca: str | None
    tls_name: tuple[str, ...]
    ca_secret: tuple[str, str] | None
    ca_duration: timedelta
    leaf_duration: timedelta
    config: str | None
    snapshot: str | None
    kube_version: KubernetesVersion | None
    drain_seconds: float
    log_level: str | None
    leave_audit_to_scan: bool
    leave_warnings_to_policies: bool
    example: bool
    kubeconfig: str | None
    context: str | None
    advertise: str | None
    register: bool
    yes: bool

    @property
    def registers(self) -> bool:
        """Whether the webhook registers itself with the cluster."""
        return self.kubeconfig is not None and self.register

    @property
    def local(self) -> bool:
        """Whether the webhook runs in a terminal: it may choose free ports, and prints text instead of logs."""
        return self.example or self.registers


@click.command(name="webhook", short_help="Run the admission webhook.")
@option("--bind", metavar="HOST:PORT", help=f"Address for admission requests, over TLS. [default: {_BIND}]")
@option(
    "--health-bind",
    metavar="HOST:PORT",
    help=f"Address for /healthz, /readyz and /metrics, over plain HTTP. [default: {_HEALTH_BIND}]",
)
@option("--cert", metavar="FILE", help="Certificate (PEM). It is reloaded when it changes. Without it, a temporary CA.")
@option("--key", metavar="FILE", help="Private key of --cert (PEM).")
@option("--client-ca", metavar="FILE", help="Answer only callers with a certificate of this CA (the API server's).")
@option(
    "--tls-name",
    metavar="NAME",
    multiple=True,
    help="DNS name in the certificate that evenspread issues. Repeat the option for more.",
)
@ca_options
@option("--config", metavar="FILE", help="SpreadPolicy file. It is reloaded when it changes. Without it, the defaults.")
@option(
    "--snapshot", metavar="FILE", help="Read the cluster from a file: a snapshot, or output of kubectl (JSON, YAML)."
)
@option(
    "--kube-version", metavar="VERSION", type=VERSION, help=f"Behave as this Kubernetes release. [default: {RECORDED}]"
)
@option(
    "--drain-seconds",
    type=click.FloatRange(0, 15),
    default=5.0,
    show_default=True,
    help="Time to finish open requests after SIGTERM.",
)
@option(
    "--log-level",
    type=click.Choice(logs.LEVELS),
    help="Lowest level of log lines. [default: info; warning with --example]",
)
@option(
    "--leave-audit-to-scan",
    is_flag=True,
    help="Skip audit-only rules. Use it with a controller that scans the same cluster.",
)
@option(
    "--leave-warnings-to-policies",
    is_flag=True,
    help="Do not warn for rules that an admission policy has whole. Use with the controller's --admission-policies.",
)
@click.option(
    "--example", is_flag=True, help="Run with an example cluster and policy, and print three commands to try."
)
@click.option(
    "--kubeconfig",
    metavar="FILE",
    help=(
        "Watch this cluster. After you confirm, evenspread creates its webhook configurations there, and deletes them "
        "on exit."
    ),
)
@click.option("--context", metavar="NAME", help="Context in the kubeconfig.")
@click.option(
    "--register/--no-register", default=True, help="Create webhook configurations in the cluster of --kubeconfig."
)
@click.option(
    "--advertise", metavar="HOST", help="Address at which the API server of --kubeconfig reaches this machine."
)
@click.option("--yes", is_flag=True, help="Register without confirmation.")
def webhook(**given: object) -> None:
    """Run the webhook. It answers AdmissionReviews on /validate and /mutate, over TLS.

    In a pod, the webhook watches its own cluster with the pod's service account, unless you add --snapshot. You can
    set most options in the environment, as shown at each option.
    """
    options = WebhookOptions(**given)  # type: ignore[arg-type]  # click made each value of the option's own type
    workshop = Path(tempfile.mkdtemp(prefix="evenspread-"))
    owner = os.getpid()
    try:
        _run(options, workshop)
    finally:
        # The worker is a fork of this process and also ends here.
        if os.getpid() == owner:
            shutil.rmtree(workshop, ignore_errors=True)


def _run(options: WebhookOptions, workshop: Path) -> NoReturn:
    _refuse_early(options)
    policy, loaded = _policy(options)
    engine, feed, server = _engine(options, policy)
    if options.ca_secret is not None and server is None:
        raise CommandError("--ca-secret needs a cluster: run the webhook in a pod, or add --kubeconfig FILE")
    cluster = None
    if options.kubeconfig and options.registers:
        cluster = registered.Cluster(options.kubeconfig, options.context, options.advertise)
    local = (cluster.bind if cluster else _LOCAL_BIND, _LOCAL_HEALTH_BIND)
    defaults = local if options.local else (_BIND, _HEALTH_BIND)
    admission = _listen("--bind", options.bind, defaults[0], options, later=options.ca_secret is not None)
    try:
        health = _listen("--health-bind", options.health_bind, defaults[1], options)
    except CommandError:
        admission.close()
        raise
    host, port = admission.getsockname()[:2]
    served = _certificates(options, workshop, _names(host, cluster.advertised if cluster else ""), server)
    health_port = health.getsockname()[1]
    place = example.ServerAddress(host=_reachable(host), port=port, health_port=health_port, authority=served.authority)
    plan = ServerPlan(
        engine=engine,
        certificates=served,
        client_ca=Path(options.client_ca) if options.client_ca else None,
        admission=admission,
        health=health,
        loaded=loaded,
        feed=feed,
        follows_version=options.kube_version is None,
        drain_seconds=options.drain_seconds,
        on_ready=lambda: _say_ready(options, policy, place),
    )
    logs.configure(options.log_level or ("warning" if options.local else "info"), sys.stderr)
    if cluster is not None and served.authority is not None:
        cluster.serve(plan, served.authority, port=port, health_port=health_port, ask=not options.yes)
    serve(plan)


def _refuse_early(options: WebhookOptions) -> None:
    """Raise CommandError if the options contradict each other, before a socket is opened."""
    if (options.cert is None) != (options.key is None):
        raise CommandError("--cert and --key need each other: add the missing one")
    if options.ca_secret is not None and (options.cert or options.registers):
        raise CommandError("--ca-secret issues the certificate: remove --cert and --key, and add --no-register")
    if options.ca_secret is not None and not options.tls_name:
        raise CommandError("--ca-secret needs --tls-name, the DNS name that the API server calls")
    if options.registers and options.cert:
        raise CommandError("--kubeconfig registers a temporary CA: remove --cert and --key, or add --no-register")
    if options.cert and options.key:
        try:
            read_pair(Path(options.cert), Path(options.key))
        except CertificateError as error:
            raise CommandError(str(error)) from error


def _policy(options: WebhookOptions) -> tuple[Policy, Loaded | None]:
    file = options.config or (str(example.POLICY) if options.example else None)
    if file is None:
        return Policy(), None
    loaded = loaded_policy(file)
    for line in loaded.rendered_warnings():
        click.echo(line, err=True)
    return loaded.policy, loaded


def _engine(options: WebhookOptions, policy: Policy) -> tuple[Engine, Feed | None, ApiServer | None]:
    """Return the engine, its feed and the API server. Without a live cluster, feed and API server are None."""
    file, asked = options.snapshot or (str(example.CLUSTER) if options.example else None), options.kube_version
    engine = Engine(
        policy=policy,
        version=asked or RECORDED,
        scanned=options.leave_audit_to_scan,
        policies_warn=options.leave_warnings_to_policies,
    )
    if file is not None:
        from webhook.cli.cluster_source import read_snapshot  # noqa: PLC0415 only with a snapshot

        snapshot = read_snapshot(file, policy, asked)
        version = asked or snapshot.version or RECORDED
        return structs.replace(engine, version=version, index=snapshot.index), None, None
    if options.kubeconfig is None and "KUBERNETES_SERVICE_HOST" not in os.environ:
        return engine, None, None
    server = api_server(options.kubeconfig, options.context)
    feed = Feed(server, watched(policy), as_version=asked)
    return structs.replace(engine, index=feed.index, age=lambda: feed.age), feed, server


def _listen(
    flag: str, given: str | None, default: str, options: WebhookOptions, *, later: bool = False
) -> socket.socket:
    """Open a socket, and listen now or ``later``. A taken port of a local default address is replaced."""
    host, port = address(flag, given or default, default)
    try:
        return listen(host, port, elsewhere=options.local and given is None, later=later)
    except OSError as error:
        raise CommandError(f"{flag} {given or default}: {error.strerror}") from error


def _certificates(
    options: WebhookOptions, workshop: Path, own: tuple[str, ...], server: ApiServer | None
) -> Certificates:
    """The certificate in the options, else a new certificate of the CA in the cluster or of a temporary CA."""
    if options.cert and options.key:
        return Certificates(certificate=Path(options.cert), key=Path(options.key))
    directory = workshop / "tls"
    if options.ca_secret is not None and server is not None:
        length = lifetimes(options.ca_duration, options.leaf_duration)
        issuing = OwnCertificate(CaSecret(server, *options.ca_secret), options.tls_name, directory, length)
        certificate, key = live_paths(directory)
        return Certificates(certificate=certificate, key=key, own=issuing)
    now, names = datetime.now(UTC), (*own, *options.tls_name)
    authority = issue_authority(now, common_name="evenspread throw-away CA")
    file = workshop / "ca.crt"
    write_public(file, authority.certificate)
    certificate, key = write_pair(directory, issue_leaf(authority, names, now))
    renew = partial(renew_certificates, directory, authority, names)
    return Certificates(certificate=certificate, key=key, renew=renew, authority=file)


def _names(host: str, advertised: str) -> tuple[str, ...]:
    """The names that clients may use: this machine's own, the bound address, and the advertised address."""
    own = ("localhost", "127.0.0.1", "::1", socket.gethostname(), host, advertised)
    return tuple(name for name in dict.fromkeys(own) if name not in {"", "0.0.0.0", "::"})  # noqa: S104 compared, not bound


def _reachable(host: str) -> str:
    return "127.0.0.1" if host in {"0.0.0.0", "::"} else host  # noqa: S104 compared, not bound


def _say_ready(options: WebhookOptions, policy: Policy, place: example.ServerAddress) -> None:
    if options.example:
        from webhook.cli import console_sources  # noqa: PLC0415 only with a console

        frame = Frame(policy=policy, today=today(), asked_version=options.kube_version)
        file, config = options.snapshot or str(example.CLUSTER), options.config or str(example.POLICY)
        shown = console_sources.start(*console_sources.file_source(file, config, frame))
        click.echo(example.tour(place, shown))
    elif options.local:
        click.echo(f"webhook: {place.url}, health: {place.health_url}, CA: {place.authority}")
    else:
        fields = {"url": place.url, "health": place.health_url, "ca": str(place.authority or "")}
        logging.getLogger("evenspread").info("answering", extra={"fields": fields})
