"""The settings of a serving process, and its start under gunicorn."""

import contextlib
import errno
import logging
import signal
import socket
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import NoReturn

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.config import Config
from gunicorn.glogging import Logger
from msgspec import Struct

from webhook.admission import Engine
from webhook.cluster.feed import Feed
from webhook.config import Loaded
from webhook.server.certificates import OwnCertificate, RotatingTls

BACKLOG = 1024  # holds a burst while the loop is busy; the kernel caps it (net.core.somaxconn)
# A response has a few KiB. On each connection, TLS keeps buffers as large as a single read.
_SEND_BYTES = _RECEIVE_BYTES = 64 * 1024

_log = logging.getLogger(__name__)

OPTIONS: dict[str, object] = {
    "workers": 1,  # a single index and registry; add replicas for capacity
    "worker_class": "webhook.server.worker.Worker",
    "keepalive": 120,  # kube-apiserver keeps idle connections for 90 s
    "timeout": 30,  # longer without a heartbeat is a hang: the longest review takes half a second
    "graceful_timeout": 20,  # together with the drain, less than the 30 s grace period of a pod
    "worker_connections": 2000,  # 50 KiB each with TLS: 100 MiB, a fifth of the chart's limit
    "backlog": BACKLOG,
    "control_socket_disable": True,
    "forwarded_allow_ips": "",
    "proc_name": "evenspread",
}


class Certificates(Struct, frozen=True, kw_only=True):
    """The files of the served certificate and key.

    Attributes:
        own: Issues certificates by the cluster's CA, and writes them to the files.
        renew: Issues certificates by a temporary CA, and writes them to the files.
        authority: The file of this temporary CA's certificate.
    """

    certificate: Path
    key: Path
    own: OwnCertificate | None = None
    renew: Callable[[], Coroutine[object, object, None]] | None = None
    authority: Path | None = None


class ServerPlan(Struct, frozen=True, kw_only=True):
    """The inputs of a serving process, complete before it starts.

    admission, health = listen("", 8443, later=True), listen("", 8080)
    serve(ServerPlan(engine=engine, certificates=certificates, admission=admission, health=health))
    """

    engine: Engine
    certificates: Certificates
    client_ca: Path | None = None
    admission: socket.socket
    health: socket.socket
    loaded: Loaded | None = None
    feed: Feed | None = None
    follows_version: bool = False
    # Longer than the removal of endpoints everywhere, so that no new connections arrive afterwards.
    drain_seconds: float = 5.0
    on_ready: Callable[[], None] = lambda: None

    def tls(self) -> RotatingTls:
        """Return a TLS context of the certificate and key files. Raises CertificateError."""
        return RotatingTls(self.certificates.certificate, self.certificates.key, self.client_ca)


def listen(host: str, port: int, *, elsewhere: bool = False, later: bool = False) -> socket.socket:
    """Return a bound socket, listening unless ``later``. With ``elsewhere``, use any free port if ``port`` is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit these sizes. The kernel could give each up to 10 MiB, and charges the container.
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
    """Serve until a signal, then raise SystemExit. Raises CertificateError before serving."""
    if plan.certificates.own is None:
        plan.tls()
    _Master(_Application(plan)).run()
    raise SystemExit(0)


class _Master(Arbiter):  # type: ignore[misc]  # gunicorn publishes no types
    """gunicorn's master process without support for more than one worker, a second master or a reload."""

    def __init__(self, application: BaseApplication) -> None:
        super().__init__(application)
        self._terminal = sys.stdin is not None and sys.stdin.isatty()

    def init_signals(self) -> None:
        """Ignore gunicorn's signals for deployments with many workers."""
        super().init_signals()
        for number in (signal.SIGTTIN, signal.SIGTTOU, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, signal.SIG_IGN)

    def handle_hup(self) -> None:
        """Stop if a terminal started the process and has closed. Otherwise ignore SIGHUP: gunicorn would reload."""
        if self._terminal:
            self.handle_term()
        _log.info("SIGHUP is ignored: changed configuration and certificates are loaded automatically")


class _Log(Logger):  # type: ignore[misc]  # gunicorn publishes no types
    """Sends gunicorn's lines to evenspread's log handler, without an access log."""

    def setup(self, cfg: Config) -> None:
        self.cfg = cfg
        self._access_log_enabled = False
        self.error_log.propagate = True
        # Its info lines only report starts and stops of processes.
        self.error_log.setLevel(max(logging.getLogger().level, logging.WARNING))


class _Application(BaseApplication):  # type: ignore[misc]  # gunicorn publishes no types
    """gunicorn's application: its settings, and the `ServerPlan` for the worker."""

    def __init__(self, plan: ServerPlan) -> None:
        self.plan = plan
        # gunicorn closes a descriptor passed to it and keeps a copy. It gets only the plain port, because it listens at
        # once: on the admission port, callers would wait for a missing certificate.
        self._bind = f"fd://{plan.health.detach()}"
        super().__init__()

    def load_config(self) -> None:
        settings = OPTIONS | {"bind": [self._bind], "logger_class": _Log}
        with contextlib.suppress(OSError):
            if Path("/dev/shm").is_dir():  # noqa: S108 the heartbeat file of mkstemp; a read-only root has no /tmp
                settings["worker_tmp_dir"] = "/dev/shm"  # noqa: S108 as above
        for name, value in settings.items():
            self.cfg.set(name, value)
