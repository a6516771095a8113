"""Gunicorn's worker process, with two ports on a single event loop.

    start       opens the plain port first, and the admission port after a certificate is available
    deadlines   closes connections of clients that exceed a time limit (`Connection.overdue`)
    limits      limits the connections of each source (`connection_table`)
    stop        drains connections on SIGTERM, and stops without draining on SIGINT and SIGQUIT

Source: gunicorn 27.0.1 workers/base.py.
"""

import asyncio
import gc
import logging
import os
import resource
import signal
import ssl
import sys
import time
from collections.abc import Coroutine, Iterator
from functools import partial
from types import ModuleType

import uvloop
from gunicorn.arbiter import Arbiter
from gunicorn.workers import base

from webhook.allocator import give_memory_back, keep_large_blocks_apart
from webhook.metrics import Metrics
from webhook.server.asgi import AdmissionApp, health_app
from webhook.server.http.connection import Port
from webhook.server.http.connection_table import ConnectionTable, TrackedConnection
from webhook.server.http.listener import Listener
from webhook.server.run import BACKLOG
from webhook.server.state import (
    ServerState,
    follow_certificates,
    follow_configuration,
    follow_version,
    take_configuration,
)
from webhook.server.wsgi_bridge import bridge

# For probes and a few scrapers. Each new source gets in, however many connections others hold.
HEALTH_CONNECTIONS = 100
_HEALTH_BODY_BYTES = 1024 * 1024  # for all connections; probes and scrapers send no body
_SWEEP_SECONDS = 1.0  # the most by which a peer can exceed its time; a sweep checks each connection
_HEARTBEAT_SECONDS = 1.0  # the master kills a worker after 30 s without a heartbeat
_GOODBYE_SECONDS = 1.0  # for idle peers at the stop; kubelet and API server react at once
_LOOK_SECONDS = 0.1  # between two checks for the last connection
_OTHER_DESCRIPTORS = 200  # listeners, files, and a watch for each of about twenty kinds, with a reserve
# The event loop regains the interpreter after this time from a long review or from cluster events. By default, a
# request would wait several times for Python's 5 ms.
_TURN_SECONDS = 0.001
# The collector runs after this many new objects. With the default of 700 it ran within many reviews, for 5 % of the
# time, and ended requests leave it no work.
COLLECT_AFTER = 10_000
# The C library may keep less than this many bytes.
_MUCH_BYTES = 8 * 1024 * 1024

_log = logging.getLogger(__name__)


class Worker(base.Worker):  # type: ignore[misc]  # gunicorn publishes no types
    """The worker process. There is a single one."""

    def init_process(self) -> None:
        """Prepare the process, and run."""
        keep_large_blocks_apart()
        _raise_descriptor_limit(self.cfg.worker_connections + HEALTH_CONNECTIONS + _OTHER_DESCRIPTORS)
        sys.setswitchinterval(_TURN_SECONDS)
        # uvloop needs 50 KiB for each TLS connection, asyncio 300.
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as self._runner:
            super().init_process()

    def init_signals(self) -> None:
        """Install the signal handlers.

        SIGTERM drains connections first. The worker ignores SIGHUP. SIGHUP is for the master process, even if a
        terminal sends SIGHUP to both processes.
        """
        for number in self.SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH):
            signal.signal(number, signal.SIG_IGN)
        loop = self._runner.get_loop()
        loop.add_signal_handler(signal.SIGTERM, self.drain)
        for number in (signal.SIGINT, signal.SIGQUIT):
            loop.add_signal_handler(number, partial(self._stop, at_once=True))

    def load_wsgi(self) -> None:
        plan = self._plan = self.app.plan
        state = self._state = ServerState(plan.engine, Metrics(), plan.feed, plan.certificates.own)
        if plan.loaded is not None:
            take_configuration(state, plan.loaded)
        self._admission = AdmissionApp(state)
        health = health_app(state, bridge(lambda: _routes().create_health(state)))
        # Loaded objects stay in memory. A full collection through them and a large index would delay every request.
        gc.freeze()
        gc.set_threshold(COLLECT_AFTER)
        ended = partial(state.metrics.count, "connections_ended")
        self._connections = ConnectionTable("admission", self.cfg.worker_connections, ended=ended)
        plain = ConnectionTable("health", HEALTH_CONNECTIONS, budget=_HEALTH_BODY_BYTES, ended=ended)
        self._tables = self._connections, plain
        self._health = Port(table=plain, app=health, state=state, keepalive=self.cfg.keepalive)
        self._listeners: list[Listener] = []
        self._at_once = False  # whether to stop without waiting for connections

    def run(self) -> None:
        self._runner.run(self._serve())

    def drain(self) -> None:
        """Drain, then stop.

        While draining, every response says ``Connection: close``, so that callers reconnect elsewhere. Readiness
        becomes false, but the listener stays open: new connections arrive until the endpoint is removed.
        """
        state, seconds = self._state, self._plan.drain_seconds
        if state.draining:
            return
        state.draining = True
        _log.info("draining", extra={"fields": {"seconds": seconds, "connections": self._connections.count}})
        self._runner.get_loop().call_later(seconds, self._stop)

    def _stop(self, *, at_once: bool = False) -> None:
        self.alive = False
        self._at_once |= at_once
        for listener in self._listeners:
            listener.close()
        for connection in self._idle():
            connection.close()
        self._runner.get_loop().call_later(_GOODBYE_SECONDS, self._end_idle)

    def _end_idle(self) -> None:
        """End the idle connections.

        A client that ignores the end of TLS would delay the stop of the worker.
        """
        for connection in self._idle():
            connection.end()

    def _idle(self) -> Iterator[TrackedConnection]:
        return (connection for table in self._tables for connection in table if connection.idle)

    def _upkeep(self) -> Iterator[Coroutine[object, object, None]]:
        plan, state = self._plan, self._state
        yield self._sweep()
        yield self._open()
        if plan.certificates.own is not None:
            yield plan.certificates.own.keep()
        if plan.certificates.renew is not None:
            yield plan.certificates.renew()
        if plan.loaded is not None:
            yield follow_configuration(state, plan.loaded)
        if plan.feed is not None and plan.follows_version:
            yield follow_version(state, plan.feed)

    async def _open(self) -> None:
        """Wait for a certificate, open the admission port, then reload changed certificates until the worker ends."""
        plan, state = self._plan, self._state
        try:
            if plan.certificates.own is not None:
                await plan.certificates.own.issued.wait()
            tls = plan.tls()
            plan.admission.listen(BACKLOG)
        except Exception as error:
            self.log.exception("cannot load the certificate or open the admission port")
            raise SystemExit(Arbiter.WORKER_BOOT_ERROR) from error
        if not state.draining:
            app = self._admission
            port = Port(
                table=self._connections,
                app=app,
                direct=app.direct,
                state=state,
                keepalive=self.cfg.keepalive,
                tls=tls.context,
            )
            self._listeners = [Listener(plan.admission, port)]
            plan.on_ready()
        await follow_certificates(state, tls)

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_unhandled)
        plain = [Listener(listener.sock, self._health) for listener in self.sockets]
        self._admission.start()
        beside = [loop.create_task(task) for task in self._upkeep()]
        try:
            while self.alive and self.ppid == os.getppid():
                self.notify()
                await asyncio.sleep(_HEARTBEAT_SECONDS)
            self._stop()
            until = loop.time() + self.cfg.graceful_timeout
            while self._connections.count and not self._at_once and loop.time() < until:  # noqa: ASYNC110 only during the stop
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            for task in beside:
                task.cancel()
            for listener in plain:
                listener.close()
            self._admission.close()

    async def _sweep(self) -> None:
        """Close connections that exceed a time limit, and return unused memory to the system. Runs forever."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            self._state.metrics.open_connections.set(self._connections.count)
            # First, since connections ended below are still counted for a moment.
            idle = all(connection.idle for connection in self._connections)
            if idle and any(table.drained(_MUCH_BYTES) for table in self._tables):
                give_memory_back()
            now = time.monotonic()
            for table in self._tables:
                for connection in table:
                    if connection.overdue(now):
                        table.end(connection, "late")


def _routes() -> ModuleType:
    from webhook.server import routes  # noqa: PLC0415 loading Flask takes a third of the start

    return routes


def _raise_descriptor_limit(wanted: int) -> None:
    """Raise the soft limit, often 1,024, as far as the hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _unhandled(_loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """Log errors of the event loop. Failed TLS handshakes are debug messages, since any client can cause them."""
    error = context.get("exception")
    if isinstance(error, ssl.SSLError | OSError | TimeoutError):
        _log.debug("connection failed: %s", error)
    else:
        _log.error(
            "unhandled error in the event loop: %s",
            context.get("message"),
            exc_info=error if isinstance(error, Exception) else None,
        )
