"""The report and the events of a scanned workload.

Users with read access to the workload's namespace can read reports and events. So these name the workload's own pods
and domains, but only count nodes.

Source: events.k8s.io/v1 Event (``note`` up to 1 kB, ``action`` and ``reason`` up to 128 characters).
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from webhook.answers.document import with_fields_of
from webhook.core.api.selectors import valid_selector
from webhook.core.api.spread_group import API_VERSION, CAPS_HELD, KIND, SpreadGroup
from webhook.core.api.times import micro_time
from webhook.core.api.well_known import DELETION_COST_ANNOTATION, EVENT_CONTROLLER, HOSTNAME, SCALE_IN_ANNOTATION
from webhook.core.groups.status.forms import Distribution, SpreadGroupStatus
from webhook.core.policy.policy import Mode
from webhook.core.review.judging import JudgedFinding
from webhook.core.rules.frame.rule import Severity
from webhook.core.scan.actual_skew import ownership_text
from webhook.core.scan.scan_results import (
    ActualSkew,
    GuardState,
    Origin,
    PendingCause,
    PendingPod,
    ScaleInState,
    ScannedWorkload,
)
from webhook.core.text import one_line, plural
from webhook.core.workloads.workload import Workload
from webhook.report.documents import ReportContent, ReportResult, short_hash

_SPREAD_VIOLATION, _SPREAD_DRIFT, _SPREAD_INFEASIBLE = "SpreadViolation", "SpreadDrift", "SpreadInfeasible"
_GROUP_CAP_EXCEEDED = "GroupCapExceeded"
_SCALE_IN_UNGUARDED = "ScaleInUnguarded"
_DRIFT_POLICY, _INFEASIBLE_POLICY, _SCALE_IN_POLICY = "spread-drift", "spread-infeasible", "spread-scale-in"
_OTHER_WRITER = f"another program writes {DELETION_COST_ANNOTATION} of the pods"
_SCALE_IN_NOTES = {
    GuardState.REPORT: "",
    GuardState.REQUESTED: "; the guard is requested, but not known to be active",
    GuardState.WAITING: "; not guarded yet, because of the controller's limit of writes per minute",
    GuardState.GUARDED: "; the guard found no better order of removal",
    GuardState.STOPPED: f"; not guarded, because {_OTHER_WRITER}",
}
# A pod may be Pending this long before its event. Autoscalers and rollouts need some time.
_PATIENCE = timedelta(seconds=60)
_MOST_DOMAINS = 12  # named in a text
_NOTE_BYTES = 1000  # the API allows 1,024
_NAME_CHARS = 220  # the API allows 253, with the dot and the hash


class Notice(Struct, frozen=True, kw_only=True):
    """A Kubernetes event to write, unless the last event reported the same faults.

    Attributes:
        keys: The reported faults. Writers compare them with the faults of the last event.
        note: The event's text.
        regarding: The object of the event.
    """

    reason: str
    keys: frozenset[str]
    note: str
    regarding: Mapping[str, str]


def report_content(scanned: ScannedWorkload) -> ReportContent | None:
    """Return the content of the workload's report. None if it has no results."""
    stated = pod_results(scanned)
    if not scanned.uid or not (scanned.findings or stated):
        return None
    return with_fields_of(scanned, ReportContent, stated=stated)


def pod_results(scanned: ScannedWorkload) -> tuple[ReportResult, ...]:
    """Return results about the workload's pods: Pending pods, exceeded constraints, and the worst scale-in."""
    state = scanned.scale_in
    drifts = [_drift(skew, state) for skew in _drifted(scanned)]
    if state is not None and not drifts and (state.above or state.guard is GuardState.STOPPED):
        drifts = [_uneven_scale_in(state)]
    return (*_infeasible(scanned), *drifts)


def notices(scanned: ScannedWorkload, now: datetime) -> Iterator[Notice]:
    """Yield the events due for the workload's present faults.

    All faults with the same reason share an event. But each Pending pod has its own event.
    """
    regarding = _reference(scanned.api_version, scanned.kind, scanned.namespace, scanned.name, scanned.uid)
    violations = [judged for judged in scanned.findings if judged.mode in {Mode.WARN, Mode.DENY} and not judged.waived]
    if violations:
        keys = frozenset(judged.finding.rule for judged in violations)
        yield Notice(reason=_SPREAD_VIOLATION, keys=keys, note=_violation_note(violations), regarding=regarding)
    drifted = [skew for skew in _drifted(scanned) if skew.hard]
    if drifted:
        keys = frozenset(f"{skew.path} {skew.topology_key}" for skew in drifted)
        note = "; ".join(f"{_counts(skew)}: {_compared(skew)}" for skew in drifted)
        yield Notice(reason=_SPREAD_DRIFT, keys=keys, note=_short_note(note), regarding=regarding)
    for pod in scanned.pending_pods:
        if pod.cause is PendingCause.SPREAD and now - _time(pod.since, now) >= _PATIENCE:
            yield _waiting(scanned, pod)


def event(notice: Notice, now: datetime, instance: str) -> Mapping[str, object]:
    """Return the Event object of a notice. Its name is the same in every process."""
    regarding = notice.regarding
    parts = (regarding["uid"], notice.reason, *sorted(notice.keys))
    mark = short_hash(*parts)
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


def _drifted(scanned: ScannedWorkload) -> list[ActualSkew]:
    """Return the constraints above maxSkew, from the template or from injection."""
    return [skew for skew in scanned.skews if skew.above and skew.origin is not Origin.DEFAULT]


def _drift(skew: ActualSkew, state: ScaleInState | None) -> ReportResult:
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
            **_scale_in_properties(state),
        },
    )


def _uneven_scale_in(state: ScaleInState) -> ReportResult:
    above = ", above maxSkew" if state.above else ""
    note = f"; the guard is inactive: {state.inactive}" if state.inactive else _SCALE_IN_NOTES[state.guard]
    return ReportResult(
        policy=_SCALE_IN_POLICY,
        key="scale-in",
        severity=Severity.LOW,
        result="warn",
        message=f"a scale-in can leave skew {state.worst_skew}{above}{note}",
        properties=_scale_in_properties(state),
    )


def _scale_in_properties(state: ScaleInState | None) -> Mapping[str, str]:
    if state is None:
        return {}
    properties = {"scaleInWorstSkew": str(state.worst_skew), "scaleInGuard": str(state.guard)}
    return properties | ({"scaleInInactive": state.inactive} if state.inactive else {})


def _infeasible(scanned: ScannedWorkload) -> Iterator[ReportResult]:
    waiting = scanned.pending.get(PendingCause.SPREAD, 0)
    if waiting:
        oldest = scanned.oldest_for_spread
        yield ReportResult(
            policy=_INFEASIBLE_POLICY,
            key="pending",
            severity=Severity.HIGH,
            result="fail",
            message=f"{plural(waiting, 'pod')} Pending: no node fits because of their own spread constraints",
            properties={"since": oldest.since if oldest else "", "fix": one_line(scanned.pending_fix)},
        )


def _waiting(scanned: ScannedWorkload, pod: PendingPod) -> Notice:
    hard = [skew for skew in scanned.skews if skew.hard]
    why = "; ".join(f"{_counts(skew)} with maxSkew {skew.max_skew}" for skew in hard)
    fix = f"fix: {scanned.pending_fix}" if scanned.pending_fix else ""
    parts = ["no node fits because of the pod's own spread constraints", why, fix]
    return Notice(
        reason=_SPREAD_INFEASIBLE,
        keys=frozenset({pod.uid}),
        note=_short_note("; ".join(filter(None, parts))),
        regarding=_reference("v1", "Pod", scanned.namespace, pod.name, pod.uid),
    )


def _violation_note(violations: list[JudgedFinding]) -> str:
    first = violations[0].finding
    remedy = f"; {first.remedy}" if first.remedy else ""
    rest = f" ({len(violations) - 1} more)" if len(violations) > 1 else ""
    return _short_note(f"{first.rule}: {first.summary}{remedy}{rest}")


def _short_note(text: str) -> str:
    """Cut the text to the API's limit."""
    return one_line(text, _NOTE_BYTES).encode("utf-8", "replace")[:_NOTE_BYTES].decode("utf-8", "ignore")


def _counts(skew: ActualSkew) -> str:
    whose = f" ({text})" if (text := ownership_text(skew)) else ""
    return f"{skew.name} {_domains(skew)}{whose}"


def _compared(skew: ActualSkew) -> str:
    return f"skew {skew.skew} is above maxSkew {skew.max_skew}"


def _domains(skew: ActualSkew) -> str:
    """Describe the pods in each domain: ``a 3, b 1, c 0``.

    For nodes, or many domains, describe only the smallest and the largest count.
    """
    if skew.topology_key != HOSTNAME and skew.eligible <= _MOST_DOMAINS:
        return ", ".join(f"{one_line(name, 63)} {pods}" for name, pods in sorted(skew.domains.items()))
    return f"{skew.fewest} to {skew.most} in {skew.eligible:,} domains"


def _reference(api_version: str, kind: str, namespace: str, name: str, uid: str) -> Mapping[str, str]:
    """Return the ``regarding`` field of an event."""
    return {"apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name, "uid": uid}


def _time(text: str, otherwise: datetime) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return otherwise


def group_notices(group: SpreadGroup, status: SpreadGroupStatus) -> Iterator[Notice]:
    """Yield the event for a group with a broken cap."""
    broken = [distribution for distribution in status.distribution if is_broken(distribution)]
    if broken:
        yield Notice(
            reason=_GROUP_CAP_EXCEEDED,
            keys=frozenset(map(_key, broken)),
            note=_short_note(status.condition(CAPS_HELD).message),
            regarding=_reference(API_VERSION, KIND, group.meta.namespace, group.meta.name, group.meta.uid),
        )


def guard_notice(workload: Workload, namespace: str) -> Notice:
    """Return the event for a workload with deletion costs of another program."""
    return Notice(
        reason=_SCALE_IN_UNGUARDED,
        keys=frozenset({_SCALE_IN_UNGUARDED}),
        note=(
            f"{_OTHER_WRITER}, so their scale-in is not guarded; remove its value, or set {SCALE_IN_ANNOTATION}: report"
        ),
        regarding=_reference(workload.api_version, workload.kind, namespace, workload.meta.name, workload.meta.uid),
    )


def is_broken(distribution: Distribution) -> bool:
    """Whether a domain holds more pods than the cap allows."""
    return max(distribution.domains.values(), default=0) > distribution.cap


def _key(distribution: Distribution) -> str:
    selector = valid_selector(distribution.selector) if distribution.selector is not None else None
    return f"{distribution.topology_key} {selector.text if selector is not None else ''}"
