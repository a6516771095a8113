"""What changes while the process serves: requests read it; tasks that follow files and the cluster write it."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from webhook.admission import Engine, ReviewAnswer
from webhook.cluster.feed import Feed
from webhook.config import Loaded, reloaded
from webhook.logs import bounded, exception_fields
from webhook.metrics import Metrics
from webhook.server.certificates import OwnCertificate, RotatingTls

_FOLLOW_SECONDS = 1.0  # a few system calls; the kubelet takes up to a minute to bring a changed Secret or ConfigMap

_log = logging.getLogger(__name__)
_decisions = logging.getLogger("webhook.decisions")


@lru_cache(1)
def _day(number: int) -> str:
    # Formatting takes longer than most rules: once a day is enough, and once a second.
    return time.strftime("%Y-%m-%d", time.gmtime(number * 86_400))


@lru_cache(1)
def _second(number: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(number))


class ServerState:
    """The current engine, readiness, and the accounting of requests."""

    def __init__(
        self,
        engine: Engine,
        metrics: Metrics,
        feed: Feed | None = None,
        own_certificate: OwnCertificate | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.engine = engine
        self.metrics = metrics
        self.feed = feed
        self.clock = clock
        if feed is not None:
            metrics.follow_cluster(feed.watch_states)
        # Whether processes for costly objects have started, where there are any.
        self.reviewers_ready: Callable[[], bool] = lambda: True
        self.draining = False
        self.config_fault = ""
        self.certificate_fault = ""
        self.own_certificate = own_certificate

    def today(self) -> str:
        """The date, as ISO text (UTC)."""
        return _day(int(self.clock()) // 86_400)

    def now(self) -> str:
        """The time to the second, as ISO text (UTC)."""
        return _second(int(self.clock()))

    def readiness(self) -> tuple[bool, str]:
        """Whether to send requests here, and the lines that say why.

        A bad configuration file or certificate does not end readiness: the last good one serves. Nor does losing the
        cluster, whose age is reported. Nor does a certificate that has ended: the caller's clock decides that, and may
        be right where ours is not.
        """
        own_fault = self.own_certificate.fault if self.own_certificate is not None else ""
        lines = {
            "serving": "draining" if self.draining else "ok",
            "configuration": self.config_fault or "ok",
            "certificate": "; ".join(filter(None, (self.certificate_fault, own_fault))) or "ok",
            **self._cluster(),
        }
        known = self.feed is None or self.feed.synced
        certified = self.own_certificate is None or self.own_certificate.issued.is_set()
        reviewing = self.reviewers_ready()
        if not reviewing:
            lines["costly objects"] = "waiting for the first process"
        return known and certified and reviewing and not self.draining, "".join(
            f"{name}: {text}\n" for name, text in lines.items()
        )

    def _cluster(self) -> Mapping[str, str]:
        if self.feed is None:
            return {"cluster": "none known" if self.engine.index is None else "from a snapshot"}
        watch_states = self.feed.watch_states()
        waiting = [each.resource for each in watch_states if not each.synced and (each.required or not each.tried)]
        lines = {"cluster": f"waiting for {', '.join(waiting)}" if waiting else "ok"}
        for each in watch_states:
            if each.line:
                lines[f"cluster {each.resource}"] = each.line
        return lines

    def account(self, route: str, answer: ReviewAnswer, seconds: float) -> None:
        """Count an answer, and log it if it is more than a plain yes."""
        decision, request = answer.decision, answer.request
        word = "error" if answer.failed else "allow" if decision.allowed else "deny"
        self.metrics.answered(route, word, dry_run=request.dry_run, seconds=seconds)
        if answer.failed:
            self.metrics.count("admission_errors")
        lacked = [each.rule for each in decision.not_evaluated if each.fault is None]
        self.metrics.rules([(each.finding.rule, each.mode) for each in decision.findings], lacked)
        if len(lacked) < len(decision.not_evaluated):
            self._account_for_faults(route, answer)
        if decision.feasibility is not None:
            self.metrics.count("feasibility", decision.feasibility.verdict, decision.feasibility.cause)
        if decision.fallback is not None:
            self.metrics.count("fallbacks", "inject" if decision.fallback.patch else "observe")
        if decision.delivery:
            self.metrics.count("deliveries", decision.delivery)
        elif decision.injection is not None:
            self.metrics.count("injections", "inject" if decision.injection.patch else "observe")
        elif route == "mutate" and decision.reason:
            self.metrics.count("injections_skipped", decision.reason)
        # A plain yes is logged for debugging only: there are thousands a minute.
        said = bool(decision.warnings or decision.patch or not decision.allowed)
        level = logging.INFO if said else logging.DEBUG
        if _decisions.isEnabledFor(level):
            _decisions.log(level, word, extra={"fields": _logged_fields(route, answer, seconds)})

    def _account_for_faults(self, route: str, answer: ReviewAnswer) -> None:
        """Count and log the rules that raised."""
        for each in answer.decision.not_evaluated:
            if each.fault is not None:
                self.metrics.rule_failed(each.rule)
                told = {"rule": each.rule, "route": route, **answer.request.logged, **exception_fields(each.fault)}
                _decisions.error("a rule failed; the others answered", extra={"fields": told})


async def follow_configuration(state: ServerState, loaded: Loaded) -> None:
    """Load every change of the configuration file; an unusable one only changes the text of /readyz."""
    while True:
        await asyncio.sleep(_FOLLOW_SECONDS)
        fresh = await asyncio.to_thread(reloaded, loaded)
        if fresh is loaded:
            continue
        loaded = fresh
        take_configuration(state, fresh)


def take_configuration(state: ServerState, loaded: Loaded) -> None:
    """Use a configuration that was read, or report why the previous one stays."""
    state.metrics.config_valid.set(loaded.error is None)
    if loaded.error is not None:
        state.config_fault = bounded(f"invalid, the last good one is in use: {loaded.error}".replace("\n", "; "))
        _log.error("the configuration cannot be used; the last good one stays: %s", loaded.error)
        return
    state.config_fault = ""
    state.engine = msgspec.structs.replace(state.engine, policy=loaded.policy)
    _log.info("configuration loaded", extra={"fields": {"file": loaded.file}})


async def follow_version(state: ServerState, feed: Feed) -> None:
    """Follow the API server's release, also after an upgrade."""
    while True:
        version = feed.version
        if version is not None and version != state.engine.version:
            state.engine = msgspec.structs.replace(state.engine, version=version)
        await asyncio.sleep(_FOLLOW_SECONDS)


async def follow_certificates(state: ServerState, tls: RotatingTls) -> None:
    """Check the files even without connections, and publish what is served."""
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
        await asyncio.sleep(_FOLLOW_SECONDS)


def _logged_fields(route: str, answer: ReviewAnswer, seconds: float) -> Mapping[str, object]:
    decision = answer.decision
    return {
        "route": route,
        **answer.request.logged,
        "reason": decision.reason,
        "findings": [f"{each.finding.rule} {each.mode}" for each in decision.findings],
        "patchOperations": len(decision.patch),
        "milliseconds": round(seconds * 1000, 3),
    }
