"""One workload -> all there is to say of it. Findings are those of `examine`; nothing is evaluated twice.

Each part is asked by itself: what raises on one object is said of that object alone, and keeps no other answer back.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from msgspec import Raw
from msgspec.structs import replace

from webhook.core.api.types import ObjectMeta, OwnerReference, TypeMeta
from webhook.core.coming_pods.daemon_pods import tolerant, wanted_nodes
from webhook.core.coming_pods.next_pod import ComingPod
from webhook.core.defaulting.injection import Injection
from webhook.core.explain.edit_target import object_title
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.policy import Mode
from webhook.core.review.decision import Examination
from webhook.core.review.examination import examine
from webhook.core.review.judging import JudgedFinding
from webhook.core.scan.actual_skew import actual_skews, has_standing_pods, own_pods
from webhook.core.scan.scan_context import ObjectKey, ScanContext, key_of, next_pods, stands_for, to_inject
from webhook.core.scan.scanned import ActualSkew, ScanFailure, ScannedWorkload, SmallestFix
from webhook.core.scan.smallest_fix import fix_by_defaults, fix_for_findings, fix_for_pending
from webhook.core.scan.waiting_pods import WaitingPods, waiting_pods
from webhook.core.scan.zone_losses import zone_losses
from webhook.core.workloads.kinds import group_kind
from webhook.core.workloads.reading import parsed, read_meta, stated_type
from webhook.core.workloads.workload import Workload, namespace_of

_Answer = TypeVar("_Answer")
_RawObject = bytes | Raw | Mapping[str, object]
REVIEW = "review"


def scan_workload(raw: bytes | Mapping[str, object], within: ScanContext) -> ScannedWorkload | None:
    """What there is to say of one workload; None for an object without pods.

    Errors: DecodeError for text that is no JSON object, or whose apiVersion or kind is no text.
    """
    return scan_object(raw, within)[1]


def scan_object(
    raw: bytes | Mapping[str, object], within: ScanContext, *, as_written: Callable[[str], str] = lambda _path: ""
) -> tuple[Examination, ScannedWorkload | None]:
    """The answers of the rules, empty after an exception, and the scan of an object with pods.

    Shape: ``as_written`` as in `examine`. Errors: as `scan_workload`.
    """
    stated, meta, failures = stated_type(raw), read_meta(raw), list[ScanFailure]()
    here = within.context
    here = replace(here, namespace=meta.namespace or here.namespace)
    within = replace(within, context=here)
    examined = _guarded(REVIEW, lambda: examine(raw, here, as_written=as_written), failures) or Examination()
    workload = examined.workload
    if workload is None and examined.decode_error is None and not failures:
        return examined, None
    failures += (ScanFailure(each.rule, each.fault) for each in examined.not_evaluated if each.fault is not None)
    found = replace(_named(stated, meta, examined, within), failures=tuple(failures))
    if workload is not None and within.index is not None:
        found = _PodState(workload, raw, found, within=within, index=within.index).scanned()
    return examined, found


def _guarded(part: str, ask: Callable[[], _Answer], failures: list[ScanFailure]) -> _Answer | None:
    """The answer; None if asking raises, which is noted."""
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 whatever one part does to us, the others are answered
        failures.append(ScanFailure(part, error))
        return None


def _named(stated: TypeMeta, meta: ObjectMeta, examined: Examination, within: ScanContext) -> ScannedWorkload:
    """The workload as far as its object and the rules say."""
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
    """How many pods there are to be; None where the kind keeps no number of them."""
    if workload.traits.on_every_node or not workload.whole or not workload.templates:
        return None
    if workload.suspended:
        return 0
    # The API server's default is 1.
    numbers = [1 if each.replicas is None else each.replicas for each in workload.templates]
    return None if workload.traits.completes and workload.replicas is None else sum(numbers)


class _PodState:
    """How the pods of one workload stand, part by part."""

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
        """The named workload with all that is known of its pods."""
        named, failures = self._named, [*self._named.failures]
        made = _guarded("next pod", lambda: tuple(next_pods(self._workload, self._within)), failures) or ()
        waits = _guarded("cause of Pending pods", self._waiting, failures) or WaitingPods()
        injection = _guarded("injection", lambda: self._injection(made), failures)
        found = replace(
            named,
            wanted=self._nodes(made) if self._workload.traits.on_every_node else named.wanted,
            pods=self._present(waits),
            zones=_guarded("zones", self._zones, failures) or {},
            pending=waits.causes,
            pending_since=waits.since,
            pending_pods=waits.named,
            skews=_guarded("skew", lambda: self._skews(made), failures) or (),
            losses=_guarded("zone loss", lambda: zone_losses(self._workload, made, self._within), failures) or (),
            would_inject=0 if injection is None else len(injection.record.filled or injection.constraints),
            lacking=self._lacking(injection),
            fix=_guarded("fix", lambda: self._fix(waits, injection), failures),
        )
        return replace(found, failures=tuple(failures))

    def _key(self) -> ObjectKey:
        """The object whose pods are asked about: of a pod that stands for others their controller."""
        workload, namespace = self._workload, self._named.namespace
        above = _controller(workload.api_version, workload.kind, workload.meta, self._within)
        if above is not None:
            return key_of(namespace, above.api_version, above.kind, above.name)
        return key_of(namespace, workload.api_version, workload.kind, workload.meta.name)

    def _skews(self, made: Sequence[ComingPod]) -> tuple[ActualSkew, ...]:
        if not has_standing_pods(self._workload, stand_in=bool(self._named.stands_for)):
            return ()
        return tuple(skew for each in made for skew in actual_skews(each, self._own))

    def _waiting(self) -> WaitingPods:
        pods = self._within.waiting.get(self._key(), ())
        return waiting_pods(pods, self._within.context)

    def _present(self, waits: WaitingPods) -> int | None:
        pending = sum(waits.causes.values())
        if self._own is not None:
            return sum(self._index.pods.count(self._named.namespace, self._own).values()) + pending
        if not self._workload.is_pod or self._named.stands_for:
            return None
        pod = self._index.pods.on_node(self._named.namespace, self._named.name)
        return pending + (pod is not None and not pod.terminates)

    def _zones(self) -> dict[str, int]:
        """Its running pods in each zone; nothing where they cannot be told from others."""
        if self._own is None:
            return {}
        counts = self._index.pods.count(self._named.namespace, self._own)
        return {
            zone.name: sum(pods for slot, pods in counts.items() if zone.nodes >> slot & 1)
            for zone in self._within.zones
        }

    def _nodes(self, made: Sequence[ComingPod]) -> int | None:
        wanted = (wanted_nodes(tolerant(each.problem.pod), self._index.nodes.view()) for each in made)
        return sum(nodes.bit_count() for nodes in wanted) if made else None

    def _injection(self, made: Sequence[ComingPod]) -> Injection | None:
        found = (to_inject(each) for each in made)
        return next((each for each in found if each is not None), None)

    def _lacking(self, injection: Injection | None) -> int:
        if injection is None or injection.record.filled or self._own is None:
            return 0
        return self._index.pods.count_unspread(self._named.namespace, self._own)

    def _fix(self, waits: WaitingPods, injection: Injection | None) -> SmallestFix | None:
        raw = parsed(self._raw)
        found = None
        if waits.spread is not None:
            found = fix_for_pending(waits.spread, self._key(), raw, self._index)
        found = found or fix_for_findings(self._named.findings, raw)
        if found is None and injection is not None:
            found = fix_by_defaults(injection, self._workload)
        return found
