"""Shared state of the serving process. Tasks update it from files and the cluster, and requests read it."""

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
from webhook.core.api.times import api_time
from webhook.logs import bounded, exception_fields
from webhook.metrics import Metrics
from webhook.server.certificates import OwnCertificate, RotatingTls

_FOLLOW_SECONDS = 1.0  # a few system calls; the kubelet takes up to a minute to update a Secret or ConfigMap

_log = logging.getLogger(__name__)
_decisions = logging.getLogger("webhook.decisions")

_api_time = lru_cache(1)(api_time)  # formatting takes longer than most rules


class ServerState:
    """The state of the webhook server: its review engine, readiness, and counters and logs of requests."""

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
        # Whether processes for costly objects have started, if there are any.
        self.reviewers_ready: Callable[[], bool] = lambda: True
        self.draining = False
        self.config_fault = ""
        self.certificate_fault = ""
        self.own_certificate = own_certificate

    def now(self) -> str:
        """Return the time to the second as ISO text (UTC)."""
        return _api_time(int(self.clock()))

    def readiness(self) -> tuple[bool, str]:
        """Return whether to send requests here, and the text of /readyz.

        A replica stays ready with

         - a faulty configuration file or certificate: the last good version serves,
         - a lost cluster: the text reports its age,
         - an expired certificate: the caller's clock decides, and this machine's clock may be wrong.
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
            lines["costly objects"] = "waiting for the first review process"
        return known and certified and reviewing and not self.draining, "".join(
            f"{name}: {text}\n" for name, text in lines.items()
        )

    def _cluster(self) -> Mapping[str, str]:
        if self.feed is None:
            return {"cluster": "none known" if self.engine.index is None else "from a snapshot"}
        watch_states = self.feed.watch_states()
        waiting = [watch.resource for watch in watch_states if not watch.synced and (watch.required or not watch.tried)]
        lines = {"cluster": f"waiting for {', '.join(waiting)}" if waiting else "ok"}
        for watch in watch_states:
            if watch.line:
                lines[f"cluster {watch.resource}"] = watch.line
        return lines

    def account(self, route: str, answer: ReviewAnswer, seconds: float) -> None:
        """Count a review in the metrics, and log it.

        Admissions without warning or patch are logged as debug messages.
        """
        decision, request = answer.decision, answer.request
        word = "error" if answer.failed else "allow" if decision.allowed else "deny"
        self.metrics.answered(route, word, dry_run=request.dry_run, seconds=seconds)
        if answer.failed:
            self.metrics.count("admission_errors")
        lacked = [unevaluated.rule for unevaluated in decision.not_evaluated if unevaluated.fault is None]
        self.metrics.rules([(judged.finding.rule, judged.mode) for judged in decision.findings], lacked)
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
        # An admission without remarks is logged only at debug level: there are thousands a minute.
        has_remarks = bool(decision.warnings or decision.patch or not decision.allowed)
        level = logging.INFO if has_remarks else logging.DEBUG
        if _decisions.isEnabledFor(level):
            _decisions.log(level, word, extra={"fields": _logged_fields(route, answer, seconds)})

    def _account_for_faults(self, route: str, answer: ReviewAnswer) -> None:
        for unevaluated in answer.decision.not_evaluated:
            if unevaluated.fault is not None:
                self.metrics.rule_failed(unevaluated.rule)
                fields = {
                    "rule": unevaluated.rule,
                    "route": route,
                    **answer.request.logged,
                    **exception_fields(unevaluated.fault),
                }
                _decisions.error("a rule failed because of a bug; the other rules answered", extra={"fields": fields})


async def follow_configuration(state: ServerState, loaded: Loaded) -> None:
    """Reload the configuration file after each change. A faulty file only changes the text of /readyz."""
    while True:
        await asyncio.sleep(_FOLLOW_SECONDS)
        fresh = await asyncio.to_thread(reloaded, loaded)
        if fresh is loaded:
            continue
        loaded = fresh
        take_configuration(state, fresh)


def take_configuration(state: ServerState, loaded: Loaded) -> None:
    """Use a loaded configuration, or report why the previous configuration stays."""
    state.metrics.config_valid.set(loaded.error is None)
    if loaded.error is not None:
        state.config_fault = bounded(f"invalid; the last good version stays in use: {loaded.error}".replace("\n", "; "))
        _log.error("the configuration is invalid; the last good version stays in use: %s", loaded.error)
        return
    state.config_fault = ""
    state.engine = msgspec.structs.replace(state.engine, policy=loaded.policy)
    _log.info("configuration loaded", extra={"fields": {"file": loaded.file}})


async def follow_version(state: ServerState, feed: Feed) -> None:
    """Keep the engine's Kubernetes release equal to the API server's, also after an upgrade. Runs forever."""
    while True:
        version = feed.version
        if version is not None and version != state.engine.version:
            state.engine = msgspec.structs.replace(state.engine, version=version)
        await asyncio.sleep(_FOLLOW_SECONDS)


async def follow_certificates(state: ServerState, tls: RotatingTls) -> None:
    """Check the certificate files regularly, even without connections, and publish their dates."""
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
        "findings": [f"{judged.finding.rule} {judged.mode}" for judged in decision.findings],
        "patchOperations": len(decision.patch),
        "milliseconds": round(seconds * 1000, 3),
    }
