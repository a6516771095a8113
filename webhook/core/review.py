"""The one entrance: a request, a policy and the cluster in; a decision out.

    read the object -> evaluate every rule -> judge each finding -> subtract what the old object had -> words

Nothing in here raises, whatever the request holds: what cannot be read is a value too.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import inf

from msgspec import Raw, Struct
from msgspec.structs import replace

from webhook.core.decoding import DecodeError
from webhook.core.defaulting import Injection, Skip, inject
from webhook.core.index import ClusterIndex
from webhook.core.kinds import Workload, has_template, parsed, read_exactly, read_meta, read_workload, stated_type
from webhook.core.messages import denial, warnings_of
from webhook.core.model import ObjectMeta, TypeMeta
from webhook.core.objects import MIRROR_ANNOTATION, Autoscaler
from webhook.core.owners import Awaited
from webhook.core.policy import Mode, Policy, Target, ceiling_for, exempted, mode_for
from webhook.core.rules import API_RULES, BY_ID, FEASIBILITY, TRIED, evaluate, in_order
from webhook.core.rules.api import wrong_type
from webhook.core.rules.feasibility import Feasibility
from webhook.core.rules.finding import NO_TIME, Answer, Finding, NotEvaluated, Severity, Subject, one_line, place
from webhook.core.rules.proof import only_helpful
from webhook.core.rules.unknown import in_custom_templates, unknown_fields
from webhook.core.rules.unread import of_object
from webhook.core.validation import constraint_warnings, reaches_template
from webhook.core.version import KubernetesVersion

EXEMPT_ANNOTATION = "evenspread.io/exempt"

_MOST_AUDITED = 8
# What a review of an ordinary object takes is less than a hundredth of this, beside 5,000 nodes too.
_MOST_SECONDS = 0.5
_KUBE_SYSTEM_USERS = "system:serviceaccounts:kube-system"


class Request(Struct, frozen=True, kw_only=True):
    """An admission request, as far as a decision depends on it."""

    uid: str
    operation: str
    group: str
    version: str
    kind: str
    sub_resource: str = ""
    namespace: str = ""
    name: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    dry_run: bool = False
    object: bytes | Raw | None = None
    old_object: bytes | Raw | None = None

    @property
    def api_version(self) -> str:
        """Group and version as objects write them."""
        return f"{self.group}/{self.version}" if self.group else self.version


class Judged(Struct, frozen=True, kw_only=True):
    """A finding and what is done about it.

    Shape: ``mode`` is what holds for this request, ``configured`` what would hold without any ceiling; ``waived`` says
    why the mode is lower than the ceiling asks for: an exemption, or that the old object had the finding already.
    """

    finding: Finding
    severity: Severity
    mode: Mode
    configured: Mode
    waived: str = ""


class Decision(Struct, frozen=True, kw_only=True):
    """The answer to one request, as a value.

    Shape: ``reason`` says why nothing was looked at, where nothing was. ``injection`` is what a pod gets, or would
    get where defaults are only observed; then ``patch`` is empty. ``feasibility`` is the dry run of a
    pod, where there was one. ``awaits`` is worth waiting for.
    """

    allowed: bool = True
    reason: str = ""
    message: str = ""
    findings: tuple[Judged, ...] = ()
    not_evaluated: tuple[NotEvaluated, ...] = ()
    warnings: tuple[str, ...] = ()
    patch: tuple[Mapping[str, object], ...] = ()
    audit: Mapping[str, str] = {}
    feasibility: Feasibility | None = None
    injection: Injection | None = None
    awaits: Awaited | None = None


class Examination(Struct, frozen=True, kw_only=True):
    """All there is to say of one object, for the command line and for reports.

    Shape: ``workload`` is None where the kind has no pod template or the object cannot be decoded; then
    ``decode_error`` says why, and ``findings`` has it as `wrong-type`. ``warnings`` are kube-apiserver's own, those
    about unknown and repeated fields first.
    """

    workload: Workload | None = None
    findings: tuple[Judged, ...] = ()
    not_evaluated: tuple[NotEvaluated, ...] = ()
    decode_error: DecodeError | None = None
    warnings: tuple[str, ...] = ()


class _Setting(Struct, frozen=True):
    policy: Policy
    index: ClusterIndex | None
    version: KubernetesVersion
    offline: bool = False
    age: Callable[[], float] = lambda: 0.0
    remaining: Callable[[], float] = lambda: inf
    now: str = ""
    scalers: tuple[Autoscaler, ...] = ()


class _Evaluation(Struct, frozen=True):
    workload: Workload | None
    findings: tuple[Finding, ...]
    not_evaluated: tuple[NotEvaluated, ...] = ()
    decode_error: DecodeError | None = None
    feasibility: Feasibility | None = None

    def and_of(self, answers: Sequence[Answer]) -> "_Evaluation":
        """The same with what another rule answers."""
        missing = (each for each in answers if isinstance(each, NotEvaluated))
        told = in_order((*self.findings, *(each for each in answers if isinstance(each, Finding))))
        return replace(self, findings=told, not_evaluated=(*self.not_evaluated, *missing))


def review(  # noqa: PLR0913 each is a fact of its own, the rare ones by keyword
    request: Request,
    policy: Policy,
    index: ClusterIndex | None,
    *,
    version: KubernetesVersion,
    today: str,
    remaining: Callable[[], float],
    age: Callable[[], float] = lambda: 0.0,
    now: str = "",
) -> Decision:
    """Judge one request of the validating route.

    Shape: ``today`` is an ISO date (UTC), ``now`` an ISO time, empty where nobody knows it.
    Unit: ``remaining`` says how many seconds the caller still waits, ``age`` how many seconds ago the cluster was last
    known to be as the index has it.
    """
    if request.object is None or request.sub_resource or request.operation not in _REVIEWED:
        return Decision(reason="nothing to review")
    setting = _Setting(policy, index, version, age=age, remaining=_briefly(remaining), now=now)
    new = _evaluate(request.object, request, setting, spared=True)
    if isinstance(new, str):
        return Decision(reason=new)
    if not new.findings:
        return _clean(new)
    old = _old(request, setting)
    meta = new.workload.meta if new.workload else _NO_META
    target = _target(meta, request.kind, request.namespace, request.name, index)
    judged = _judge(new, policy, target, today, meta)
    if request.kind == "Pod" or _KUBE_SYSTEM_USERS in request.groups:
        judged = tuple(map(_never_denied_for_places, judged))
    if old is not None:
        judged = _subtract(judged, old)
    return _decide(request, policy, new, judged, told=_is_read(new, old))


def _briefly(remaining: Callable[[], float]) -> Callable[[], float]:
    """The seconds left of what one request may take, whatever it holds: others wait for the index meanwhile."""
    spare = max(0.0, remaining() - _MOST_SECONDS)
    return lambda: remaining() - spare


def _clean(found: _Evaluation) -> Decision:
    if not found.not_evaluated and found.feasibility is None:
        return _CLEAN
    return Decision(
        not_evaluated=found.not_evaluated, feasibility=found.feasibility, audit=_feasibility_note(found.feasibility)
    )


def _feasibility_note(feasibility: Feasibility | None) -> Mapping[str, str]:
    """Why nobody knows whether the pod has a place; no user is bothered with it."""
    if feasibility is None or not isinstance(feasibility.answer, NotEvaluated):
        return {}
    return {"feasibility": f"{feasibility.verdict}: {one_line(feasibility.answer.missing)}"}


def mutate(  # noqa: PLR0913 as review
    request: Request,
    policy: Policy,
    index: ClusterIndex | None,
    *,
    version: KubernetesVersion,
    remaining: Callable[[], float],  # noqa: ARG001 the seconds left: what needs the cluster may run out of time
    waited: bool = False,
) -> Decision:
    """Patch one request of the mutating route; it never denies.

    Shape: ``awaits`` of the decision names what is worth waiting for, and the decision is not one to send: the caller
    asks again when it has come, or with ``waited``, which takes what is known as all there is.
    """
    is_pod = (request.api_version, request.kind) == ("v1", "Pod")
    if request.object is None or request.sub_resource or request.operation != "CREATE" or not is_pod:
        return Decision(reason="nothing to patch" if is_pod else "not a pod")
    try:
        workload = read_workload(request.object, api_version="v1", kind="Pod")
    except DecodeError:
        workload = None  # the API server says so better, after this route
    if workload is None or not workload.templates:
        return Decision(reason="unreadable")
    result = inject(workload.templates[0].template, request.namespace, policy, index, version, waited=waited)
    if isinstance(result, Awaited):
        return Decision(reason="too-early", awaits=result)
    if isinstance(result, Skip):
        return Decision(reason=result.reason)
    note = "injected" if result.patch else "would-inject"
    return Decision(injection=result, patch=result.patch, audit={note: f"revision {result.record.revision}"})


def examine(  # noqa: PLR0913 as review
    raw: bytes | Mapping[str, object],
    policy: Policy,
    index: ClusterIndex | None,
    *,
    version: KubernetesVersion,
    today: str,
    namespace: str = "",
    now: str = "",
    as_written: Callable[[str], str] = lambda _path: "",
    scalers: tuple[Autoscaler, ...] = (),
) -> Examination:
    """Everything the rules say of one object, whoever owns it and whatever it was before.

    Shape: ``namespace`` is where the object would be created if it names none. ``as_written`` gives the text of a
    scalar in the file by its path, "" where that is not known. ``scalers`` come with the object.
    Errors: DecodeError for text that is no JSON object, or whose apiVersion or kind is no text.
    """
    stated = stated_type(raw)
    setting = _Setting(policy, index, version, offline=True, now=now, scalers=scalers)
    try:
        found, strict = _exactly(raw, stated, namespace, setting)
    except DecodeError as error:
        found, strict = _Evaluation(None, (), decode_error=error), ()
    if found.decode_error is not None:
        wrong = wrong_type(found.decode_error, lambda: parsed(raw), as_written)
        found = replace(found, findings=(wrong, *(each for each in found.findings if each.rule != wrong.rule)))
    workload = found.workload
    meta = workload.meta if workload else read_meta(raw)
    target = _target(meta, stated.kind or "", meta.namespace or namespace, meta.name, index)
    return Examination(
        workload=workload,
        findings=_judge(found, policy, target, today, meta),
        not_evaluated=found.not_evaluated,
        decode_error=found.decode_error,
        warnings=strict + (_api_warnings(workload, found) if workload is not None and workload.built_in else ()),
    )


def _exactly(
    raw: bytes | Mapping[str, object], stated: TypeMeta, namespace: str, setting: _Setting, *, proven: bool = True
) -> tuple[_Evaluation, tuple[str, ...]]:
    """What every rule answers of an object as kube-apiserver keeps it, and of what nobody reads or keeps in it.

    Shape: ``proven`` tries the edits that put fields under their name or in their place, or narrow a selector, and
    leaves those out that bring other findings.
    Errors: DecodeError.
    """
    (group, _, minor), kind = (stated.api_version or "").rpartition("/"), stated.kind or ""
    request = Request(uid="", operation="CREATE", group=group, version=minor, kind=kind, namespace=namespace)
    kept, strict = read_exactly(raw, stated)
    evaluated = _evaluate(kept, request, setting, spared=False)
    found = _Evaluation(None, ()) if isinstance(evaluated, str) else evaluated
    found = found.and_of((*of_object(raw, stated, setting.policy.workloads),))
    workload = found.workload
    if workload is not None and not (workload.built_in and not strict):
        value = parsed(raw)
        warnings = strict if workload.built_in else in_custom_templates(value, workload)
        wrong_places = frozenset(each.path for each in found.findings)
        found = found.and_of(unknown_fields(warnings, value, workload, wrong_places))
    if not proven:
        return found, strict

    def again(changed: Mapping[str, object]) -> frozenset[tuple[str, str]]:
        return _keys(_exactly(changed, stated_type(changed), namespace, setting, proven=False)[0])

    return replace(found, findings=only_helpful(found.findings, TRIED, raw, again)), strict


def _keys(found: _Evaluation) -> frozenset[tuple[str, str]]:
    return frozenset((finding.rule, finding.key) for finding in found.findings)


def _api_warnings(workload: Workload, found: _Evaluation) -> tuple[str, ...]:
    """kube-apiserver's warnings, which it sends only of an object that it accepts."""
    if any(finding.rule in API_RULES for finding in found.findings) or not reaches_template(workload):
        return ()
    return tuple(
        warning
        for template in workload.templates
        for warning in constraint_warnings(template.template.pod_spec.constraints, template.constraints_path)
    )


def _evaluate(
    raw: bytes | Raw | Mapping[str, object], request: Request, setting: _Setting, *, spared: bool
) -> _Evaluation | str:
    """What every rule answers, or why there is nothing to ask.

    Shape: ``spared`` says that objects which nobody is to be told of are not looked at.
    """
    policy = setting.policy
    try:
        workload = read_workload(raw, policy.workloads, api_version=request.api_version, kind=request.kind)
    except DecodeError as error:
        silence = _silence(read_meta(raw), policy) if spared else ""
        return silence or _Evaluation(None, (wrong_type(error, lambda: parsed(raw)),), decode_error=error)
    if workload is None:
        return "no pod template"
    if request.namespace and not workload.meta.namespace:
        # Where it would be created; rules look there for what else is in the cluster.
        workload = replace(workload, meta=replace(workload.meta, namespace=request.namespace))
    if spared and (silence := _silence(workload.meta, policy)):
        return silence
    subject = Subject(
        workload=workload,
        placed=place(workload),
        policy=policy,
        version=setting.version,
        index=setting.index,
        offline=setting.offline,
        creating=request.operation == "CREATE",
        age=setting.age,
        remaining=setting.remaining,
        now=setting.now,
        scalers=setting.scalers,
    )
    findings, missing, feasibility = evaluate(subject)
    return _Evaluation(workload, findings, missing, feasibility=feasibility)


def _old(request: Request, setting: _Setting) -> _Evaluation | None:
    """What the rules said of the object before this request."""
    if request.operation != "UPDATE" or request.old_object is None:
        return None
    # Its owner may have answered for it until now: garbage collection orphans what it leaves behind.
    old = _evaluate(request.old_object, request, setting, spared=False)
    return None if isinstance(old, str) else old


def _silence(meta: ObjectMeta, policy: Policy) -> str:
    """Why nothing is said of this object, whatever else it holds."""
    if meta.deletion_timestamp is not None:
        return "being deleted"
    owner = meta.controller
    if owner is not None and has_template(owner.api_version, owner.kind, policy.workloads):
        return "its owner is reviewed"
    if meta.annotations and MIRROR_ANNOTATION in meta.annotations:
        return "mirror pod"
    return ""


def _target(meta: ObjectMeta, kind: str, namespace: str, name: str, index: ClusterIndex | None) -> Target:
    return Target(
        namespace=namespace,
        namespace_labels=(index.namespace_labels(namespace) if index is not None else None) or {},
        kind=kind,
        name=name,
        labels=meta.labels or {},
    )


def _judge(found: _Evaluation, policy: Policy, target: Target, today: str, meta: ObjectMeta) -> tuple[Judged, ...]:
    """The mode of each finding here; what is off is left out."""
    ceiling = ceiling_for(policy, target.namespace, target.namespace_labels)
    annotated = _annotated(found.workload, meta) if policy.annotation_exempt != "none" else frozenset()
    judged = []
    for finding in found.findings:
        rule = BY_ID[finding.rule]
        default = rule.mode if finding.warns is None else Mode.WARN if finding.warns else Mode.AUDIT
        configured = mode_for(policy, rule.id, default, rule.since).capped(finding.at_most)
        mode, waived = configured.capped(ceiling), ""
        exemption = exempted(policy, rule.id, target, today) if policy.exemptions else None
        if exemption is not None:
            mode, waived = mode.capped(Mode.AUDIT), f"exempted: {exemption.reason}"
        elif rule.id in annotated and (mode is not Mode.DENY or policy.annotation_exempt == "denials"):
            mode, waived = mode.capped(Mode.AUDIT), f"exempted by {EXEMPT_ANNOTATION}"
        if mode is not Mode.OFF:
            judged.append(
                Judged(
                    finding=finding,
                    severity=finding.severity or rule.severity,
                    mode=mode,
                    configured=configured,
                    waived=waived,
                )
            )
    return tuple(judged)


def _annotated(workload: Workload | None, meta: ObjectMeta) -> frozenset[str]:
    """The rules that the object's own annotation, or that of one of its templates, asks to be spared."""
    templates = workload.templates if workload else ()
    metas = (meta, *(template.template.meta for template in templates))
    texts = [
        meta.annotations[EXEMPT_ANNOTATION]
        for meta in metas
        if meta.annotations and EXEMPT_ANNOTATION in meta.annotations
    ]
    return frozenset(rule.strip() for text in texts for rule in text.split(","))


def _never_denied_for_places(judged: Judged) -> Judged:
    """Whether there is a place says nothing of the pod itself, and controllers of kube-system must go on."""
    if judged.mode is Mode.DENY and judged.finding.rule in FEASIBILITY:
        return replace(judged, mode=Mode.WARN, waived="never denied here")
    return judged


def _subtract(judged: Iterable[Judged], old: _Evaluation) -> tuple[Judged, ...]:
    """A finding that the old object had already denies nothing; nor one that it may have had, and nobody could see."""
    had = _keys(old)
    unseen = {each.rule for each in old.not_evaluated if each.missing == NO_TIME or each.fault is not None}
    return tuple(_subtracted(each, had, unseen) if each.mode is Mode.DENY else each for each in judged)


def _subtracted(judged: Judged, had: Collection[tuple[str, str]], unseen: Collection[str]) -> Judged:
    if (judged.finding.rule, judged.finding.key) in had:
        return replace(judged, mode=Mode.WARN, waived="the old object had it")
    if judged.finding.rule in unseen:
        return replace(judged, mode=Mode.WARN, waived="the old object could not be looked at")
    return judged


def _is_read(new: _Evaluation, old: _Evaluation | None) -> bool:
    """Whether a person will read a warning, and has just written what it is about."""
    if new.workload is None:
        return old is None or new.findings != old.findings
    if new.workload.meta.controller is not None:
        return False
    return old is None or old.workload is None or _relevant(new.workload) != _relevant(old.workload)


def _relevant(workload: Workload) -> tuple[object, ...]:
    """Everything in an object that a finding can be about."""
    templates = [(each.path, each.replicas, each.template.labels, each.template.spec) for each in workload.templates]
    return (workload.replicas, workload.selector, workload.strategy, templates)


def _decide(request: Request, policy: Policy, found: _Evaluation, judged: Sequence[Judged], *, told: bool) -> Decision:
    denied = [each.finding for each in judged if each.mode is Mode.DENY]
    warned = [each.finding for each in judged if each.mode is Mode.WARN] if told else []
    own = request.name or (found.workload.meta.generate_name if found.workload else "")
    name = f"{request.kind} {request.namespace}/{own}".removesuffix("/")
    return Decision(
        allowed=not denied,
        message=denial(name, denied, policy.messages) if denied else "",
        findings=tuple(judged),
        not_evaluated=found.not_evaluated,
        warnings=warnings_of(warned),
        feasibility=found.feasibility,
        audit={**_audit(judged), **_feasibility_note(found.feasibility)},
    )


def _audit(judged: Sequence[Judged]) -> Mapping[str, str]:
    """One annotation a finding, bounded in number and in length; the whole is in the report.

    Shape: kube-apiserver drops a key that is no qualified name, and puts the webhook's own name before each.
    """
    notes = {
        f"finding-{number}": one_line(_note(each), 1024) for number, each in enumerate(judged[:_MOST_AUDITED], start=1)
    }
    if judged:
        notes["findings"] = str(len(judged))
    return notes


def _note(judged: Judged) -> str:
    path = f"{judged.finding.path}: "  # kube-apiserver's own words begin with it
    return f"{judged.finding.rule} {judged.mode} {path}{_sentence(judged).removeprefix(path)}"


def _sentence(judged: Judged) -> str:
    parts = (judged.finding.summary, judged.finding.remedy, judged.waived)
    return "; ".join(part for part in parts if part)


_NO_META = ObjectMeta()
_REVIEWED = frozenset({"CREATE", "UPDATE"})
_CLEAN = Decision()
