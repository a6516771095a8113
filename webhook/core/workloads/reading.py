"""Read workloads: an object's pod templates, and the other fields needed by rules.

Built-in kinds are decoded in one typed pass. For custom resources, `Layout` has the paths (`operators` has more).

Source: the API types of k8s.io/api.
"""

from collections.abc import Container, Iterator, Mapping
from typing import TypeVar

import msgspec
from msgspec import Raw, structs
from msgspec.structs import replace

from webhook.core.api import gates
from webhook.core.api.selectors import valid_selector
from webhook.core.api.types import LabelSelector, Named, ObjectMeta, PodSpec, PodTemplate, SpreadConstraint, TypeMeta
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.apiserver.decoding import DecodeError, as_go_reads, decode, decode_strictly, type_of
from webhook.core.apiserver.go_json import ERROR_CHARACTERS, go_type, is_plain
from webhook.core.budget import check_time
from webhook.core.decoders import converted, decoder_of
from webhook.core.workloads import built_in_objects
from webhook.core.workloads.custom_kinds import CONSTRAINTS, EmbeddedKind, Layout, Site, configured_layout
from webhook.core.workloads.kind_fields import layout_of
from webhook.core.workloads.kinds import (
    BUILT_IN_KINDS,
    CRON_JOB,
    JOB,
    KINDS,
    POD,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    GroupKind,
    group_kind,
    traits,
)
from webhook.core.workloads.layout_paths import value_at_layout_path, walk
from webhook.core.workloads.operators import FILLS, OperatorConstraint, SiblingFields
from webhook.core.workloads.workload import ClaimTemplates, Strategy, Template, Workload


def reaches_template(workload: Workload) -> bool:
    """Whether kube-apiserver validates the pod template of the workload.

    For some kinds, kube-apiserver validates the selector first. If the selector is invalid, the template is not
    validated. If the selector is absent or empty, the template is validated.

    Source: apps/validation/validation.go ``ValidateDeploymentSpec``, ``ValidateReplicaSetSpec``,
        ``ValidateStatefulSetSpec``.
    """
    return not workload.traits.selector_first or valid_selector(workload.selector) is not None


def takes_any_template(workload: Workload, version: KubernetesVersion) -> bool:
    """Whether kube-apiserver of this release never validates the kind's pod template.

    Source: apps/validation/validation.go ``ValidatePodTemplateSpecForStatefulSet`` of 1.33 and 1.34.
    """
    return not gates.VALIDATES_STATEFUL_SETS.holds(version) and workload.group_kind == STATEFUL_SET


_T = TypeVar("_T")

_NAMED = decoder_of(Named)
_OBJECT = decoder_of(built_in_objects.Object)
_SPEC = decoder_of(built_in_objects.Spec)
_JOB = decoder_of(built_in_objects.Job)
_POD = decoder_of(PodTemplate)
_CONTROLLER = decoder_of(built_in_objects.ReplicationController)
_CONSTRAINTS = decoder_of(tuple[OperatorConstraint, ...])
_GO_CONSTRAINT = "v1.TopologySpreadConstraint"

_NO_META = ObjectMeta()
_NO_SPEC = built_in_objects.Spec()
_NO_JOB_SPEC = built_in_objects.JobSpec()


def read_workload(
    raw: bytes | Raw | Mapping[str, object],
    embedded: tuple[EmbeddedKind, ...] = (),
    *,
    api_version: str | None = None,
    kind: str | None = None,
) -> Workload | None:
    """Read the object as a workload. None for a kind without pod templates.

        >>> read_workload(b'{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}').meta.name
        'web'

    Args:
        raw: JSON text or parsed JSON.
        embedded: Custom kinds from the configuration.
        api_version: The object's apiVersion, if already known.
        kind: The object's kind, if already known.

    Raises:
        DecodeError: The object does not fit the API's types. For a custom resource, only constraints matter.
    """
    if api_version is None or kind is None:
        stated = stated_type(raw)
        api_version, kind = stated.api_version or "", stated.kind or ""
    # The configuration overrides built-in knowledge of a kind.
    own = configured_layout(api_version, kind, embedded) if embedded else None
    key = group_kind(api_version, kind)
    if own is None and key in BUILT_IN_KINDS:
        return (_read_pod if key == POD else _read_object)(raw, api_version, key)
    layout = own or layout_of(key)
    return None if layout is None else _walk(parse_object(raw), api_version, key, layout)


def reduce_spec(spec: bytes, annotations: Container[str]) -> bytes:
    """Return the fields of a built-in kind's spec that `read_workload` reads, as JSON.

    Of the template's annotations, only ``annotations`` remain. A spec of the wrong type becomes empty.
    """
    try:
        read = _SPEC.decode(spec)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return b""
    if read.template is not None and read.template.meta.annotations:
        meta = read.template.meta
        kept = {key: value for key, value in (meta.annotations or {}).items() if key in annotations}
        read = replace(read, template=replace(read.template, metadata=replace(meta, annotations=kept or None)))
    return msgspec.json.encode(read)


def read_exactly(
    raw: bytes | Raw | Mapping[str, object], stated: TypeMeta, version: KubernetesVersion = RECORDED
) -> tuple[bytes | Raw | Mapping[str, object], tuple[str, ...]]:
    """Return the object as kept by kube-apiserver, and the warnings of its strict decoding.

    This is slower than `read_workload`, because it checks every field, known to rules or not. Objects of other kinds
    are returned unchanged. DecodeError has kube-apiserver's message.
    """
    group, _, of_group = (stated.api_version or "").rpartition("/")
    if of_group != "v1" or (group, stated.kind) not in BUILT_IN_KINDS:
        return raw, ()
    type_name = f"v1.{stated.kind}"
    if not isinstance(raw, bytes | Raw):
        # Several times faster than Go's rules, which would change nothing.
        if is_plain(raw, go_type(type_name, version)):
            return raw, ()
        raw = msgspec.json.encode(raw)
    value, warnings = as_go_reads(raw, type_name, version=version)
    return (value if isinstance(value, dict) else raw), warnings


def stated_type(raw: bytes | Raw | Mapping[str, object]) -> TypeMeta:
    """Read the apiVersion and kind of an object. Raises DecodeError."""
    if isinstance(raw, bytes | Raw):
        return type_of(bytes(raw))
    try:
        return converted(raw, TypeMeta)
    except msgspec.ValidationError:  # kube-apiserver's message needs the text
        return type_of(msgspec.json.encode({name: raw[name] for name in ("apiVersion", "kind") if name in raw}))


def read_meta(raw: bytes | Raw | Mapping[str, object]) -> ObjectMeta:
    """Read the metadata of any object. Invalid metadata are empty. Never raises."""
    try:
        named = _NAMED.decode(raw) if isinstance(raw, bytes | Raw) else converted(raw, Named)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _NO_META
    return named.meta


def parse_object(raw: bytes | Raw | Mapping[str, object]) -> object:
    """Parse the JSON of an object. Raises DecodeError."""
    if not isinstance(raw, bytes | Raw):
        return raw
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        text = f"the object is not valid JSON: {str(error)[:ERROR_CHARACTERS]}"
        raise DecodeError(path="", text=text, message=text) from None


def _typed(raw: bytes | Raw | Mapping[str, object], decoder: msgspec.json.Decoder[_T], kind: str) -> _T:
    """Decode an object of a built-in kind. If the fast decoder fails, use Go's rules."""
    if isinstance(raw, bytes | Raw):
        return decode(raw, decoder, f"v1.{kind}")
    try:
        return converted(raw, decoder.type)
    except msgspec.ValidationError:
        return decode_strictly(msgspec.json.encode(raw), decoder, f"v1.{kind}")[0]


def _read_pod(raw: bytes | Raw | Mapping[str, object], api_version: str, kind: GroupKind) -> Workload:
    pod = _typed(raw, _POD, kind[1])
    return Workload(
        api_version=api_version,
        kind=kind[1],
        meta=pod.meta,
        traits=KINDS[kind],
        templates=(Template(path="", pod=pod, replicas=1),),
        replicas=1,
        built_in=True,
    )


def _read_controller(raw: bytes | Raw | Mapping[str, object]) -> built_in_objects.Object:
    """Read a ReplicationController. Convert its selector to the form of other kinds."""
    controller = _typed(raw, _CONTROLLER, REPLICATION_CONTROLLER[1])
    own = controller.spec or built_in_objects.ReplicationControllerSpec()
    selector = None if own.selector is None else LabelSelector(match_labels=own.selector)
    spec = built_in_objects.Spec(replicas=own.replicas, selector=selector, template=own.template)
    return built_in_objects.Object(metadata=controller.metadata, spec=spec)


def _read_object(raw: bytes | Raw | Mapping[str, object], api_version: str, kind: GroupKind) -> Workload:
    read: built_in_objects.Object
    if kind == REPLICATION_CONTROLLER:
        read = _read_controller(raw)
    else:
        read = _typed(raw, _JOB, kind[1]) if kind == JOB else _typed(raw, _OBJECT, kind[1])
    spec = read.spec or _NO_SPEC
    row = KINDS[kind]
    site = row.layout.sites[0]
    job: built_in_objects.JobSpec = spec
    if kind == CRON_JOB:
        job = (spec.job_template.spec if spec.job_template else None) or _NO_JOB_SPEC
    replicas = spec.replicas if site.replicas else None
    if row.completes:
        replicas = _at_once(job, read.status if isinstance(read, built_in_objects.Job) else None)
    return Workload(
        api_version=api_version,
        group=kind[0],
        kind=kind[1],
        meta=read.metadata or _NO_META,
        traits=row,
        templates=(Template(path=site.prefix, pod=job.template, replicas=replicas),) if job.template else (),
        replicas=replicas,
        selector=job.selector,
        built_in=True,
        strategy=_strategy(spec.strategy or spec.update_strategy),
        suspended=spec.suspend is True,
        paused=spec.paused is True,
        claims=_claims(spec) if row.ordered and spec.volume_claim_templates else None,
        parallel=spec.pod_management_policy == "Parallel",
        first_ordinal=(row.ordered and spec.ordinals and spec.ordinals.start) or 0,
        indexed=row.completes and job.completion_mode == "Indexed",
        manual_selector=row.completes and job.manual_selector is True,
        grouped=row.completes and job.scheduling is not None,
    )


def _at_once(job: built_in_objects.JobSpec, status: built_in_objects.JobStatus | None) -> int | None:
    """Return how many pods of a Job may run at once. None if unlimited. Source: job/job_controller.go ``manageJob``."""
    if status is not None and status.has_ended:
        return 0
    done = (status and status.succeeded) or 0
    if job.completions is None:
        # A work queue starts no further pod after the first success.
        return 0 if done else job.parallelism
    return min(max(0, job.completions - done), 1 if job.parallelism is None else job.parallelism)


def _claims(spec: built_in_objects.Spec) -> ClaimTemplates:
    templates = spec.volume_claim_templates or ()
    names = tuple(claim.metadata.name if claim.metadata else "" for claim in templates)
    classes = tuple((claim.spec and claim.spec.storage_class_name) or "" for claim in templates)
    return ClaimTemplates(names, classes, tuple(claim.spec.resources if claim.spec else None for claim in templates))


def _strategy(given: built_in_objects.StrategyFields | None) -> Strategy | None:
    if given is None:
        return None
    rolling = given.rolling_update or built_in_objects.RollingUpdate()
    return Strategy(
        type=given.type,
        max_surge=rolling.max_surge,
        max_unavailable=rolling.max_unavailable,
        partition=rolling.partition,
    )


def _walk(value: object, api_version: str, kind: GroupKind, layout: Layout) -> Workload:
    """Read a custom resource from the field paths in its layout. Fields missing from the object are left empty."""
    meta = _lenient(value_at_layout_path(value, "metadata"), ObjectMeta) or _NO_META
    templates = tuple(_templates(value, layout, meta))
    counts = {template.replicas for template in templates}
    late = (value_at_layout_path(value, path) for path in layout.late_labels)
    return Workload(
        api_version=api_version,
        group=kind[0],
        kind=kind[1],
        meta=meta,
        traits=traits(kind),
        templates=templates,
        replicas=counts.pop() if len(counts) == 1 else None,
        selector=_selector(value_at_layout_path(value, layout.selector)) if layout.whole else _given_labels(templates),
        strategy=_strategy(_lenient(value_at_layout_path(value, layout.strategy), built_in_objects.StrategyFields)),
        suspended=value_at_layout_path(value, layout.suspend) is True,
        late_labels=tuple(key for labels in late if isinstance(labels, dict) for key in labels),
        whole=layout.whole,
    )


def _given_labels(templates: tuple[Template, ...]) -> LabelSelector | None:
    """Return a selector for the labels added by the operator. None if templates have different labels."""
    labels = templates[0].pod.labels if templates else {}
    same = labels and all(template.pod.labels == labels for template in templates)
    return LabelSelector(match_labels=labels) if same else None


def _templates(value: object, layout: Layout, meta: ObjectMeta) -> Iterator[Template]:
    for site in layout.sites:
        for path, value_there, entry in walk(value, site.bare_path or site.template):
            check_time()  # an object can have thousands of templates
            if value_there is not None:
                at = "".join(part if part.startswith("[") else f".{part}" for part in path).removeprefix(".")
                replicas = value_at_layout_path(entry, site.replicas)
                template = _decode_bare(value_there, path) if site.bare_path else _decode_template(value_there, path)
                yield Template(
                    path=f"{at.removesuffix(CONSTRAINTS)}" if site.bare_path else f"{at}." if at else "",
                    pod=template if layout.whole else _operated(template, site, layout, meta, entry),
                    replicas=replicas if type(replicas) is int else None,
                    bare_path=at if site.bare_path else "",
                )


def _decode_bare(found: object, path: tuple[str, ...]) -> PodTemplate:
    try:
        constraints = () if found is None else converted(found, tuple[OperatorConstraint, ...])
    except msgspec.ValidationError:
        constraints, _ = decode_strictly(msgspec.json.encode(found), _CONSTRAINTS, f"[]{_GO_CONSTRAINT}", path)
    return PodTemplate(spec=PodSpec(topology_spread_constraints=constraints))


def _operated(template: PodTemplate, site: Site, layout: Layout, meta: ObjectMeta, entry: object) -> PodTemplate:
    """Return the pod template of an operator's custom resource, as far as it is known.

    The template has the pods' labels and the constraints, with fields added by the operator.
    """
    given = {key: text.replace("{name}", meta.name) for key, text in site.labels}
    labels = {**given, **((meta.labels or {}) if layout.inherits else {}), **template.labels}
    constraints: tuple[SpreadConstraint, ...] = template.pod_spec.constraints
    if fill := FILLS.get(layout.filled):
        siblings = _lenient(entry, SiblingFields) or SiblingFields()
        every = (
            entry if isinstance(entry, OperatorConstraint) else OperatorConstraint(**structs.asdict(entry))
            for entry in constraints
        )
        constraints = tuple(fill(constraint, given, siblings) for constraint in every)
    return replace(
        template,
        metadata=replace(template.meta, labels=labels or None),
        spec=PodSpec(topology_spread_constraints=constraints),
    )


def _decode_template(template: object, path: tuple[str, ...]) -> PodTemplate:
    """Decode a pod template inside a custom resource.

    If a field has the wrong type, read only the template's labels, annotations and constraints. The resource's operator
    may accept the other fields.
    """
    try:
        return converted(template, PodTemplate)
    except msgspec.ValidationError:
        pass
    if isinstance(template, dict):
        kept = {"metadata": ("labels", "annotations"), "spec": (CONSTRAINTS,)}
        template = {part: template.get(part) for part in kept}
        for part, names in kept.items():
            if isinstance(fields := template[part], dict):
                template[part] = {name: fields[name] for name in names if name in fields}
    return decode_strictly(msgspec.json.encode(template), _POD, "v1.PodTemplateSpec", path)[0]


def _selector(value: object) -> LabelSelector | None:
    """Read a label selector. A plain map of labels becomes matchLabels."""
    if isinstance(value, dict) and value and all(isinstance(entry, str) for entry in value.values()):
        return LabelSelector(match_labels=value)
    return _lenient(value, LabelSelector)


def _lenient(value: object, type_: type[_T]) -> _T | None:
    try:
        return None if value is None else converted(value, type_)
    except msgspec.ValidationError:
        return None
