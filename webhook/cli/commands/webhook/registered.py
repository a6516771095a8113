"""Run a webhook on this machine for another cluster.

The steps are: confirm, start, register, wait, unregister. The server is a child process in its own session, so Ctrl-C
only reaches the parent process. The parent unregisters the webhook before stopping the server.
"""

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import click

from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.server_options import api_server
from webhook.cluster.errors import ClusterError
from webhook.cluster.writing.registration import REGISTRATION_NAME, configurations, has_groups, register, unregister
from webhook.server.run import ServerPlan, serve

Configurations = Sequence[Mapping[str, Any]]
_READY_SECONDS = 60.0  # enough to list a large cluster


class Cluster:
    """A kubeconfig's cluster, and the address of this machine for its API server.

    Raises CommandError with exit code 4 if the cluster cannot be used.
    """

    def __init__(self, kubeconfig: str, context: str | None, advertised: str | None) -> None:
        self._server = api_server(kubeconfig, context)
        self.advertised = advertised or _way_back(self._server.url)
        self.bind = "127.0.0.1:8443" if self.advertised.startswith("127.") else "0.0.0.0:8443"

    def serve(self, plan: ServerPlan, authority: Path, *, port: int, health_port: int, ask: bool) -> NoReturn:
        """Register and serve until a signal, or until the server ends."""
        url = f"https://{self.advertised}:{port}"
        defaults = plan.engine.policy.defaults
        try:
            made = configurations(url, authority.read_bytes(), defaults, groups=has_groups(self._server))
            register(self._server, made, rehearsed=True)
        except ClusterError as error:
            raise CommandError(str(error), Exit.CLUSTER) from error
        kinds = " and ".join(configuration["kind"] for configuration in made)
        click.echo(
            f"{self._server.url} will send admission requests to {url}.\n"
            f"  evenspread creates a {kinds} named {REGISTRATION_NAME}: failurePolicy Ignore, timeout 2 s,\n"
            f"  without the system namespaces. Ending this command deletes the registration."
        )
        if ask and not click.confirm("Register?"):
            raise CommandError("not registered", 0)
        child = os.fork()
        if child == 0:
            os.setsid()
            serve(plan)
        plan.admission.close()
        plan.health.close()
        raise SystemExit(self._hold(child, made, f"http://127.0.0.1:{health_port}/readyz"))

    def _hold(self, child: int, made: Configurations, ready: str) -> int:
        ended = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: ended.set())
        registered: Configurations = ()
        try:
            if _answers(ready, ended):
                registered = made
                register(self._server, made)
                click.echo("registered (press Ctrl-C to unregister and stop)")
            elif not ended.is_set():
                raise CommandError(
                    f"not registered: {ready} did not answer within {_READY_SECONDS:g} s", Exit.OUR_FAULT
                )
            while not ended.wait(0.2):
                if os.waitpid(child, os.WNOHANG) != (0, 0):
                    raise CommandError("the server ended unexpectedly", Exit.OUR_FAULT)
        except ClusterError as error:
            raise CommandError(str(error), Exit.CLUSTER) from error
        finally:
            self._leave(child, registered)
        return 0

    def _leave(self, child: int, registered: Configurations) -> None:
        try:
            unregister(self._server, registered)
            if registered:
                click.echo("unregistered")
        except ClusterError as error:
            click.echo(f"evenspread: could not unregister: {error}", err=True)
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(child, signal.SIGTERM)
            os.waitpid(child, 0)


def _answers(url: str, ended: threading.Event) -> bool:
    import urllib.request  # noqa: PLC0415 only needed to register

    deadline = time.monotonic() + _READY_SECONDS
    while time.monotonic() < deadline and not ended.wait(0.05):
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=1):  # noqa: S310 http to loopback
            return True
    return False


def _way_back(url: str) -> str:
    """Return the local address of the route to the API server. Connecting a UDP socket sends nothing."""
    parts = urlsplit(url)
    try:
        family, *_, address = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except OSError as error:
        raise CommandError(f"{url}: {error.strerror}", Exit.CLUSTER) from error
