"""Tasks beside the requests: they follow the configuration file, the certificates and the API server's release."""

import asyncio
import logging
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from certs.authority import Pair, issue_leaf, renewal_due
from certs.store import write_pair
from webhook.cluster.feed import Feed
from webhook.config import Loaded, reloaded
from webhook.logs import bounded
from webhook.server.state import State
from webhook.server.tls import RotatingTls

_LOOK_SECONDS = 1.0  # a few system calls; the kubelet takes up to a minute to bring a changed Secret or ConfigMap
_RENEW_SECONDS = 60.0  # what is due then has more than two days left

_log = logging.getLogger(__name__)


async def follow_configuration(state: State, loaded: Loaded) -> None:
    """Load every change of the configuration file; an unusable one only changes the text of /readyz."""
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        fresh = await asyncio.to_thread(reloaded, loaded)
        if fresh is loaded:
            continue
        loaded = fresh
        take_configuration(state, fresh)


def take_configuration(state: State, loaded: Loaded) -> None:
    """Use a configuration that was read, or report why the previous one stays."""
    state.metrics.config_valid.set(loaded.error is None)
    if loaded.error is not None:
        state.config_fault = bounded(f"invalid, the last good one is in use: {loaded.error}".replace("\n", "; "))
        _log.error("the configuration cannot be used; the last good one stays: %s", loaded.error)
        return
    state.config_fault = ""
    state.engine = msgspec.structs.replace(state.engine, policy=loaded.policy)
    _log.info("configuration loaded", extra={"fields": {"file": loaded.file}})


async def follow_version(state: State, feed: Feed) -> None:
    """Follow the API server's release, also after an upgrade."""
    while True:
        version = feed.version
        if version is not None and version != state.engine.version:
            state.engine = msgspec.structs.replace(state.engine, version=version)
        await asyncio.sleep(_LOOK_SECONDS)


async def follow_certificates(state: State, tls: RotatingTls) -> None:
    """Look at the files even if nobody connects, and publish what is served."""
    counted = 0
    while True:
        tls.refresh()
        late = tls.time_fault(datetime.fromtimestamp(state.clock(), UTC))
        state.certificate_fault = "; ".join(filter(None, (tls.fault, late and f"{late}, by this machine's clock")))
        state.metrics.certificate_begin.set(tls.begins.timestamp())
        state.metrics.certificate_expiry.set(tls.expires.timestamp())
        if state.own_certificate is not None and state.own_certificate.authority_expires is not None:
            state.metrics.authority_expiry.set(state.own_certificate.authority_expires.timestamp())
        state.metrics.count("certificate_faults", by=tls.faults - counted)
        counted = tls.faults
        await asyncio.sleep(_LOOK_SECONDS)


async def renew_certificates(directory: Path, authority: Pair, names: tuple[str, ...]) -> None:
    """Issue a new leaf after two thirds of the old one's life, by the wall clock, since machines get suspended."""
    while True:
        await asyncio.sleep(_RENEW_SECONDS)
        current = directory / "live" / "tls.crt"
        if renewal_due(current.read_bytes(), datetime.now(UTC)):
            write_pair(directory, issue_leaf(authority, names, datetime.now(UTC)))
