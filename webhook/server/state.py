"""The mutable state of the process, in one place: requests read it, watchers and the drain write it."""

import logging
import time
from collections.abc import Callable, Mapping

from webhook.admission import Engine, ReviewAnswer
from webhook.cluster.feed import Feed
from webhook.logs import described
from webhook.metrics import Metrics
from webhook.server.own_certificate import OwnCertificate

_log = logging.getLogger("webhook.decisions")


class State:
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
            metrics.follow_cluster(feed.standings)
        # Whether processes for costly objects have started, where there are any.
        self.judges_ready: Callable[[], bool] = lambda: True
        self.draining = False
        self.config_fault = ""
        self.certificate_fault = ""
        self.own_certificate = own_certificate
        self._day = (0, "")
        self._second = (-1, "")

    def today(self) -> str:
        """The date, as ISO text (UTC)."""
        number = int(self.clock()) // 86_400
        # Formatting takes longer than most rules: once a day is enough.
        if self._day[0] != number:
            self._day = (number, time.strftime("%Y-%m-%d", time.gmtime(number * 86_400)))
        return self._day[1]

    def now(self) -> str:
        """The time to the second, as ISO text (UTC)."""
        number = int(self.clock())
        # As above, once a second.
        if self._second[0] != number:
            self._second = (number, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(number)))
        return self._second[1]

    def readiness(self) -> tuple[bool, str]:
        """Whether to send requests here, and the lines that say why.

        A bad configuration file or certificate does not end readiness: the last good one serves. Nor does losing the
        cluster: what is known of it serves, and its age is told. A certificate that has ended does not either: who
        judges that is the caller, whose clock may be right where ours is not.
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
        judging = self.judges_ready()
        if not judging:
            lines["costly objects"] = "waiting for the first process"
        return known and certified and judging and not self.draining, "".join(
            f"{name}: {text}\n" for name, text in lines.items()
        )

    def _cluster(self) -> Mapping[str, str]:
        if self.feed is None:
            return {"cluster": "none known" if self.engine.index is None else "from a snapshot"}
        standings = self.feed.standings()
        waiting = [each.resource for each in standings if not each.synced and (each.required or not each.tried)]
        lines = {"cluster": f"waiting for {', '.join(waiting)}" if waiting else "ok"}
        for each in standings:
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
        if _log.isEnabledFor(level):
            _log.log(level, word, extra={"fields": _told(route, answer, seconds)})

    def _account_for_faults(self, route: str, answer: ReviewAnswer) -> None:
        """Count and log the rules that raised."""
        for each in answer.decision.not_evaluated:
            if each.fault is not None:
                self.metrics.rule_failed(each.rule)
                told = {"rule": each.rule, "route": route, **answer.request.logged, **described(each.fault)}
                _log.error("a rule failed; the others answered", extra={"fields": told})


def _told(route: str, answer: ReviewAnswer, seconds: float) -> Mapping[str, object]:
    decision = answer.decision
    return {
        "route": route,
        **answer.request.logged,
        "reason": decision.reason,
        "findings": [f"{each.finding.rule} {each.mode}" for each in decision.findings],
        "patchOperations": len(decision.patch),
        "milliseconds": round(seconds * 1000, 3),
    }
