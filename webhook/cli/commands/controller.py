"""evenspread controller: look after what replicas of the webhook share, until a signal ends it."""

import os
import socket
import sys
import uuid
from collections.abc import Callable
from datetime import timedelta

import click

from webhook import logs
from webhook.cli.commands.certificate_options import ObjectName, ca_options, lives
from webhook.cli.exit_codes import CommandError
from webhook.cluster.connection import Account, ApiServer, ClusterError
from webhook.cluster.writing.ca_secret import CaSecret
from webhook.cluster.writing.lease import Elector
from webhook.controller.authority import AuthorityUpkeep
from webhook.controller.run import Controller, run

_HEALTH_BIND = "0.0.0.0:10251"
_UNREACHABLE = 4
_LAST_PORT = 65535  # TCP has 16 bits for it


def _option(name: str, **settings: object) -> Callable[[Callable[..., None]], Callable[..., None]]:
    variable = f"EVENSPREAD_{name.lstrip('-').replace('-', '_').upper()}"
    return click.option(name, envvar=variable, show_envvar=True, **settings)  # type: ignore[arg-type]  # click's own kwargs


@click.command(name="controller", short_help="Look after the webhook's certificate authority.")
@ca_options
@_option(
    "--configuration", metavar="NAME", default="evenspread", show_default=True, help="What our webhooks are called."
)
@_option("--lease", type=ObjectName(), metavar="NAMESPACE/NAME", help="The Lease by which one replica is elected.")
@_option(
    "--health-bind",
    metavar="HOST:PORT",
    default=_HEALTH_BIND,
    show_default=True,
    help="Where to answer /healthz, /readyz, /metrics, over plain HTTP.",
)
@_option(
    "--log-level",
    type=click.Choice(logs.LEVELS),
    default="info",
    show_default=True,
    help="Least severe lines of the log.",
)
@click.option("--kubeconfig", metavar="FILE", help="The cluster; without it, the one around this pod.")
@click.option("--context", metavar="NAME", help="The kubeconfig's context.")
def controller(  # noqa: PLR0913 one parameter an option, as click calls it
    *,
    ca_secret: tuple[str, str] | None,
    ca_duration: timedelta,
    leaf_duration: timedelta,
    configuration: str,
    lease: tuple[str, str] | None,
    health_bind: str,
    log_level: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Rotate the CA in a Secret, and keep the API server's trust in it.

    Several may run: a Lease says which one acts. It answers no admission request, and none waits for it.
    """
    if ca_secret is None or lease is None:
        raise CommandError("--ca-secret and --lease name what to look after, and who does")
    host, _, port = health_bind.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _LAST_PORT:
        raise CommandError(f"--health-bind {health_bind}: write it as HOST:PORT, as in {_HEALTH_BIND}")
    if kubeconfig is None and "KUBERNETES_SERVICE_HOST" not in os.environ:
        raise CommandError("the controller looks after a cluster: run it in a pod, or add --kubeconfig")
    try:
        server = ApiServer(Account(kubeconfig=kubeconfig, context=context))
    except ClusterError as error:
        raise CommandError(str(error), _UNREACHABLE) from error
    logs.configure(log_level, sys.stderr)
    elector = Elector(server, lease, f"{socket.gethostname()}_{uuid.uuid4()}")
    upkeep = AuthorityUpkeep(server, CaSecret(server, *ca_secret), configuration, lives(ca_duration, leaf_duration))
    try:
        run(Controller(elector, upkeep), elector, (host.strip("[]"), int(port)))
    except OSError as error:
        raise CommandError(f"--health-bind {health_bind}: {error.strerror}") from error
