"""Scan a workload: find its findings (`examine`) and the distribution of its pods.

Each part of the scan catches its own exceptions. An exception becomes a `ScanFailure`, and the other parts still have
results.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from msgspec import Raw
from msgspec.structs import replace

from webhook.core.api.types import ObjectMeta, OwnerReference, TypeMeta
from webhook.core.defaulting.injection import Injection
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.pods_to_create.daemon_pods import wanted_nodes, with_daemon_tolerations
from webhook.core.pods_to_create.next_pod import NextPod
from webhook.core.policy.lookup import scale_in_for
from webhook.core.policy.options import ScaleIn
from webhook.core.policy.policy import Mode
from webhook.core.review.decision import Examination
from webhook.core.review.examination import examine
from webhook.core.review.judging import JudgedFinding
from webhook.core.scan.actual_skew import actual_skews, has_standing_pods, own_pods, unguarded_scale_in
from webhook.core.scan.scan_context import ObjectKey, ScanContext, key_of, next_pods, stands_for, to_inject
from webhook.core.scan.scan_results import (
    ActualSkew,
    GuardState,
    ScaleInState,
    ScanFailure,
    ScannedWorkload,
    SmallestFix,
)
from webhook.core.scan.smallest_fix import fix_by_defaults, fix_for_findings, fix_for_pending
from webhook.core.scan.waiting_pods import WaitingPods, waiting_pods
from webhook.core.scan.zone_losses import zone_losses
from webhook.core.text import object_title
from webhook.core.workloads.kinds import are_removed_by_replica_sets, group_kind
from webhook.core.workloads.reading import parse_object, read_meta, stated_type
from webhook.core.workloads.workload import Workload, namespace_of

_Answer = TypeVar("_Answer")
_RawObject = bytes | Raw | Mapping[str, object]
REVIEW = "review"
_GUARD_STATES = {ScaleIn.REPORT: GuardState.REPORT, ScaleIn.GUARD: GuardState.REQUESTED}


def scan_workload(raw: bytes | Mapping[str, object], within: ScanContext) -> ScannedWorkload | None:
    """Scan a workload. Return None for an object without pods.

    Raises:
        DecodeError: The text is no JSON object, or its apiVersion or kind is no string.
    """
    return scan_object(raw, within)[1]


def scan_object(
    raw: bytes | Mapping[str, object], within: ScanContext, *, as_written: Callable[[str], str] = lambda _path: ""
) -> tuple[Examination, ScannedWorkload | None]:
    """Evaluate the rules for an object. Scan the object too, if it has pods.

    ``as_written`` is an argument of `examine`. If a rule evaluation raises an exception, the examination is empty, and
    the scan records the exception. Raises the errors of `scan_workload`.
    """
    stated, meta, failures = stated_type(raw), read_meta(raw), list[ScanFailure]()
    context = within.context
    context = replace(context, namespace=meta.namespace or context.namespace)
    within = replace(within, context=context)
    examined = _guarded(REVIEW, lambda: examine(raw, context, as_written=as_written), failures) or Examination()
    workload = examined.workload
    if workload is None and examined.decode_error is None and not failures:
        return examined, None
    failures += (ScanFailure(each.rule, each.fault) for each in examined.not_evaluated if each.fault is not None)
    scanned = replace(_named(stated, meta, examined, within), failures=tuple(failures))
    if workload is not None and within.index is not None:
        scanned = _PodState(workload, raw, scanned, within=within, index=within.index).scanned()
    return examined, scanned


def _guarded(part: str, ask: Callable[[], _Answer], failures: list[ScanFailure]) -> _Answer | None:
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 a failing part must not stop the others
        failures.append(ScanFailure(part, error))
        return None


def _named(stated: TypeMeta, meta: ObjectMeta, examined: Examination, within: ScanContext) -> ScannedWorkload:
    api_version, kind = stated.api_version or "", stated.kind or ""
    namespace = namespace_of(meta.namespace, within.context.namespace)
    above = _controller(api_version, kind, meta, within)
    return ScannedWorkload(
        api_version=api_version,
        kind=kind,
        namespace=namespace,
        name=meta.name,
        uid=meta.uid,
        stands_for=object_title(above.kind, namespace, above.name) if above else "",
        readable=examined.decode_error is None,
        findings=examined.findings,
        not_evaluated=examined.not_evaluated,
        would_deny=_denied(examined.findings),
        wanted=None if examined.workload is None else _wanted(examined.workload),
    )


def _controller(api_version: str, kind: str, meta: ObjectMeta, within: ScanContext) -> OwnerReference | None:
    embedded = within.context.policy.workloads
    return stands_for(group_kind(api_version, kind), api_version, meta, embedded)


def _denied(findings: Sequence[JudgedFinding]) -> tuple[str, ...]:
    denied = (each for each in findings if each.configured is Mode.DENY and not each.waived)
    return tuple(sorted({each.finding.rule for each in denied}))


def _wanted(workload: Workload) -> int | None:
    """Return the number of pods required by the workload's spec.

    0 for a suspended workload. None if the spec has no such number, for example in a DaemonSet.
    """
    if workload.traits.on_every_node or not workload.whole or not workload.templates:
        return None
    if workload.suspended:
        return 0
    # The API server's default is 1.
    numbers = [1 if each.replicas is None else each.replicas for each in workload.templates]
    return None if workload.traits.completes and workload.replicas is None else sum(numbers)


class _PodState:
    def __init__(
        self,
        workload: Workload,
        raw: _RawObject,
        named: ScannedWorkload,
        *,
        within: ScanContext,
        index: ReadOnlyIndex,
    ) -> None:
        self._workload, self._raw, self._named = workload, raw, named
        self._within, self._index = within, index
        self._own = own_pods(workload, within)

    def scanned(self) -> ScannedWorkload:
        """Return the workload with all known facts about its pods."""
        named, failures = self._named, [*self._named.failures]
        pods = _guarded("next pod", lambda: tuple(next_pods(self._workload, self._within)), failures) or ()
        waiting = _guarded("cause of Pending pods", self._waiting, failures) or WaitingPods()
        injection = _guarded("injection", lambda: self._injection(pods), failures)
        skews = _guarded("skew", lambda: self._skews(pods), failures) or ()
        scanned = replace(
            named,
            wanted=self._nodes(pods) if self._workload.traits.on_every_node else named.wanted,
            pods=self._present(waiting),
            zones=_guarded("zones", self._zones, failures) or {},
            pending=waiting.causes,
            pending_since=waiting.since,
            pending_pods=waiting.named,
            skews=skews,
            losses=_guarded("zone loss", lambda: zone_losses(self._workload, pods, self._within), failures) or (),
            would_inject=0 if injection is None else len(injection.record.filled or injection.constraints),
            lacking=self._lacking(injection),
            fix=_guarded("fix", lambda: self._fix(waiting, injection), failures),
            scale_in=_guarded("scale-in", lambda: self._scale_in(skews), failures),
        )
        return replace(scanned, failures=tuple(failures))

    def _key(self) -> ObjectKey:
        """Return the key of the workload.

        For a scanned pod in place of its unscanned controller, return the controller's key.
        """
        workload, namespace = self._workload, self._named.namespace
        above = _controller(workload.api_version, workload.kind, workload.meta, self._within)
        if above is not None:
            return key_of(namespace, above.api_version, above.kind, above.name)
        return key_of(namespace, workload.api_version, workload.kind, workload.meta.name)

    def _skews(self, pods: Sequence[NextPod]) -> tuple[ActualSkew, ...]:
        if not has_standing_pods(self._workload, stand_in=bool(self._named.stands_for)):
            return ()
        return tuple(skew for pod in pods for skew in actual_skews(pod, self._own))

    def _scale_in(self, skews: Sequence[ActualSkew]) -> ScaleInState | None:
        if not are_removed_by_replica_sets(self._workload.group_kind):
            return None
        namespace, annotations = self._named.namespace, self._workload.meta.annotations
        labels = self._index.namespaces.labels(namespace) or {}
        guard = _GUARD_STATES.get(scale_in_for(self._within.context.policy, namespace, labels, annotations))
        return None if guard is None else unguarded_scale_in(skews, guard)

    def _waiting(self) -> WaitingPods:
        pods = self._within.waiting.get(self._key(), ())
        return waiting_pods(pods, self._within.context)

    def _present(self, waiting: WaitingPods) -> int | None:
        pending = sum(waiting.causes.values())
        if self._own is not None:
            return sum(self._index.pods.count(self._named.namespace, self._own).values()) + pending
        if not self._workload.is_pod or self._named.stands_for:
            return None
        pod = self._index.pods.on_node(self._named.namespace, self._named.name)
        return pending + (pod is not None and not pod.terminates)

    def _zones(self) -> dict[str, int]:
        if self._own is None:
            return {}
        counts = self._index.pods.count(self._named.namespace, self._own)
        return {
            zone.name: sum(pods for slot, pods in counts.items() if zone.nodes >> slot & 1)
            for zone in self._within.zones
        }

    def _nodes(self, pods: Sequence[NextPod]) -> int | None:
        wanted = (wanted_nodes(with_daemon_tolerations(pod.problem.pod), self._index.nodes.view()) for pod in pods)
        return sum(nodes.bit_count() for nodes in wanted) if pods else None

    def _injection(self, pods: Sequence[NextPod]) -> Injection | None:
        injections = (to_inject(pod) for pod in pods)
        return next((injection for injection in injections if injection is not None), None)

    def _lacking(self, injection: Injection | None) -> int:
        if injection is None or injection.record.filled or self._own is None:
            return 0
        return self._index.pods.count_unspread(self._named.namespace, self._own)

    def _fix(self, waiting: WaitingPods, injection: Injection | None) -> SmallestFix | None:
        raw, fix = parse_object(self._raw), None
        if waiting.spread is not None:
            fix = fix_for_pending(waiting.spread, self._key(), raw, self._index)
        fix = fix or fix_for_findings(self._named.findings, raw)
        if fix is None and injection is not None:
            fix = fix_by_defaults(injection, self._workload)
        return fix
