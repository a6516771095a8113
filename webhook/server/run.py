"""One process: its settings, and gunicorn around them."""

import contextlib
import errno
import logging
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NoReturn

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.config import Config
from gunicorn.glogging import Logger
from msgspec import Struct

from certs.authority import Pair
from certs.rotation import Lives
from webhook.admission import Engine
from webhook.cluster.feed import Feed
from webhook.cluster.writing.ca_secret import CaSecret
from webhook.config import Loaded
from webhook.metrics import Metrics
from webhook.server import file_watchers
from webhook.server.asgi import AdmissionApp, health_app
from webhook.server.own_certificate import OwnCertificate
from webhook.server.request_body import Application
from webhook.server.state import State
from webhook.server.tls import RotatingTls
from webhook.server.worker import BACKLOG
from webhook.server.wsgi_bridge import WsgiApplication, bridge

# The limit for all routes but the two of admission, none of which needs a body.
_SMALL_BODY_BYTES = 64 * 1024

# An answer has a few KiB; a large body arrives at 100 MiB/s with a round trip of 2 ms.
_SEND_BYTES, _RECEIVE_BYTES = 64 * 1024, 256 * 1024

_log = logging.getLogger(__name__)

OPTIONS: dict[str, object] = {
    "workers": 1,  # one index, one registry; capacity comes from replicas
    "worker_class": "webhook.server.worker.Worker",
    "keepalive": 120,  # kube-apiserver keeps idle connections for 90 s
    "timeout": 30,  # no heartbeat for so long is a hang: the longest review takes half a second
    "graceful_timeout": 20,  # with the drain before it, less than the 30 s that Kubernetes gives a pod
    "worker_connections": 2000,  # with TLS 50 KiB each: 100 MiB, a fifth of the chart's limit
    "backlog": BACKLOG,  # a burst waits here while the loop answers; the kernel caps it (net.core.somaxconn)
    "control_socket_disable": True,
    "forwarded_allow_ips": "",
    "proc_name": "evenspread",
}


class Renewal(Struct, frozen=True, kw_only=True):
    """How a throw-away leaf is renewed: its directory, the CA that signs it, and its names."""

    directory: Path
    authority: Pair
    names: tuple[str, ...]


class OwnCa(Struct, frozen=True, kw_only=True):
    """The CA of which the process issues its own certificate: its Secret, the names, and where the pair is kept."""

    secret: CaSecret
    names: tuple[str, ...]
    directory: Path
    lives: Lives


class Plan(Struct, frozen=True, kw_only=True):
    """Everything that one process serves with, decided before it starts.

    Shape: ``certificate`` and ``key`` are there already, unless ``own`` will write them.
    """

    engine: Engine
    certificate: Path
    key: Path
    own: OwnCa | None = None
    client_ca: Path | None = None
    admission: socket.socket
    health: socket.socket
    loaded: Loaded | None = None
    feed: Feed | None = None
    follows_version: bool = False
    renewal: Renewal | None = None
    # Longer than it takes until endpoints are removed everywhere, and no new connections come.
    drain_seconds: float = 5.0
    log_level: str = "info"
    on_ready: Callable[[], None] = lambda: None


def listen(host: str, port: int, *, elsewhere: bool = False, later: bool = False) -> socket.socket:
    """A listening socket; with ``elsewhere``, on any free port if this one is taken; with ``later``, only bound.

    Errors: OSError.
    """
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


def serve(plan: Plan) -> NoReturn:
    """Run until a signal ends it.

    Errors: SystemExit with gunicorn's code; CertificateError before anything is served.
    """
    if plan.own is None:
        RotatingTls(plan.certificate, plan.key, plan.client_ca)
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
    """What gunicorn loads, and what the worker asks for (`worker.Served`)."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._tls: RotatingTls | None = None
        self.drain_seconds = plan.drain_seconds
        # gunicorn closes the descriptor that it is given and keeps a copy. It is given the plain port, since it would
        # have the other one listen at once, and who connects would wait for a certificate that is not there yet.
        self._bind = f"fd://{plan.health.detach()}"
        super().__init__()

    def load_config(self) -> None:
        settings = OPTIONS | {"bind": [self._bind], "logger_class": _Log}
        with contextlib.suppress(OSError):
            if Path("/dev/shm").is_dir():  # noqa: S108 the heartbeat file, made by mkstemp; a read-only root has no /tmp
                settings["worker_tmp_dir"] = "/dev/shm"  # noqa: S108 as above
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self) -> Application:
        plan = self._plan
        self.state = State(plan.engine, Metrics(), plan.feed)
        if plan.own is not None:
            own = plan.own
            self.state.own_certificate = OwnCertificate(own.secret, own.names, own.directory, own.lives)
        if plan.loaded is not None:
            file_watchers.take_configuration(self.state, plan.loaded)
        return AdmissionApp(self.state, bridge(self._admission_routes, limit=_SMALL_BODY_BYTES))

    def health(self) -> Application:
        return health_app(self.state, bridge(self._health_routes, limit=_SMALL_BODY_BYTES))

    def admission_socket(self) -> socket.socket:
        return self._plan.admission

    async def ssl_context(self) -> ssl.SSLContext:
        return (await self._certified()).context

    def on_ready(self) -> None:
        self._plan.on_ready()

    def upkeep(self) -> list[Coroutine[Any, Any, None]]:
        tasks = [self._follow_certificates()]
        if self.state.own_certificate is not None:
            tasks.append(self.state.own_certificate.keep())
        if self._plan.loaded is not None:
            tasks.append(file_watchers.follow_configuration(self.state, self._plan.loaded))
        if self._plan.feed is not None and self._plan.follows_version:
            tasks.append(file_watchers.follow_version(self.state, self._plan.feed))
        renewal = self._plan.renewal
        if renewal is not None:
            tasks.append(file_watchers.renew_certificates(renewal.directory, renewal.authority, renewal.names))
        return tasks

    async def _follow_certificates(self) -> None:
        await file_watchers.follow_certificates(self.state, await self._certified())

    async def _certified(self) -> RotatingTls:
        if self.state.own_certificate is not None:
            await self.state.own_certificate.issued.wait()
        if self._tls is None:
            self._tls = RotatingTls(self._plan.certificate, self._plan.key, self._plan.client_ca)
        return self._tls

    def _admission_routes(self) -> WsgiApplication:
        from webhook.server.routes import create_admission  # noqa: PLC0415 Flask is a third of the start

        return create_admission(self.state)

    def _health_routes(self) -> WsgiApplication:
        from webhook.server.routes import create_health  # noqa: PLC0415 as above

        return create_health(self.state)
