"""The pod templates of an object of any kind, and what rules need to know of the object around them.

Built-in kinds are decoded in one typed pass; custom resources are walked by their `layouts`.

Source: the API types of k8s.io/api.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from webhook.core.decoding import DecodeError, as_go_reads, decode, decode_strictly, type_of
from webhook.core.gojson import is_plain, resolve
from webhook.core.layouts import BUILT_IN, CUSTOM, TEMPLATED, Layout, configured_layout, value_at, walk
from webhook.core.model import Int32, LabelSelector, Named, ObjectMeta, PodTemplate, TypeMeta
from webhook.core.policy import EmbeddedKind

_T = TypeVar("_T")

IntOrText = int | str
"""A count or a percentage, as maxSurge is written."""


class Template(Struct, frozen=True, kw_only=True):
    """One pod template of an object; for a Pod the object itself.

    Shape: ``path`` is the prefix that stands before ``spec.topologySpreadConstraints[0]`` and ``metadata.labels``:
    empty for a Pod, ``spec.template.`` for a Deployment.
    Unit: ``replicas`` are pods made from this template; None where the object does not say.
    """

    path: str
    template: PodTemplate
    replicas: int | None = None


class Strategy(Struct, frozen=True, kw_only=True):
    """How an object replaces its pods, as written; absent fields are None, not their defaults."""

    type: str | None = None
    max_surge: IntOrText | None = None
    max_unavailable: IntOrText | None = None


class ClaimTemplates(Struct, frozen=True):
    """A StatefulSet's claims: the pod ``web-0`` has one named ``<name>-web-0`` for each of the names.

    Shape: ``first`` is the ordinal of the first pod.
    """

    names: tuple[str, ...]
    first: int = 0


class Workload(Struct, frozen=True, kw_only=True):
    """An object that is a pod or makes pods.

    Shape: ``built_in`` says that kube-apiserver itself validates the templates. ``group`` is
    that of ``api_version``, empty for core. ``selector`` is the object's own
    ``spec.selector``. ``suspended`` objects make no pods at present. ``late_labels`` are keys of labels that the object
    itself tells its controller to put on some of the pods. ``indexed`` and ``manual_selector`` are of Jobs: each pod
    has a completion index; no labels are generated.
    """

    api_version: str
    kind: str
    meta: ObjectMeta
    templates: tuple[Template, ...]
    replicas: int | None = None
    selector: LabelSelector | None = None
    built_in: bool = False
    strategy: Strategy | None = None
    suspended: bool = False
    group: str = ""
    late_labels: tuple[str, ...] = ()
    claims: ClaimTemplates | None = None
    indexed: bool = False
    manual_selector: bool = False


class _Json(Struct, frozen=True, rename="camel"):
    """Base of the typed shapes below; they exist only while an object is read."""


class _RollingUpdate(_Json, frozen=True):
    max_surge: IntOrText | None = None
    max_unavailable: IntOrText | None = None


class _Strategy(_Json, frozen=True):
    type: str | None = None
    rolling_update: _RollingUpdate | None = None


class _JobSpec(_Json, frozen=True):
    parallelism: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplate | None = None
    completion_mode: str | None = None
    manual_selector: bool | None = None


class _ClaimMeta(_Json, frozen=True):
    name: str = ""


class _ClaimTemplate(_Json, frozen=True):
    metadata: _ClaimMeta | None = None


class _Ordinals(_Json, frozen=True):
    start: Int32 | None = None


class _JobTemplate(_Json, frozen=True):
    spec: _JobSpec | None = None


class _Spec(_Json, frozen=True):
    """The specs of the built-in kinds in one: no field of one means something else in another."""

    replicas: Int32 | None = None
    parallelism: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplate | None = None
    strategy: _Strategy | None = None
    update_strategy: _Strategy | None = None
    job_template: _JobTemplate | None = None
    suspend: bool | None = None
    volume_claim_templates: tuple[_ClaimTemplate, ...] | None = None
    ordinals: _Ordinals | None = None
    completion_mode: str | None = None
    manual_selector: bool | None = None


class _Object(_Json, frozen=True):
    metadata: ObjectMeta | None = None
    spec: _Spec | None = None


class _ControllerSpec(_Json, frozen=True):
    replicas: Int32 | None = None
    selector: Mapping[str, str] | None = None  # the one kind whose selector is a plain map
    template: PodTemplate | None = None


class _Controller(_Json, frozen=True):
    metadata: ObjectMeta | None = None
    spec: _ControllerSpec | None = None


_NAMED = msgspec.json.Decoder(Named)
_OBJECT = msgspec.json.Decoder(_Object)
_POD = msgspec.json.Decoder(PodTemplate)
_CONTROLLER = msgspec.json.Decoder(_Controller)

_NO_META = ObjectMeta()
_NO_SPEC = _Spec()
_NO_JOB_SPEC = _JobSpec()


def read_workload(
    raw: bytes | Raw | Mapping[str, object],
    embedded: tuple[EmbeddedKind, ...] = (),
    *,
    api_version: str | None = None,
    kind: str | None = None,
) -> Workload | None:
    """The object as a workload, or None where its kind has no pod template.

    Shape: ``raw`` is JSON text or parsed JSON; ``api_version`` and ``kind`` are what it says of itself, where the
    caller knows that already.
    Errors: DecodeError for an object that the API's types do not fit; of a custom resource, only for its constraints.
    """
    if api_version is None or kind is None:
        stated = stated_type(raw)
        api_version, kind = stated.api_version or "", stated.kind or ""
    own = configured_layout(api_version, kind, embedded) if embedded else None
    key = (api_version.rpartition("/")[0], kind)
    if own is None and key in BUILT_IN:
        return _READERS.get(kind, _read_object)(raw, api_version, kind)
    layout = own or CUSTOM.get(key)
    return None if layout is None else _walk(_parsed(raw), api_version, kind, layout)


def read_exactly(
    raw: bytes | Raw | Mapping[str, object], stated: TypeMeta
) -> tuple[bytes | Raw | Mapping[str, object], tuple[str, ...]]:
    """An object as kube-apiserver keeps it, and its warnings about unknown and repeated fields.

    Slower than `read_workload`, which it prepares for: every field is looked at, not only those that the model has.
    Shape: an object of a kind that is not built in comes back as it is.
    Errors: DecodeError.
    """
    group, _, version = (stated.api_version or "").rpartition("/")
    if version != "v1" or (group, stated.kind) not in BUILT_IN:
        return raw, ()
    go_type = f"v1.{stated.kind}"
    if not isinstance(raw, bytes | Raw):
        if is_plain(raw, resolve(go_type)):
            return raw, ()
        raw = msgspec.json.encode(raw)
    value, warnings = as_go_reads(raw, go_type)
    return (value if isinstance(value, dict) else raw), warnings


def stated_type(raw: bytes | Raw | Mapping[str, object]) -> TypeMeta:
    """What an object says that it is. Errors: DecodeError."""
    if isinstance(raw, bytes | Raw):
        return type_of(bytes(raw))
    return type_of(msgspec.json.encode({name: raw[name] for name in ("apiVersion", "kind") if name in raw}))


def read_meta(raw: bytes | Raw | Mapping[str, object]) -> ObjectMeta:
    """The metadata of an object whatever else is wrong with it; empty where they are wrong too. Errors: none."""
    try:
        named = _NAMED.decode(raw) if isinstance(raw, bytes | Raw) else msgspec.convert(raw, Named)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _NO_META
    return named.meta


def has_template(api_version: str, kind: str, embedded: tuple[EmbeddedKind, ...] = ()) -> bool:
    """Whether objects of this kind are known to hold pod templates."""
    key = (api_version.rpartition("/")[0], kind)
    return key in TEMPLATED or configured_layout(api_version, kind, embedded) is not None


def fields_read(of: TypeMeta, embedded: tuple[EmbeddedKind, ...] = ()) -> Iterator[tuple[str, type]]:
    """Where a kind with templates keeps what is read of it: a path with wildcards, and what is decoded there.

    Shape: the empty path is the object itself.
    """
    api_version, kind = of.api_version or "", of.kind or ""
    key = (api_version.rpartition("/")[0], kind)
    layout = configured_layout(api_version, kind, embedded)
    if layout is None and key in BUILT_IN:
        yield "", {"Pod": PodTemplate, "ReplicationController": _Controller}.get(kind, _Object)
        return
    layout = layout or CUSTOM.get(key)
    if layout is None:
        return
    yield "metadata", ObjectMeta
    for site in layout.sites:
        yield site.template, PodTemplate
        if site.replicas:
            entry = max(site.template.rfind("[*]") + len("[*]"), site.template.rfind(".*") + len(".*"))
            yield (f"{site.template[:entry]}.{site.replicas}" if "*" in site.template else site.replicas), int
    if layout.selector:
        yield layout.selector, LabelSelector
    if layout.strategy:
        yield layout.strategy, _Strategy
    if layout.suspend:
        yield layout.suspend, bool
    for path in layout.late_labels:
        yield path, Mapping[str, str]


def _parsed(raw: bytes | Raw | Mapping[str, object]) -> object:
    if not isinstance(raw, bytes | Raw):
        return raw
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        text = f"the object is not valid JSON: {str(error)[:256]}"
        raise DecodeError(path="", text=text, message=text) from None


def _typed(raw: bytes | Raw | Mapping[str, object], decoder: msgspec.json.Decoder[_T], kind: str) -> _T:
    """Decode an object of a built-in kind, as kube-apiserver would where it does not fit at once."""
    if isinstance(raw, bytes | Raw):
        return decode(raw, decoder, f"v1.{kind}")
    try:
        return msgspec.convert(raw, decoder.type)
    except msgspec.ValidationError:
        return decode_strictly(msgspec.json.encode(raw), decoder, f"v1.{kind}")[0]


def _read_pod(raw: bytes | Raw | Mapping[str, object], api_version: str, kind: str) -> Workload:
    pod = _typed(raw, _POD, kind)
    templates = (Template(path="", template=pod, replicas=1),)
    return Workload(api_version=api_version, kind=kind, meta=pod.meta, templates=templates, replicas=1, built_in=True)


def _read_controller(raw: bytes | Raw | Mapping[str, object], api_version: str, kind: str) -> Workload:
    found = _typed(raw, _CONTROLLER, kind)
    spec = found.spec or _ControllerSpec()
    template = spec.template
    return Workload(
        api_version=api_version,
        group=api_version.rpartition("/")[0],
        kind=kind,
        meta=found.metadata or _NO_META,
        templates=(Template(path="spec.template.", template=template, replicas=spec.replicas),) if template else (),
        replicas=spec.replicas,
        selector=None if spec.selector is None else LabelSelector(match_labels=spec.selector),
        built_in=True,
    )


def _read_object(raw: bytes | Raw | Mapping[str, object], api_version: str, kind: str) -> Workload:
    found = _typed(raw, _OBJECT, kind)
    spec = found.spec or _NO_SPEC
    if kind == "CronJob":
        job: _JobSpec | _Spec = (spec.job_template.spec if spec.job_template else None) or _NO_JOB_SPEC
        path, template, replicas, selector = _CRON_JOB_PATH, job.template, job.parallelism, job.selector
    else:
        job, path, template, selector = spec, "spec.template.", spec.template, spec.selector
        replicas = spec.parallelism if kind == "Job" else None if kind == "DaemonSet" else spec.replicas
    return Workload(
        api_version=api_version,
        group=api_version.rpartition("/")[0],
        kind=kind,
        meta=found.metadata or _NO_META,
        templates=(Template(path=path, template=template, replicas=replicas),) if template else (),
        replicas=replicas,
        selector=selector,
        built_in=True,
        strategy=_strategy(spec.strategy or spec.update_strategy),
        suspended=spec.suspend is True,
        claims=_claims(spec) if kind == "StatefulSet" and spec.volume_claim_templates else None,
        indexed=kind in _JOBS and job.completion_mode == "Indexed",
        manual_selector=kind in _JOBS and job.manual_selector is True,
    )


def _claims(spec: _Spec) -> ClaimTemplates:
    names = tuple(each.metadata.name if each.metadata else "" for each in spec.volume_claim_templates or ())
    return ClaimTemplates(names, (spec.ordinals and spec.ordinals.start) or 0)


def _strategy(written: _Strategy | None) -> Strategy | None:
    if written is None:
        return None
    rolling = written.rolling_update or _RollingUpdate()
    return Strategy(type=written.type, max_surge=rolling.max_surge, max_unavailable=rolling.max_unavailable)


_JOBS = frozenset({"Job", "CronJob"})
_CRON_JOB_PATH = "spec.jobTemplate.spec.template."
_READERS = {"Pod": _read_pod, "ReplicationController": _read_controller}


def _walk(value: object, api_version: str, kind: str, layout: Layout) -> Workload:
    """Read a custom resource by its layout; what is not where it should be is absent."""
    templates = tuple(_templates(value, layout))
    counts = {template.replicas for template in templates}
    return Workload(
        api_version=api_version,
        group=api_version.rpartition("/")[0],
        kind=kind,
        meta=_lenient(value_at(value, "metadata"), ObjectMeta) or _NO_META,
        templates=templates,
        replicas=counts.pop() if len(counts) == 1 else None,
        selector=_selector(value_at(value, layout.selector)),
        strategy=_strategy(_lenient(value_at(value, layout.strategy), _Strategy)),
        suspended=value_at(value, layout.suspend) is True,
        late_labels=tuple(key for path in layout.late_labels for key in _keys(value_at(value, path))),
    )


def _templates(value: object, layout: Layout) -> Iterator[Template]:
    for site in layout.sites:
        for path, found, entry in walk(value, site.template):
            if found is not None:
                replicas = value_at(entry, site.replicas)
                yield Template(
                    path="".join(part if part.startswith("[") else f".{part}" for part in path).removeprefix(".") + ".",
                    template=_decode_template(found, path),
                    replicas=replicas if type(replicas) is int else None,
                )


def _decode_template(found: object, path: tuple[str, ...]) -> PodTemplate:
    """A template inside a custom resource.

    What its controller makes of other fields than ours is not known here: if one of them does not fit, only labels,
    annotations and constraints are read.
    """
    try:
        return msgspec.convert(found, PodTemplate)
    except msgspec.ValidationError:
        pass
    if isinstance(found, dict):
        kept = {"metadata": ("labels", "annotations"), "spec": ("topologySpreadConstraints",)}
        found = {part: _only(found.get(part), names) for part, names in kept.items()}
    return decode_strictly(msgspec.json.encode(found), _POD, "v1.PodTemplateSpec", path)[0]


def _only(value: object, names: tuple[str, ...]) -> object:
    return {name: value[name] for name in names if name in value} if isinstance(value, dict) else value


def _keys(value: object) -> tuple[str, ...]:
    return tuple(value) if isinstance(value, dict) else ()


def _selector(value: object) -> LabelSelector | None:
    """A label selector; a plain map of labels (ReplicationController) is read as matchLabels."""
    if isinstance(value, dict) and value and all(isinstance(entry, str) for entry in value.values()):
        return LabelSelector(match_labels=value)
    return _lenient(value, LabelSelector)


def _lenient(value: object, type_: type[_T]) -> _T | None:
    try:
        return None if value is None else msgspec.convert(value, type_)
    except msgspec.ValidationError:
        return None
