"""The one entrance: a request, a policy and the cluster in; a decision out.

    read the object -> evaluate every rule -> judge each finding -> subtract what the old object had -> words

Nothing in here raises, whatever the request holds: what cannot be read is a value too.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec import Raw, Struct

from webhook.core.defaulting import Injection, Skip, inject
from webhook.core.index import ClusterIndex
from webhook.core.kinds import DecodeError, Workload, has_template, read_workload
from webhook.core.messages import denial, one_line, warnings_of
from webhook.core.owners import AwaitOwner
from webhook.core.policy import Mode, Policy, Target, ceiling_for, exempted, mode_for
from webhook.core.rules import BY_ID, RULES, wrong_type
from webhook.core.rules.finding import Finding, NotEvaluated, Placed, Severity, Subject, place
from webhook.core.version import KubernetesVersion

EXEMPT = "evenspread.io/exempt"
MIRROR = "kubernetes.io/config.mirror"
_MOST_AUDITED = 8
_KUBE_SYSTEM = "system:serviceaccounts:kube-system"


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
    """The answer to one request, as a value; ``reason`` says why nothing was looked at, where nothing was.

    Shape: ``injection`` is what a pod gets, or would get where defaults are only observed; then ``patch`` is empty.
    """

    allowed: bool = True
    reason: str = ""
    message: str = ""
    findings: tuple[Judged, ...] = ()
    not_evaluated: tuple[NotEvaluated, ...] = ()
    warnings: tuple[str, ...] = ()
    patch: tuple[Mapping[str, object], ...] = ()
    audit: Mapping[str, str] = {}
    injection: Injection | None = None
    awaits: AwaitOwner | None = None


class Examination(Struct, frozen=True, kw_only=True):
    """All there is to say of one object, for the command line and for reports.

    Shape: ``workload`` is None where the kind has no pod template or the template cannot be read; then
    ``decode_error`` says why, and ``findings`` has it as `wrong-type`. ``warnings`` are kube-apiserver's own.
    """

    workload: Workload | None = None
    findings: tuple[Judged, ...] = ()
    not_evaluated: tuple[NotEvaluated, ...] = ()
    decode_error: DecodeError | None = None
    warnings: tuple[str, ...] = ()


class _Evaluation(Struct, frozen=True):
    workload: Workload | None
    placed: tuple[Placed, ...] = ()
    findings: tuple[Finding, ...] = ()
    not_evaluated: tuple[NotEvaluated, ...] = ()
    decode_error: DecodeError | None = None


def review(  # noqa: PLR0913 each is a fact of its own, the rare ones by keyword
    request: Request,
    policy: Policy,
    index: ClusterIndex | None,
    *,
    version: KubernetesVersion,
    today: str,
    remaining: Callable[[], float],  # noqa: ARG001 the seconds left: what needs the cluster may run out of time
) -> Decision:
    """Judge one request of the validating route.

    Shape: ``today`` is an ISO date (UTC).
    """
    if request.object is None or request.sub_resource or request.operation not in {"CREATE", "UPDATE"}:
        return Decision(reason="nothing to review")
    new = _evaluate(request.object, request, policy, version)
    if isinstance(new, str):
        return Decision(reason=new, audit={"unreadable": new} if new == "unreadable" else {})
    if not new.findings and not new.not_evaluated:
        return Decision()
    old = _old(request, policy, version)
    meta = new.workload.meta if new.workload else None
    target = Target(
        namespace=request.namespace,
        namespace_labels=_namespace_labels(index, request.namespace),
        kind=request.kind,
        name=request.name,
        labels=(meta.labels if meta else None) or {},
    )
    judged = _judge(new, policy, target, today)
    if old is not None:
        judged = _subtract(judged, old)
    return _decide(request, policy, new, judged, told=_is_read(new, old))


def mutate(  # noqa: PLR0913 as review
    request: Request,
    policy: Policy,
    index: ClusterIndex | None,
    *,
    version: KubernetesVersion,  # noqa: ARG001 what Kubernetes accepts differs between releases
    remaining: Callable[[], float],  # noqa: ARG001 the seconds left: what needs the cluster may run out of time
    waited: bool = False,
) -> Decision:
    """Patch one request of the mutating route; it never denies.

    Shape: ``awaits`` of the decision names an owner worth waiting for; the caller may ask again, at last with
    ``waited``, and sends the decision as it is where it will not.
    """
    is_pod = (request.api_version, request.kind) == ("v1", "Pod")
    if request.object is None or request.sub_resource or request.operation != "CREATE" or not is_pod:
        return Decision(reason="nothing to patch" if is_pod else "not a pod")
    try:
        workload = read_workload(request.object, api_version="v1", kind="Pod")
    except (DecodeError, msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        workload = None  # the API server says so better, after this route
    if workload is None or not workload.templates:
        return Decision(reason="unreadable")
    result = inject(workload.templates[0].template, request.namespace, policy, index, waited=waited)
    if isinstance(result, AwaitOwner):
        return Decision(reason="owner-unknown", awaits=result)
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
) -> Examination:
    """Everything the rules say of one object, whoever owns it and whatever it was before.

    Shape: ``namespace`` is where the object would be created if it names none.
    Errors: msgspec.DecodeError for text that is no JSON object.
    """
    stated = _stated(raw)
    request = Request(
        uid="",
        operation="CREATE",
        group=stated.api_version.rpartition("/")[0],
        version=stated.api_version.rpartition("/")[2],
        kind=stated.kind,
    )
    found = _evaluate(raw, request, policy, version, offline=True)
    if isinstance(found, str):
        return Examination()
    meta = found.workload.meta if found.workload else None
    where = (meta.namespace if meta else "") or namespace
    target = Target(
        namespace=where,
        namespace_labels=_namespace_labels(index, where),
        kind=stated.kind,
        name=meta.name if meta else "",
        labels=(meta.labels if meta else None) or {},
    )
    return Examination(
        workload=found.workload,
        findings=_judge(found, policy, target, today),
        not_evaluated=found.not_evaluated,
        decode_error=found.decode_error,
    )


def _namespace_labels(index: ClusterIndex | None, namespace: str) -> Mapping[str, str]:
    return (index.namespace_labels(namespace) if index is not None else None) or {}


class _Stated(Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""


def _stated(raw: bytes | Mapping[str, object]) -> _Stated:
    try:
        return msgspec.json.decode(raw, type=_Stated) if isinstance(raw, bytes) else msgspec.convert(raw, _Stated)
    except msgspec.ValidationError:
        return _Stated()


def _evaluate(
    raw: bytes | Raw | Mapping[str, object],
    request: Request,
    policy: Policy,
    version: KubernetesVersion,
    *,
    offline: bool = False,
) -> _Evaluation | str:
    """What every rule answers, or why there is nothing to ask."""
    api_version, kind = request.api_version, request.kind
    try:
        workload = read_workload(raw, policy.workloads, api_version=api_version, kind=kind)
    except DecodeError as error:
        return _Evaluation(None, findings=(wrong_type(error),), decode_error=error)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return "unreadable"
    if workload is None:
        return "no pod template"
    if not offline and (silence := _silence(workload, policy)):
        return silence
    placed = place(workload)
    subject = Subject(
        workload=workload,
        placed=placed,
        policy=policy,
        version=version,
        api_server_warns=workload.built_in and not offline,
    )
    findings: list[Finding] = []
    missing: list[NotEvaluated] = []
    for rule in RULES:
        for answer in rule.evaluate(subject):
            if isinstance(answer, Finding):
                findings.append(answer)
            else:
                missing.append(answer)
    return _Evaluation(workload, placed, tuple(findings), tuple(missing))


def _silence(workload: Workload, policy: Policy) -> str:
    """Why nothing is said of this object, whatever it holds."""
    if workload.meta.deletion_timestamp is not None:
        return "being deleted"
    owner = workload.meta.controller
    if owner is not None and has_template(owner.api_version, owner.kind, policy.workloads):
        return "its owner is reviewed"
    if workload.meta.annotations and MIRROR in workload.meta.annotations:
        return "mirror pod"
    return ""


def _old(request: Request, policy: Policy, version: KubernetesVersion) -> _Evaluation | None:
    if request.operation != "UPDATE" or request.old_object is None:
        return None
    old = _evaluate(request.old_object, request, policy, version, offline=False)
    return None if isinstance(old, str) else old


def _judge(found: _Evaluation, policy: Policy, target: Target, today: str) -> tuple[Judged, ...]:
    ceiling = ceiling_for(policy, target.namespace, target.namespace_labels)
    waived_by_annotation = _annotated(found.workload) if policy.annotation_exempt != "none" else frozenset()
    judged = []
    for finding in found.findings:
        rule = BY_ID[finding.rule]
        default = rule.mode if finding.warns else rule.mode.capped(Mode.AUDIT)
        configured = mode_for(policy, rule.id, default, rule.since)
        mode, waived = configured.capped(ceiling), ""
        if mode is not Mode.AUDIT and (exemption := exempted(policy, rule.id, target, today)):
            mode, waived = mode.capped(Mode.AUDIT), f"exempted: {exemption.reason}"
        elif rule.id in waived_by_annotation and (mode is Mode.WARN or policy.annotation_exempt == "denials"):
            mode, waived = mode.capped(Mode.AUDIT), f"exempted by {EXEMPT}"
        if mode is not Mode.OFF:
            judged.append(
                Judged(finding=finding, severity=rule.severity, mode=mode, configured=configured, waived=waived)
            )
    return tuple(judged)


def _annotated(workload: Workload | None) -> frozenset[str]:
    """The rules that the object's own annotation, or that of one of its templates, asks to be spared."""
    if workload is None:
        return frozenset()
    metas = (workload.meta, *(template.template.meta for template in workload.templates))
    texts = (meta.annotations[EXEMPT] for meta in metas if meta.annotations and EXEMPT in meta.annotations)
    return frozenset(rule.strip() for text in texts for rule in text.split(","))


def _subtract(judged: Iterable[Judged], old: _Evaluation) -> tuple[Judged, ...]:
    """Findings that the old object had already deny nothing."""
    had = {(finding.rule, finding.key) for finding in old.findings}
    return tuple(
        msgspec.structs.replace(each, mode=Mode.WARN, waived="the old object had it")
        if each.mode is Mode.DENY and (each.finding.rule, each.finding.key) in had
        else each
        for each in judged
    )


def _is_read(new: _Evaluation, old: _Evaluation | None) -> bool:
    """Whether a person will read a warning, and it is about what they just wrote."""
    if new.workload is None:
        return True
    if new.workload.meta.controller is not None:
        return False
    return old is None or old.workload is None or _relevant(new.workload) != _relevant(old.workload)


def _relevant(workload: Workload) -> object:
    """Everything in an object that a finding can be about."""
    specs = [
        (template.path, template.replicas, template.template.labels, template.template.spec)
        for template in workload.templates
    ]
    return (workload.replicas, workload.selector, workload.strategy, specs)


def _decide(request: Request, policy: Policy, found: _Evaluation, judged: Sequence[Judged], *, told: bool) -> Decision:
    denied = [each.finding for each in judged if each.mode is Mode.DENY]
    warned = [each.finding for each in judged if each.mode is Mode.WARN] if told else []
    name = f"{request.kind} {request.namespace}/{request.name or '(unnamed)'}"
    return Decision(
        allowed=not denied,
        message=denial(name, denied, policy.messages) if denied else "",
        findings=tuple(judged),
        not_evaluated=found.not_evaluated,
        warnings=warnings_of(warned),
        audit=_audit(judged),
    )


def _audit(judged: Sequence[Judged]) -> Mapping[str, str]:
    """One annotation a finding, bounded in number and length; the whole is in the report."""
    notes = {
        f"finding-{number}": one_line(
            f"{each.finding.rule} {each.mode} {each.finding.path}: {each.finding.summary}; {each.finding.remedy}", 1024
        )
        for number, each in enumerate(judged[:_MOST_AUDITED], start=1)
    }
    if judged:
        notes["findings"] = str(len(judged))
    return notes
