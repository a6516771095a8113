"""Answer AdmissionReview v1 requests, from bytes to bytes, with core.review.review.

    body -> decode_review -> AdmissionRequest -> review | mutate -> Decision -> encode -> body

An object that breaks a rule, or cannot be read, gets an answer with ``allowed: false``. A bug outside of `review` is
logged with the request's fields and counted, and the request is allowed. `admission_request` decodes the body.

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
from msgspec import Struct

from webhook.admission_request import API_VERSION, KIND
from webhook.core.admission_policies.installed import warned_by_policies
from webhook.core.api.version import KubernetesVersion
from webhook.core.budget import Budget, OutOfTimeError, Reason, time_limit
from webhook.core.cached_property import cached_property
from webhook.core.context import Context
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.index.remote_index import IndexClient, judge_remotely
from webhook.core.policy.policy import Policy
from webhook.core.review.decision import AdmissionRequest, Decision
from webhook.core.review.mutation import mutate
from webhook.core.review.review import review
from webhook.core.review.unread import decide_unread
from webhook.core.rules.rule_set import skipped_rules
from webhook.logs import exception_fields

Route = Literal["validate", "mutate"]


# kube-apiserver's default for timeoutSeconds of a webhook, for callers that do not send it.
CALLER_SECONDS = 10.0
# Processor time of a review in the event loop. Longer reviews move to a process.
_IN_LINE_SECONDS = 0.003
# filters/warning.go: above 4,096 runes in total, texts are cut to 256. A text with a control character is dropped.
_WARNING_RUNES = 256
_WARNINGS_RUNES = 4096
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# The message goes into conditions and events of the owner, which are stored in etcd.
_MESSAGE_CHARACTERS = 8192
# The API server drops keys that are no qualified names. The limits are those of ValidatingAdmissionPolicy.
_AUDIT_KEY = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_AUDIT_KEYS = 20
_AUDIT_CHARACTERS = 10240

# The answer to a review that raised before its decision.
_UNDECIDED = Decision(reason="internal error", audit={"error": "internal"})
_UNSENDABLE = "a rule denied the object, but its message cannot be encoded; see the log of evenspread"

_NO_LIMIT = Budget(clock=time.perf_counter)
_log = logging.getLogger(__name__)


class Engine(Struct, frozen=True, kw_only=True, dict=True):
    """The policy and the cluster for reviews. A changed configuration creates a new engine.

    Attributes:
        policy: The policy.
        version: The Kubernetes release.
        index: The cluster. None if no cluster is known. The index can change between reviews, but not during a review.
        age: Returns the seconds since the index was last known to be current.
        scanned: Whether the controller scans the cluster. The scan's reports then contain the findings of audit-only
            rules.
        policies_warn: Whether admission policies of the chart warn of findings about the object alone.
    """

    policy: Policy
    version: KubernetesVersion
    index: ReadOnlyIndex | None = None
    age: Callable[[], float] = lambda: 0.0
    scanned: bool = False
    policies_warn: bool = False

    @cached_property
    def _skipped_rules(self) -> frozenset[str]:
        return skipped_rules(self.policy, scanned=self.scanned)

    @cached_property
    def _warned_by_policies(self) -> frozenset[str]:
        return warned_by_policies(self.policy, self.version) if self.policies_warn else frozenset()

    def context(self, now: str, budget: Budget) -> Context:
        """Return the context of a review at this moment."""
        return Context(
            policy=self.policy,
            version=self.version,
            index=self.index,
            now=now,
            age=self.age,
            budget=budget,
            skipped_rules=self._skipped_rules,
            warned_by_policies=self._warned_by_policies,
        )


class ReviewAnswer(Struct, frozen=True, kw_only=True):
    """The encoded answer, with its request and decision for logs and metrics."""

    body: bytes
    request: AdmissionRequest
    decision: Decision
    failed: bool = False


class _DenialStatus(Struct, frozen=True, gc=False):
    code: int
    reason: str
    message: str


class _AdmissionResponse(Struct, frozen=True, rename="camel", omit_defaults=True):
    uid: str
    allowed: bool
    status: _DenialStatus | None = None
    patch: str | None = None
    patch_type: str | None = None
    audit_annotations: Mapping[str, str] | None = None
    warnings: tuple[str, ...] | None = None


class _Reply(Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str = API_VERSION
    kind: str = KIND
    response: _AdmissionResponse


_ENCODER = msgspec.json.Encoder()


def answer(  # noqa: PLR0913 each differs between requests
    route: Route,
    request: AdmissionRequest,
    engine: Engine,
    *,
    now: str,
    budget: Budget = _NO_LIMIT,
    waited: bool = True,
    unread_for: Reason | None = None,
    asking: IndexClient | None = None,
) -> ReviewAnswer:
    """Decide on an admission request and encode the response. Never raises.

    Args:
        route: The webhook that was called.
        request: The request.
        engine: The policy and the cluster.
        now: An ISO time (UTC).
        budget: The time limit, on the clock `time.perf_counter`. If it forbids searches, the decision may be `costly`.
        waited: Whether waiting for missing objects is over. If false, the decision may name an awaited object. Do not
            send such a decision, or a `costly` one. Call this function again instead.
        unread_for: Why the request has no objects: its body was not read (`core.review.unread.decide_unread`).
        asking: Reads the index from a thread other than its owner.
    """

    def decide() -> Decision:
        context = engine.context(now, budget)

        def judge(index: ReadOnlyIndex | None) -> Decision:
            read = context if index is None or index is engine.index else context.with_index(index)
            if unread_for is not None:
                return decide_unread(request, read, unread_for, may_deny=route == "validate")
            return (review if route == "validate" else mutate)(request, read, waited=waited)

        try:
            with nullcontext() if budget.may_search else time_limit(_is_over(_IN_LINE_SECONDS)):
                decision = judge(engine.index) if asking is None else judge_remotely(judge, asking)
        except OutOfTimeError:
            return Decision(costly=True)
        # A patch on DELETE or CONNECT is an internal error in the API server, even with failurePolicy: Ignore.
        if decision.patch and request.object is None:
            return msgspec.structs.replace(decision, patch=())
        return decision

    return answered(route, request, decide)


def _is_over(seconds: float) -> Callable[[], bool]:
    """Return a function that is true once this thread has used ``seconds`` of processor time from now."""
    clock, processor = time.perf_counter() + seconds, time.thread_time() + seconds
    # Other threads may use the processor, so only the thread's time decides. The clock is checked first, because it is
    # never behind and takes a fifth of the time to read.
    return lambda: time.perf_counter() > clock and time.thread_time() > processor


def answered(route: Route, request: AdmissionRequest, decide: Callable[[], Decision]) -> ReviewAnswer:
    """Encode the decision made by ``decide``. Never raises. If ``decide`` raises, the request is allowed."""
    decision = _UNDECIDED
    try:
        decision = decide()
        fault, body = decision.fault, _encode(request, decision)
    except Exception as error:  # noqa: BLE001 the outermost boundary: the API server gets an answer in any case
        # The decision stays, without the texts that cannot be encoded.
        fault, decision = error, msgspec.structs.replace(_UNDECIDED, allowed=decision.allowed, message=_UNSENDABLE)
        body = _encode(request, decision)
    if fault is not None:
        fields = {"route": route, **request.logged, **exception_fields(fault)}
        outcome = "allowed" if decision.allowed else "denied"
        _log.error(f"a review failed because of a bug; the request is {outcome}", extra={"fields": fields})
    return ReviewAnswer(body=body, request=request, decision=decision, failed=fault is not None)


def _encode(request: AdmissionRequest, decision: Decision) -> bytes:
    """Encode a decision as an AdmissionReview. Raises UnicodeEncodeError for a text with a lone surrogate."""
    response = _AdmissionResponse(
        uid=request.uid,
        allowed=decision.allowed,
        status=None if decision.allowed else _DenialStatus(403, "Forbidden", _message(decision.message)),
        audit_annotations=_audit(decision.audit) if decision.audit else None,
        warnings=_warnings(decision.warnings) if decision.warnings else None,
    )
    if decision.patch and decision.allowed:
        patch = base64.b64encode(_ENCODER.encode(decision.patch)).decode("ascii")
        response = msgspec.structs.replace(response, patch=patch, patch_type="JSONPatch")
    return _ENCODER.encode(_Reply(response=response))


def _message(text: str) -> str:
    if len(text) <= _MESSAGE_CHARACTERS:
        return text
    lines = text[:_MESSAGE_CHARACTERS].rpartition("\n")[0] or text[:_MESSAGE_CHARACTERS]
    return f"{lines}\n  … (message cut; list all findings: kubectl evenspread check -f FILE)"


def _warnings(texts: Iterable[str]) -> tuple[str, ...] | None:
    """Reduce warnings to those that Kubernetes delivers.

    Each is one line, cut to 256 characters. Repeated lines are dropped. All lines together have at most 4,096
    characters.
    """
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
