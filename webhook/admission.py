"""AdmissionReview v1, bytes to bytes, around core.review.review.

    body -> decode -> Request -> review | mutate -> Decision -> encode -> body

Three kinds of failure never mix. A body that is no AdmissionReview is a ReviewError with an HTTP status; an object
that breaks a rule, or cannot be read, is an answer with ``allowed: false``; a bug that `review` did not answer as the
policy says is caught here, logged with the request's fields, counted, and allowed, with the uid.

Source: k8s.io/api/admission/v1; k8s.io/apiserver admission/plugin/webhook and filters/warning.go.
"""

import base64
import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Literal

import msgspec
from msgspec import Raw, Struct

from webhook.core.api.version import KubernetesVersion
from webhook.core.budget import Budget, OutOfTimeError, Reason, time_limit
from webhook.core.cached_property import cached_property
from webhook.core.context import Context
from webhook.core.decoders import decoder_of, read_nested
from webhook.core.index.facts import Asking, judged_afar
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.policy import Policy
from webhook.core.review.decision import AdmissionRequest, Decision
from webhook.core.review.mutation import mutate
from webhook.core.review.review import decide_unread, review
from webhook.core.rules.rule_set import skipped_rules
from webhook.logs import bounded, exception_fields

Route = Literal["validate", "mutate"]

_API_VERSION = "admission.k8s.io/v1"
_KIND = "AdmissionReview"

# kube-apiserver's default of a webhook's timeoutSeconds, for callers that do not send theirs.
CALLER_SECONDS = 10.0
# controller-runtime's number: an object and an old object of 3 MiB each, the API server's own limit, and the rest.
MAX_REVIEW_BYTES = 7 * 1024 * 1024
# kube-apiserver writes everything but the objects into the first KiB or two, and the objects behind that.
START_BYTES = 64 * 1024
_OBJECTS = re.compile(rb',\s*"(?:object|oldObject)"\s*:\s*\{')
# Processor time of one review in the event loop. What takes longer is left to a process, which has more time.
_IN_LINE_SECONDS = 0.003
# A uid is 36 characters; it is echoed, so what is longer than any uid is refused.
_LONGEST_UID = 256

# filters/warning.go: past 4,096 runes in all, texts are cut to 256; one with a control character is dropped.
_WARNING_RUNES = 256
_WARNINGS_RUNES = 4096
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# A message ends up in conditions and events of the owner, which live in etcd.
_MESSAGE_CHARACTERS = 8192
# The API server drops a key that is no qualified name; limits are those of ValidatingAdmissionPolicy.
_AUDIT_KEY = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_AUDIT_KEYS = 20
_AUDIT_CHARACTERS = 10240

# The answer to a review that raised before it decided.
_UNDECIDED = Decision(reason="internal error", audit={"error": "internal"})
_UNSAID = "denied by a rule whose message cannot be sent; the log of evenspread has the fault"

_NO_LIMIT = Budget(clock=time.perf_counter)
_log = logging.getLogger(__name__)


class ReviewError(Exception):
    """A request that is no review; ``status`` is its HTTP status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


class Engine(Struct, frozen=True, kw_only=True, dict=True):
    """What a request is judged by. Replaced as a whole when the configuration changes.

    Shape: ``index`` is None where nothing of the cluster is known; it may change between reviews, never within one.
    Where the cluster is ``scanned``, reports tell what is only audited.
    Unit: ``age`` says how many seconds ago the cluster was last known to be as the index has it.
    """

    policy: Policy
    version: KubernetesVersion
    index: ReadOnlyIndex | None = None
    age: Callable[[], float] = lambda: 0.0
    scanned: bool = False

    @cached_property
    def _skipped_rules(self) -> frozenset[str]:
        return skipped_rules(self.policy, scanned=self.scanned)

    def context(self, today: str, now: str, budget: Budget) -> Context:
        """The context of a review at this moment."""
        return Context(
            policy=self.policy,
            version=self.version,
            index=self.index,
            today=today,
            now=now,
            age=self.age,
            budget=budget,
            skipped_rules=self._skipped_rules,
        )


class ReviewAnswer(Struct, frozen=True, kw_only=True):
    """The bytes for the wire, and what they were made from, for logs and metrics."""

    body: bytes
    request: AdmissionRequest
    decision: Decision
    failed: bool = False


_NULL = Raw(b"null")


class _GroupVersionKind(Struct, frozen=True, gc=False):
    group: str = ""
    version: str = ""
    kind: str = ""


class _GroupVersionResource(Struct, frozen=True, gc=False):
    group: str = ""
    resource: str = ""


class _User(Struct, frozen=True):
    username: str = ""
    groups: tuple[str, ...] | None = None


class _AdmissionRequest(Struct, frozen=True, rename="camel"):
    uid: str
    kind: _GroupVersionKind
    operation: str
    resource: _GroupVersionResource | None = None
    sub_resource: str | None = None
    name: str | None = None
    namespace: str | None = None
    user_info: _User | None = None
    dry_run: bool | None = None
    object: Raw = _NULL
    old_object: Raw = _NULL


class _Review(Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: _AdmissionRequest | None = None


class _Status(Struct, frozen=True, gc=False):
    code: int
    reason: str
    message: str


class _AdmissionResponse(Struct, frozen=True, rename="camel", omit_defaults=True):
    uid: str
    allowed: bool
    status: _Status | None = None
    patch: str | None = None
    patch_type: str | None = None
    audit_annotations: Mapping[str, str] | None = None
    warnings: tuple[str, ...] | None = None


class _Reply(Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str = _API_VERSION
    kind: str = _KIND
    response: _AdmissionResponse


_DECODER = decoder_of(_Review)
_ENCODER = msgspec.json.Encoder()


def decode_review(body: bytes, *, in_line: bool = False) -> AdmissionRequest:
    """Read the envelope; the objects in it stay bytes.

    Errors: ReviewError for a body that is no AdmissionReview v1 with a request. RecursionError ``in_line``, for a body
    with levels to cut: that takes 0.5 ms a KiB.
    """
    try:
        envelope = _DECODER.decode(body) if in_line else read_nested(_DECODER.decode, body)
    except msgspec.ValidationError as error:
        raise ReviewError(f"not an {_API_VERSION} {_KIND}: {bounded(str(error))}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ReviewError(f"the body is not JSON: {bounded(str(error))}") from error
    if envelope.kind != _KIND or envelope.api_version != _API_VERSION:
        stated = f"{bounded(envelope.api_version, 64)} {bounded(envelope.kind, 64)}"
        raise ReviewError(f"not an {_API_VERSION} {_KIND} but {stated}")
    asked = envelope.request
    if asked is None:
        raise ReviewError(f"an {_KIND} without a request")
    if not 0 < len(asked.uid) <= _LONGEST_UID:
        raise ReviewError("request.uid is empty or longer than any uid")
    user = asked.user_info
    return AdmissionRequest(
        uid=asked.uid,
        operation=asked.operation,
        group=asked.kind.group,
        version=asked.kind.version,
        kind=asked.kind.kind,
        resource_group=asked.resource.group if asked.resource else "",
        resource=asked.resource.resource if asked.resource else "",
        sub_resource=asked.sub_resource or "",
        namespace=asked.namespace or "",
        name=asked.name or "",
        user=user.username if user else "",
        groups=(user.groups if user else None) or (),
        dry_run=asked.dry_run or False,
        object=_present(asked.object),
        old_object=_present(asked.old_object),
    )


def decode_start(body: bytes) -> AdmissionRequest:
    """Read the envelope of a review from the start of its body, without the objects.

    Quotes in a JSON string are escaped, so that no text of an author looks like the field ``object``.
    Errors: ReviewError where the envelope is incomplete, or comes after an object.
    Source: k8s.io/api admission/v1/types.go ``AdmissionRequest``, whose order of fields encoding/json keeps.
    """
    found = _OBJECTS.search(body)
    try:
        return decode_review(body if found is None else body[: found.start()] + b"}}", in_line=True)
    except RecursionError:
        raise ReviewError("the envelope is nested too deeply") from None


def answer(  # noqa: PLR0913 what differs from one request to the next
    route: Route,
    request: AdmissionRequest,
    engine: Engine,
    *,
    today: str,
    now: str = "",
    budget: Budget = _NO_LIMIT,
    waited: bool = True,
    unread_for: Reason | None = None,
    asking: Asking | None = None,
) -> ReviewAnswer:
    """Judge a request and encode the answer. Never raises.

    Args:
        route: The webhook that was called.
        request: The request.
        engine: What it is judged by.
        today: An ISO date (UTC).
        now: An ISO time (UTC).
        budget: Its clock is `time.perf_counter`. If it may not search, the decision may be that the object is costly.
        waited: If false, the decision may name what it awaits. Then, as for a costly object, the answer must not be
            sent.
        unread_for: Why the request has only an envelope (`core.review.review.unread`).
        asking: Asks the index, if that may change meanwhile.
    """

    def decide() -> Decision:
        context = engine.context(today, now, budget)

        def judge(index: ReadOnlyIndex | None) -> Decision:
            here = context if index is None or index is engine.index else context.with_index(index)
            if unread_for is not None:
                return decide_unread(request, here, unread_for, may_deny=route == "validate")
            return (review if route == "validate" else mutate)(request, here, waited=waited)

        try:
            with nullcontext() if budget.may_search else time_limit(_is_over(_IN_LINE_SECONDS)):
                decision = judge(engine.index) if asking is None else judged_afar(judge, asking)
        except OutOfTimeError:
            return Decision(costly=True)
        # A patch on DELETE or CONNECT is an internal error of the API server, even under failurePolicy: Ignore.
        if decision.patch and request.object is None:
            return msgspec.structs.replace(decision, patch=())
        return decision

    return answered(route, request, decide)


def _is_over(seconds: float) -> Callable[[], bool]:
    """Whether this thread has taken so much processor time from now on."""
    clock, processor = time.perf_counter() + seconds, time.thread_time() + seconds
    # Other threads may have the processor meanwhile, so the clock alone proves nothing; but reading it takes a fifth of
    # the time, and the processor time of this thread is never ahead of it.
    return lambda: time.perf_counter() > clock and time.thread_time() > processor


def answered(route: Route, request: AdmissionRequest, decide: Callable[[], Decision]) -> ReviewAnswer:
    """Encode what the function decides. Never raises: the request is allowed if the function does."""
    decision = _UNDECIDED
    try:
        decision = decide()
        fault, body = decision.fault, _encode(request, decision)
    except Exception as error:  # noqa: BLE001 the one boundary: whatever it is, the API server gets its answer
        # What was decided stays, without the texts that cannot be encoded.
        fault, decision = error, msgspec.structs.replace(_UNDECIDED, allowed=decision.allowed, message=_UNSAID)
        body = _encode(request, decision)
    if fault is not None:
        told = {"route": route, **request.logged, **exception_fields(fault)}
        outcome = "allowed" if decision.allowed else "denied"
        _log.error(f"a review failed; the request is {outcome}", extra={"fields": told})
    return ReviewAnswer(body=body, request=request, decision=decision, failed=fault is not None)


def _encode(request: AdmissionRequest, decision: Decision) -> bytes:
    """The AdmissionReview that carries a decision.

    Errors: UnicodeEncodeError for text that is none.
    """
    response = _AdmissionResponse(
        uid=request.uid,
        allowed=decision.allowed,
        status=None if decision.allowed else _Status(403, "Forbidden", _message(decision.message)),
        audit_annotations=_audit(decision.audit) if decision.audit else None,
        warnings=_warnings(decision.warnings) if decision.warnings else None,
    )
    if decision.patch and decision.allowed:
        patch = base64.b64encode(_ENCODER.encode(decision.patch)).decode("ascii")
        response = msgspec.structs.replace(response, patch=patch, patch_type="JSONPatch")
    return _ENCODER.encode(_Reply(response=response))


def _present(raw: Raw) -> Raw | None:
    # The length first: comparing would copy objects of megabytes.
    return None if memoryview(raw).nbytes == len(b"null") and bytes(raw) == b"null" else raw


def _message(text: str) -> str:
    if len(text) <= _MESSAGE_CHARACTERS:
        return text
    lines = text[:_MESSAGE_CHARACTERS].rpartition("\n")[0] or text[:_MESSAGE_CHARACTERS]
    return f"{lines}\n  … (cut; all of it: kubectl evenspread check -f FILE)"


def _warnings(texts: Iterable[str]) -> tuple[str, ...] | None:
    """What Kubernetes will deliver: single lines, no duplicates, 256 characters each and 4,096 in all."""
    kept: dict[str, None] = {}
    total = 0
    for text in texts:
        line = _CONTROL.sub(" ", text).strip()[:_WARNING_RUNES]
        if not line or line in kept:
            continue
        total += len(line)
        if total > _WARNINGS_RUNES:
            break
        kept[line] = None
    return tuple(kept) or None


def _audit(notes: Mapping[str, str]) -> Mapping[str, str] | None:
    kept = [(key, value) for key, value in notes.items() if _AUDIT_KEY.fullmatch(key)][:_AUDIT_KEYS]
    return {key: _CONTROL.sub(" ", value)[:_AUDIT_CHARACTERS] for key, value in kept} or None
