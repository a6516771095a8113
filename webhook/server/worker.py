"""gunicorn's asgi worker, with its defects fixed.

    plaintext     gunicorn would serve without TLS if the context cannot be built: here the worker exits with code 3
    deadlines     a connection without a request would stay for ever: it is aborted after 10 s
    limits        gunicorn reads worker_connections but does not enforce it: sources share them (`connection_table`)
    drain         idle connections would delay a stop by the whole graceful_timeout: see `Worker.drain`
    second port   health and metrics, without TLS, on the same event loop; gunicorn holds this one, and the admission
                  port listens as soon as there is a certificate
    upgrades      WebSocket is not offered (`connection`)
    numbers       a length that Python refuses to parse would be an unhandled exception: 400 (`connection`)

`tests/server/test_start.py` lists the private names of gunicorn that this module and `connection` use.
Source: gunicorn 27.0.1 workers/gasgi.py.
"""

import asyncio
import gc
import logging
import os
import resource
import signal
import socket
import ssl
import sys
import time
from collections.abc import Coroutine
from functools import partial
from itertools import chain
from typing import Any, Protocol

from gunicorn.arbiter import Arbiter
from gunicorn.asgi import protocol
from gunicorn.workers import gasgi

from webhook.server.allocator import give_memory_back, keep_large_blocks_apart
from webhook.server.asgi import AdmissionApp
from webhook.server.connections.connection import Connection, HealthConnection, Parser
from webhook.server.connections.connection_table import ConnectionTable
from webhook.server.connections.listener import Listener
from webhook.server.request_body import Application
from webhook.server.state import State

# Probes and a few scrapers; each source gets in, whoever holds the rest.
HEALTH_CONNECTIONS = 100
_HEALTH_BODY_BYTES = 1024 * 1024  # of all connections; probes and scrapers send none
_SWEEP_SECONDS = 1.0  # the time that a peer has is exceeded by no more; a sweep looks at each connection
# gunicorn's own: the master kills a worker of which it has not heard for 30 s.
_HEARTBEAT_SECONDS = 1.0
_GOODBYE_SECONDS = 1.0  # for idle peers at the stop; kubelet and API server answer at once
_OTHER_DESCRIPTORS = 200  # listeners, files, and a watch for each of some twenty kinds, with room
BACKLOG = 1024  # a burst waits in it while the loop answers; the kernel caps it (net.core.somaxconn)
# After so long the event loop gets the interpreter back from a long review, or from events of the cluster. A call would
# wait a few times for Python's own 5 ms.
_TURN_SECONDS = 0.001
# So many new values until the collector looks through them. By default 700: it ran within many reviews, for 5 % of the
# time, and what ends leaves it nothing to find.
COLLECT_AFTER = 10_000
# Below, nobody misses what the C library keeps.
_MUCH_BYTES = 8 * 1024 * 1024

_log = logging.getLogger(__name__)


class Served(Protocol):
    """What the worker needs of the application object that gunicorn gives it."""

    state: State
    drain_seconds: float

    def wsgi(self) -> AdmissionApp: ...
    def health(self) -> Application: ...
    def admission_socket(self) -> socket.socket: ...
    async def ssl_context(self) -> ssl.SSLContext: ...
    def upkeep(self) -> list[Coroutine[Any, Any, None]]: ...
    def on_ready(self) -> None: ...


class Worker(gasgi.ASGIWorker):  # type: ignore[misc]  # gunicorn publishes no types
    """The one worker process."""

    app: Served

    def init_process(self) -> None:
        """Make gunicorn use our parser, with enough file descriptors for all connections."""
        keep_large_blocks_apart()
        _raise_descriptor_limit(self.cfg.worker_connections + HEALTH_CONNECTIONS + _OTHER_DESCRIPTORS)
        protocol.PythonProtocol = Parser
        protocol._CACHED_SERVER_HEADER = b""  # noqa: SLF001 who attacks need not be told what answers
        sys.setswitchinterval(_TURN_SECONDS)
        super().init_process()

    def init_signals(self) -> None:
        """SIGTERM drains first; SIGHUP is for the master process, also where a terminal sends it to both."""
        super().init_signals()
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, signal.SIG_IGN)
        self.loop.add_signal_handler(signal.SIGTERM, self.drain)

    def load_wsgi(self) -> None:
        """Load both ports' applications."""
        super().load_wsgi()
        # Loaded objects stay; a full collection that walks through them and a large index would delay every request.
        gc.freeze()
        gc.set_threshold(COLLECT_AFTER)
        self.direct = self.asgi.direct
        self.health = self.app.health()
        ended = self.app.state.metrics.connection_ended
        self.admission_table = ConnectionTable("admission", self.cfg.worker_connections, ended=ended)
        self.health_table = ConnectionTable("health", HEALTH_CONNECTIONS, budget=_HEALTH_BODY_BYTES, ended=ended)

    @property
    def draining(self) -> bool:
        """Whether the stop has begun."""
        return self.app.state.draining

    def drain(self) -> None:
        """Stop after a while in which every answer says ``Connection: close``, so that callers go elsewhere.

        Readiness turns false, but the listener stays open, since new connections come until the endpoint is removed.
        Connections that are idle at the end have not been used during all that time.
        """
        state = self.app.state
        if state.draining:
            return
        state.draining = True
        _log.info("draining", extra={"fields": {"seconds": self.app.drain_seconds, "connections": self.nr_conns}})
        self.loop.call_later(self.app.drain_seconds, self._stop)

    def _stop(self) -> None:
        for server in self.servers:
            server.close()
        for connection in chain(self.admission_table, self.health_table):
            if connection.idle:
                connection.close()
        self.loop.call_later(_GOODBYE_SECONDS, self._abort_idle)
        self.handle_exit_signal()

    def _abort_idle(self) -> None:
        """Abort idle connections: a client that does not answer the end of TLS would delay the stop."""
        for connection in chain(self.admission_table, self.health_table):
            if connection.idle:
                connection.end()

    async def _open(self) -> None:
        """Open the admission port as soon as there is a certificate to greet with."""
        try:
            tls = await self.app.ssl_context()
            admission = self.app.admission_socket()
            admission.listen(BACKLOG)
        except Exception as error:
            self.log.exception("no TLS context, or no port: nothing is served")
            raise SystemExit(Arbiter.WORKER_BOOT_ERROR) from error
        if self.draining:
            return
        self.servers = [Listener(admission, self.admission_table, partial(Connection, self), tls)]
        self.app.on_ready()

    async def _serve(self) -> None:
        self.loop.set_exception_handler(_unhandled)
        health = partial(HealthConnection, self)
        plain = [Listener(each.sock, self.health_table, health) for each in self.sockets]
        self.asgi.start()
        beside = [self.loop.create_task(task) for task in (self._open(), self._sweep(), *self.app.upkeep())]
        try:
            while self.alive and self.ppid == os.getppid():
                self.notify()
                await asyncio.sleep(_HEARTBEAT_SECONDS)
            await self._shutdown()
        finally:
            for task in beside:
                task.cancel()
            for each in plain:
                each.close()
            self.asgi.close()

    async def _sweep(self) -> None:
        """End connections that have waited for their peer for too long; return memory that is not needed any more."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            self.app.state.metrics.open_connections.set(self.admission_table.count)
            tables = self.admission_table, self.health_table
            # First, since what is ended below is gone in a moment, and not yet.
            if all(each.idle for each in self.admission_table) and any(each.drained(_MUCH_BYTES) for each in tables):
                give_memory_back()
            now = time.monotonic()
            for table in tables:
                for connection in table:
                    if connection.overdue(now):
                        table.end(connection, "late")


def _raise_descriptor_limit(wanted: int) -> None:
    """Raise the soft limit, which is often 1,024 by default, as far as the hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _unhandled(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log errors of the event loop; failed TLS handshakes only for debugging, since anybody can cause them."""
    error = context.get("exception")
    if isinstance(error, ssl.SSLError | OSError | TimeoutError):
        _log.debug("connection failed: %s", error)
    else:
        _log.error("unhandled in the event loop: %s", context.get("message"), exc_info=error)
