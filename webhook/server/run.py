"""One process: its settings, and gunicorn around them."""

import contextlib
import errno
import logging
import signal
import socket
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NoReturn

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.config import Config
from gunicorn.glogging import Logger
from msgspec import Struct

from webhook.admission import Engine
from webhook.cluster.feed import Feed
from webhook.config import Loaded
from webhook.server.certificates import OwnCertificate, RotatingTls

BACKLOG = 1024  # a burst waits in it while the loop answers; the kernel caps it (net.core.somaxconn)
# An answer has a few KiB. TLS keeps buffers as large as what is read at once, on each connection.
_SEND_BYTES = _RECEIVE_BYTES = 64 * 1024

_log = logging.getLogger(__name__)

OPTIONS: dict[str, object] = {
    "workers": 1,  # one index, one registry; capacity comes from replicas
    "worker_class": "webhook.server.worker.Worker",
    "keepalive": 120,  # kube-apiserver keeps idle connections for 90 s
    "timeout": 30,  # no heartbeat for so long is a hang: the longest review takes half a second
    "graceful_timeout": 20,  # with the drain before it, less than the 30 s that Kubernetes gives a pod
    "worker_connections": 2000,  # with TLS 50 KiB each: 100 MiB, a fifth of the chart's limit
    "backlog": BACKLOG,
    "control_socket_disable": True,
    "forwarded_allow_ips": "",
    "proc_name": "evenspread",
}


class Certificates(Struct, frozen=True, kw_only=True):
    """The files with the pair to serve.

    Args:
        own: Writes them, with certificates of the CA in the cluster.
        renew: Writes them anew, with certificates of the throw-away CA in the file ``authority``.
    """

    certificate: Path
    key: Path
    own: OwnCertificate | None = None
    renew: Callable[[], Coroutine[Any, Any, None]] | None = None
    authority: Path | None = None


class ServerPlan(Struct, frozen=True, kw_only=True):
    """Everything that one process serves with, decided before it starts."""

    engine: Engine
    certificates: Certificates
    client_ca: Path | None = None
    admission: socket.socket
    health: socket.socket
    loaded: Loaded | None = None
    feed: Feed | None = None
    follows_version: bool = False
    # Longer than it takes until endpoints are removed everywhere, and no new connections come.
    drain_seconds: float = 5.0
    on_ready: Callable[[], None] = lambda: None

    def tls(self) -> RotatingTls:
        """A context of these files. Errors: CertificateError."""
        return RotatingTls(self.certificates.certificate, self.certificates.key, self.client_ca)


def listen(host: str, port: int, *, elsewhere: bool = False, later: bool = False) -> socket.socket:
    """A listening socket; with ``elsewhere``, on any free port if this one is taken; with ``later``, only bound."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit them. The kernel would give each up to 10 MiB, and count them as the container's.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
        try:
            opened.bind((host, port))
        except OSError as error:
            if not elsewhere or error.errno != errno.EADDRINUSE:
                raise
            opened.bind((host, 0))
        if not later:
            opened.listen(BACKLOG)
    except OSError:
        opened.close()
        raise
    return opened


def serve(plan: ServerPlan) -> NoReturn:
    """Run until a signal ends it, and raise SystemExit; CertificateError before anything is served."""
    if plan.certificates.own is None:
        plan.tls()
    _Master(_Application(plan)).run()
    raise SystemExit(0)


class _Master(Arbiter):  # type: ignore[misc]  # gunicorn publishes no types
    """gunicorn's master process, without the signals that would start a second worker or replace the first."""

    def __init__(self, application: BaseApplication) -> None:
        super().__init__(application)
        self._terminal = sys.stdin is not None and sys.stdin.isatty()

    def init_signals(self) -> None:
        """As gunicorn, but for what it has for deployments of many workers."""
        super().init_signals()
        for number in (signal.SIGTTIN, signal.SIGTTOU, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, signal.SIG_IGN)

    def handle_hup(self) -> None:
        """End with the terminal it was started in; elsewhere there is nothing to load anew (gunicorn would)."""
        if self._terminal:
            self.handle_term()
        _log.info("SIGHUP changes nothing: configuration and certificate are followed")


class _Log(Logger):  # type: ignore[misc]  # gunicorn publishes no types
    """gunicorn's lines through our handler; no access log."""

    def setup(self, cfg: Config) -> None:
        self.cfg = cfg
        self._access_log_enabled = False
        self.error_log.propagate = True
        # Its info lines are one a start and a stop of each process, of no use to anyone.
        self.error_log.setLevel(max(logging.getLogger().level, logging.WARNING))


class _Application(BaseApplication):  # type: ignore[misc]  # gunicorn publishes no types
    """The settings of gunicorn, and the plan for its worker."""

    def __init__(self, plan: ServerPlan) -> None:
        self.plan = plan
        # gunicorn closes the descriptor that it is given and keeps a copy. It is given the plain port, since it would
        # have the other one listen at once, and callers would wait for a certificate that is not there yet.
        self._bind = f"fd://{plan.health.detach()}"
        super().__init__()

    def load_config(self) -> None:
        settings = OPTIONS | {"bind": [self._bind], "logger_class": _Log}
        with contextlib.suppress(OSError):
            if Path("/dev/shm").is_dir():  # noqa: S108 the heartbeat file, made by mkstemp; a read-only root has no /tmp
                settings["worker_tmp_dir"] = "/dev/shm"  # noqa: S108 as above
        for name, value in settings.items():
            self.cfg.set(name, value)
