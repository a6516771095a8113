"""What the scan saw of a workload -> what its report says, and what its events tell.

A report and an event are read by whoever may look into the workload's namespace: they name its own pods, and domains
but for nodes, of which only counts are said.

Source: events.k8s.io/v1 Event (``note`` up to 1 kB, ``action`` and ``reason`` up to 128 characters).
"""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct

from webhook.core.api.selectors import valid_selector
from webhook.core.api.spread_group import API_VERSION, CAPS_HELD, KIND, SpreadGroup
from webhook.core.api.well_known import EVENT_CONTROLLER, HOSTNAME
from webhook.core.groups.status.forms import Distribution, Status
from webhook.core.policy.policy import Mode
from webhook.core.review.judging import JudgedFinding
from webhook.core.rules.frame.rule import Severity
from webhook.core.scan.actual_skew import ownership_text
from webhook.core.scan.scanned import ActualSkew, Origin, PendingCause, PendingPod, ScannedWorkload
from webhook.core.text import one_line, plural
from webhook.report.documents import ReportContent, ReportResult

SPREAD_VIOLATION, SPREAD_DRIFT, SPREAD_INFEASIBLE = "SpreadViolation", "SpreadDrift", "SpreadInfeasible"
GROUP_CAP_EXCEEDED = "GroupCapExceeded"
_DRIFT_POLICY, _INFEASIBLE_POLICY = "spread-drift", "spread-infeasible"
# So long a pod may wait before its event: autoscalers and rollouts need some time.
PATIENCE = timedelta(seconds=60)
_MOST_DOMAINS = 12  # that a text names
_NOTE_BYTES = 1000  # of 1,024
_NAME_CHARS = 220  # of 253, with what follows


class Notice(Struct, frozen=True, kw_only=True):
    """An event that may be due: what about, why, and what makes it another one than the last.

    Shape: ``keys`` are what is wrong, one for each thing; whoever tells it compares them with those told before.
    """

    reason: str
    keys: frozenset[str]
    note: str
    regarding: Mapping[str, str]


def report_content(scanned: ScannedWorkload) -> ReportContent | None:
    """The content of the workload's report; None where there is nothing to say."""
    stated = pod_results(scanned)
    if not scanned.uid or not (scanned.findings or stated):
        return None
    return ReportContent(
        api_version=scanned.api_version,
        kind=scanned.kind,
        namespace=scanned.namespace,
        name=scanned.name,
        uid=scanned.uid,
        findings=scanned.findings,
        stated=stated,
    )


def pod_results(scanned: ScannedWorkload) -> tuple[ReportResult, ...]:
    """How its pods stand, as results: that some wait for their constraints, and which constraints are exceeded."""
    return (*_infeasible(scanned), *map(_drift, _drifted(scanned)))


def notices(scanned: ScannedWorkload, now: datetime) -> Iterator[Notice]:
    """The events that a workload could be due, of what is wrong with it now.

    Shape: all of one reason are one event; each Pending pod has its own.
    """
    regarding = reference(scanned.api_version, scanned.kind, scanned.namespace, scanned.name, scanned.uid)
    told = [each for each in scanned.findings if each.mode in {Mode.WARN, Mode.DENY} and not each.waived]
    if told:
        keys = frozenset(each.finding.rule for each in told)
        yield Notice(reason=SPREAD_VIOLATION, keys=keys, note=_violation(told), regarding=regarding)
    drifted = [each for each in _drifted(scanned) if each.hard]
    if drifted:
        keys = frozenset(f"{each.path} {each.topology_key}" for each in drifted)
        note = "; ".join(f"{_counts(each)}: {_compared(each)}" for each in drifted)
        yield Notice(reason=SPREAD_DRIFT, keys=keys, note=short_note(note), regarding=regarding)
    for pod in scanned.pending_pods:
        if pod.cause is PendingCause.SPREAD and now - _time(pod.since, now) >= PATIENCE:
            yield _waiting(scanned, pod)


def event(notice: Notice, now: datetime, instance: str) -> Mapping[str, Any]:
    """The event of a notice.

    Shape: the same notice gives the same name in every process.
    """
    regarding = notice.regarding
    parts = (regarding["uid"], notice.reason, *sorted(notice.keys))
    mark = hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{regarding['name'][:_NAME_CHARS]}.{mark}", "namespace": regarding["namespace"]},
        "eventTime": micro_time(now),
        "reportingController": EVENT_CONTROLLER,
        "reportingInstance": instance[:128],
        "action": "Scan",
        "reason": notice.reason,
        "regarding": dict(regarding),
        "note": notice.note,
        "type": "Warning",
    }


def micro_time(now: datetime) -> str:
    """As events have it."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _drifted(scanned: ScannedWorkload) -> list[ActualSkew]:
    """Constraints that its pods have, by the template or by injection, and that are above maxSkew."""
    return [each for each in scanned.skews if each.above and each.origin is not Origin.DEFAULT]


def _drift(skew: ActualSkew) -> ReportResult:
    return ReportResult(
        policy=_DRIFT_POLICY,
        key=f"{skew.path} {skew.topology_key} {skew.when_unsatisfiable}",
        severity=Severity.MEDIUM if skew.hard else Severity.LOW,
        result="warn",
        message=f"{_counts(skew)}: {_compared(skew)}",
        properties={
            "path": one_line(skew.path),
            "topologyKey": one_line(skew.topology_key),
            "whenUnsatisfiable": one_line(skew.when_unsatisfiable),
            "maxSkew": str(skew.max_skew),
            "skew": str(skew.skew),
            "domains": _domains(skew),
            "otherPods": str(sum(skew.others.values())),
            "origin": str(skew.origin),
        },
    )


def _infeasible(scanned: ScannedWorkload) -> Iterator[ReportResult]:
    waiting = scanned.pending.get(PendingCause.SPREAD, 0)
    if waiting:
        oldest = scanned.oldest_for_spread
        yield ReportResult(
            policy=_INFEASIBLE_POLICY,
            key="pending",
            severity=Severity.HIGH,
            result="fail",
            message=f"{plural(waiting, 'pod')} Pending: no node admits them under their own spread constraints",
            properties={"since": oldest.since if oldest else "", "fix": one_line(scanned.pending_fix)},
        )


def _waiting(scanned: ScannedWorkload, pod: PendingPod) -> Notice:
    hard = [each for each in scanned.skews if each.hard]
    why = "; ".join(f"{_counts(each)} of maxSkew {each.max_skew}" for each in hard)
    fix = f"fix: {scanned.pending_fix}" if scanned.pending_fix else ""
    parts = ["no node admits the pod under its own spread constraints", why, fix]
    return Notice(
        reason=SPREAD_INFEASIBLE,
        keys=frozenset({pod.uid}),
        note=short_note("; ".join(filter(None, parts))),
        regarding=reference("v1", "Pod", scanned.namespace, pod.name, pod.uid),
    )


def _violation(told: list[JudgedFinding]) -> str:
    first = told[0].finding
    remedy = f"; {first.remedy}" if first.remedy else ""
    rest = f" ({len(told) - 1} more)" if len(told) > 1 else ""
    return short_note(f"{first.rule}: {first.summary}{remedy}{rest}")


def short_note(text: str) -> str:
    """The text as an event may have it."""
    return one_line(text, _NOTE_BYTES).encode("utf-8", "replace")[:_NOTE_BYTES].decode("utf-8", "ignore")


def _counts(skew: ActualSkew) -> str:
    whose = f" ({text})" if (text := ownership_text(skew)) else ""
    return f"{skew.name} {_domains(skew)}{whose}"


def _compared(skew: ActualSkew) -> str:
    return f"skew {skew.skew} is above maxSkew {skew.max_skew}"


def _domains(skew: ActualSkew) -> str:
    """``a 3, b 1, c 0``; of nodes, and of many domains, only the fewest and the most."""
    if skew.topology_key != HOSTNAME and skew.eligible <= _MOST_DOMAINS:
        return ", ".join(f"{one_line(name, 63)} {pods}" for name, pods in sorted(skew.domains.items()))
    return f"{skew.fewest} to {skew.most} in {skew.eligible:,} domains"


def reference(api_version: str, kind: str, namespace: str, name: str, uid: str) -> Mapping[str, str]:
    """What an event is about."""
    return {"apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name, "uid": uid}


def _time(text: str, otherwise: datetime) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return otherwise


def group_notices(of: SpreadGroup, status: Status) -> Iterator[Notice]:
    """The event that is due while a cap of the group is broken."""
    broken = [each for each in status.distribution if is_broken(each)]
    if broken:
        yield Notice(
            reason=GROUP_CAP_EXCEEDED,
            keys=frozenset(map(_key, broken)),
            note=short_note(status.condition(CAPS_HELD).message),
            regarding=reference(API_VERSION, KIND, of.meta.namespace, of.meta.name, of.meta.uid),
        )


def is_broken(each: Distribution) -> bool:
    """Whether a domain holds more than the cap leaves."""
    return max(each.domains.values(), default=0) > each.cap


def _key(each: Distribution) -> str:
    selector = valid_selector(each.selector) if each.selector is not None else None
    return f"{each.topology_key} {selector.text if selector is not None else ''}"
