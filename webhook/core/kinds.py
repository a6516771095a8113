"""Where each kind of object keeps its pod templates, and what rules need to know of the object around them.

Built-in kinds are decoded in one typed pass. Custom resources, and built-in ones that do not fit their types, are
walked by path over parsed JSON: ``[*]`` stands for every entry of a list, ``*`` for every value of a map.

Source: the API types of k8s.io/api, and the CRDs of the projects named in ``_CUSTOM``.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from webhook.core.model import Int32, LabelSelector, ObjectMeta, PodTemplate, TypeMeta
from webhook.core.policy import EmbeddedKind

IntOrText = int | str
"""A count or a percentage, as maxSurge is written."""


class DecodeError(Exception):
    """A template that does not fit the types of the API.

    Shape: ``path`` is the API path where known; ``text`` the decoder's own words; ``message`` the whole refusal.
    """

    def __init__(self, *, path: str, text: str, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.text = text
        self.message = message


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


class Workload(Struct, frozen=True, kw_only=True):
    """An object that is a pod or makes pods.

    Shape: ``built_in`` says that kube-apiserver itself validates the templates. ``selector`` is the object's own
    ``spec.selector``. ``suspended`` objects make no pods at present.
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

    @property
    def group(self) -> str:
        """The API group; empty for core."""
        return self.api_version.rpartition("/")[0]


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


class _BareTemplate(_Json, frozen=True):
    metadata: ObjectMeta | None = None
    template: PodTemplate | None = None


class _Site(Struct, frozen=True):
    """One place of templates in an object.

    Shape: ``template`` is a path from the object. ``replicas`` is one from the entry that the last wildcard of
    ``template`` stands for; from the object where there is no wildcard.
    """

    template: str
    replicas: str | None = None


class _Layout(Struct, frozen=True):
    sites: tuple[_Site, ...]
    selector: str | None = "spec.selector"
    strategy: str | None = None
    suspend: str | None = None


def _plain(strategy: str | None = None) -> _Layout:
    return _Layout((_Site("spec.template", "spec.replicas"),), strategy=strategy)


def _replica_specs(field: str) -> _Layout:
    site = _Site(f"spec.{field}.*.template", "replicas")
    return _Layout((site,), selector=None, suspend="spec.runPolicy.suspend")


def _ray(prefix: str, *more: _Site) -> _Layout:
    head = _Site(f"{prefix}.headGroupSpec.template")
    workers = _Site(f"{prefix}.workerGroupSpecs[*].template", "replicas")
    return _Layout((head, workers, *more), selector=None, suspend="spec.suspend")


_BUILT_IN: Mapping[tuple[str, str], _Layout] = {
    ("", "Pod"): _Layout((_Site(""),), selector=None),
    ("", "PodTemplate"): _Layout((_Site("template"),), selector=None),
    ("", "ReplicationController"): _plain(),
    ("apps", "Deployment"): _plain("spec.strategy"),
    ("apps", "ReplicaSet"): _plain(),
    ("apps", "StatefulSet"): _plain("spec.updateStrategy"),
    ("apps", "DaemonSet"): _Layout((_Site("spec.template"),), strategy="spec.updateStrategy"),
    ("batch", "Job"): _Layout((_Site("spec.template", "spec.parallelism"),), suspend="spec.suspend"),
    ("batch", "CronJob"): _Layout(
        (_Site("spec.jobTemplate.spec.template", "spec.jobTemplate.spec.parallelism"),),
        selector="spec.jobTemplate.spec.selector",
        suspend="spec.suspend",
    ),
}

_CUSTOM: Mapping[tuple[str, str], _Layout] = {
    ("argoproj.io", "Rollout"): _plain(),
    ("apps.kruise.io", "CloneSet"): _plain(),
    ("apps.kruise.io", "StatefulSet"): _plain("spec.updateStrategy"),
    ("apps.kruise.io", "DaemonSet"): _Layout((_Site("spec.template"),)),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _Layout(
        (
            _Site("spec.leaderWorkerTemplate.leaderTemplate", "spec.replicas"),
            _Site("spec.leaderWorkerTemplate.workerTemplate"),
        ),
        selector=None,
    ),
    ("jobset.x-k8s.io", "JobSet"): _Layout(
        (_Site("spec.replicatedJobs[*].template.spec.template", "template.spec.parallelism"),),
        selector=None,
        suspend="spec.suspend",
    ),
    ("ray.io", "RayCluster"): _ray("spec"),
    ("ray.io", "RayJob"): _ray("spec.rayClusterSpec", _Site("spec.submitterPodTemplate")),
    ("ray.io", "RayService"): _ray("spec.rayClusterConfig"),
    ("kubeflow.org", "PyTorchJob"): _replica_specs("pytorchReplicaSpecs"),
    ("kubeflow.org", "TFJob"): _replica_specs("tfReplicaSpecs"),
    ("kubeflow.org", "MPIJob"): _replica_specs("mpiReplicaSpecs"),
    ("kubeflow.org", "XGBoostJob"): _replica_specs("xgbReplicaSpecs"),
    ("kubeflow.org", "PaddleJob"): _replica_specs("paddleReplicaSpecs"),
    ("kubeflow.org", "MXJob"): _replica_specs("mxReplicaSpecs"),
    ("kubeflow.org", "JAXJob"): _replica_specs("jaxReplicaSpecs"),
    ("batch.volcano.sh", "Job"): _Layout((_Site("spec.tasks[*].template", "replicas"),), selector=None),
    ("serving.knative.dev", "Service"): _Layout((_Site("spec.template"),), selector=None),
    ("serving.knative.dev", "Configuration"): _Layout((_Site("spec.template"),), selector=None),
}

_TYPE = msgspec.json.Decoder(TypeMeta)
_OBJECT = msgspec.json.Decoder(_Object)
_POD = msgspec.json.Decoder(PodTemplate)
_BARE_TEMPLATE = msgspec.json.Decoder(_BareTemplate)
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
    Errors: DecodeError for a template that does not fit the API; msgspec.DecodeError for text that is no JSON
    object; RecursionError for text nested some thousand deep.
    """
    if api_version is None or kind is None:
        stated = _TYPE.decode(raw) if isinstance(raw, bytes | Raw) else msgspec.convert(raw, TypeMeta)
        api_version, kind = stated.api_version or "", stated.kind or ""
    layout, built_in = _layout(api_version, kind, embedded)
    if layout is None:
        return None
    if not isinstance(raw, bytes | Raw):
        return _walk(raw, api_version, kind, layout, built_in=built_in)
    if built_in:
        try:
            return _READERS.get(kind, _read_object)(raw, api_version, kind)
        except msgspec.ValidationError:
            pass  # the walk finds out whether a template is at fault, and words it
    return _walk(msgspec.json.decode(raw), api_version, kind, layout, built_in=built_in)


def has_template(api_version: str, kind: str, embedded: tuple[EmbeddedKind, ...] = ()) -> bool:
    """Whether objects of this kind are known to hold pod templates."""
    return _layout(api_version, kind, embedded)[0] is not None


def _layout(api_version: str, kind: str, embedded: tuple[EmbeddedKind, ...]) -> tuple[_Layout | None, bool]:
    """Where the kind keeps its templates, and whether it is built in; what is configured comes first."""
    for own in embedded:
        if own.kind == kind and own.api_version == api_version:
            return _Layout((_Site(own.template_path, own.replicas_path),), selector=own.selector_path), False
    key = (api_version.rpartition("/")[0], kind)
    own_layout = _BUILT_IN.get(key)
    return (own_layout, True) if own_layout else (_CUSTOM.get(key), False)


def _read_pod(raw: bytes | Raw, api_version: str, kind: str) -> Workload:
    pod = _POD.decode(raw)
    templates = (Template(path="", template=pod, replicas=1),)
    return Workload(api_version=api_version, kind=kind, meta=pod.meta, templates=templates, replicas=1, built_in=True)


def _read_bare_template(raw: bytes | Raw, api_version: str, kind: str) -> Workload:
    found = _BARE_TEMPLATE.decode(raw)
    templates = (Template(path="template.", template=found.template),) if found.template else ()
    meta = found.metadata or _NO_META
    return Workload(api_version=api_version, kind=kind, meta=meta, templates=templates, built_in=True)


def _read_controller(raw: bytes | Raw, api_version: str, kind: str) -> Workload:
    found = _CONTROLLER.decode(raw)
    spec = found.spec or _ControllerSpec()
    template = spec.template
    return Workload(
        api_version=api_version,
        kind=kind,
        meta=found.metadata or _NO_META,
        templates=(Template(path="spec.template.", template=template, replicas=spec.replicas),) if template else (),
        replicas=spec.replicas,
        selector=None if spec.selector is None else LabelSelector(match_labels=spec.selector),
        built_in=True,
    )


def _read_object(raw: bytes | Raw, api_version: str, kind: str) -> Workload:
    found = _OBJECT.decode(raw)
    spec = found.spec or _NO_SPEC
    if kind == "CronJob":
        job = (spec.job_template.spec if spec.job_template else None) or _NO_JOB_SPEC
        path, template, replicas, selector = _CRON_JOB_PATH, job.template, job.parallelism, job.selector
    else:
        path, template, selector = "spec.template.", spec.template, spec.selector
        replicas = spec.parallelism if kind == "Job" else None if kind == "DaemonSet" else spec.replicas
    return Workload(
        api_version=api_version,
        kind=kind,
        meta=found.metadata or _NO_META,
        templates=(Template(path=path, template=template, replicas=replicas),) if template else (),
        replicas=replicas,
        selector=selector,
        built_in=True,
        strategy=_strategy(spec.strategy or spec.update_strategy),
        suspended=spec.suspend is True,
    )


def _strategy(written: _Strategy | None) -> Strategy | None:
    if written is None:
        return None
    rolling = written.rolling_update or _RollingUpdate()
    return Strategy(type=written.type, max_surge=rolling.max_surge, max_unavailable=rolling.max_unavailable)


_CRON_JOB_PATH = "spec.jobTemplate.spec.template."
_READERS = {"Pod": _read_pod, "PodTemplate": _read_bare_template, "ReplicationController": _read_controller}


def _walk(value: object, api_version: str, kind: str, layout: _Layout, *, built_in: bool) -> Workload:
    """Read an object by its layout; what is not where it should be is absent, but a template that is must decode."""
    templates = tuple(_templates(value, layout, api_version, kind))
    counts = {template.replicas for template in templates}
    return Workload(
        api_version=api_version,
        kind=kind,
        meta=_lenient(_at(value, "metadata"), ObjectMeta) or _NO_META,
        templates=templates,
        replicas=counts.pop() if len(counts) == 1 else None,
        selector=_selector(_at(value, layout.selector)),
        built_in=built_in,
        strategy=_strategy(_lenient(_at(value, layout.strategy), _Strategy)),
        suspended=_at(value, layout.suspend) is True,
    )


def _templates(value: object, layout: _Layout, api_version: str, kind: str) -> Iterator[Template]:
    for site in layout.sites:
        for path, found, entry in _sites(value, site.template):
            if found is None:
                continue
            replicas = _at(entry, site.replicas)
            yield Template(
                path=f"{path}." if path else "",
                template=_decode_template(found, path, api_version, kind),
                replicas=replicas if type(replicas) is int else 1 if kind == "Pod" else None,
            )


def _decode_template(found: object, path: str, api_version: str, kind: str) -> PodTemplate:
    try:
        return msgspec.convert(found, PodTemplate)
    except msgspec.ValidationError as error:
        version = api_version.rpartition("/")[2]
        message = f'{kind} in version "{version}" cannot be handled as a {kind}: {error}'
        raise DecodeError(path=path, text=str(error), message=message) from None


def _sites(value: object, path: str) -> Iterator[tuple[str, object, object]]:
    """Every place that a path with wildcards stands for: its concrete path, its value, the last wildcard's entry."""
    frontier = [("", value, value)]
    for name, many in _steps(path):
        frontier = [
            (at + step, child, child if step and many else entry)
            for at, here, entry in frontier
            for step, child in _children(here, name, many=many, first=not at)
        ]
    return iter(frontier)


def _steps(path: str) -> Iterator[tuple[str, bool]]:
    for segment in path.split(".") if path else ():
        if segment == "*":
            yield "", True
        elif segment.endswith("[*]"):
            yield segment.removesuffix("[*]"), False
            yield "[]", True
        else:
            yield segment, False


def _children(here: object, name: str, *, many: bool, first: bool) -> Iterator[tuple[str, object]]:
    dot = "" if first else "."
    if many and name == "[]":
        if isinstance(here, list):
            yield from ((f"[{index}]", child) for index, child in enumerate(here))
    elif isinstance(here, dict):
        if many:
            yield from ((f"{dot}{key}" if key.isalnum() else f"[{key}]", child) for key, child in here.items())
        elif name in here:
            yield f"{dot}{name}", here[name]


def _at(value: object, path: str | None) -> object:
    """The value at a path without wildcards, or None."""
    if path is None:
        return None
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _selector(value: object) -> LabelSelector | None:
    """A label selector; a plain map of labels (ReplicationController) is read as matchLabels."""
    if isinstance(value, dict) and value and all(isinstance(entry, str) for entry in value.values()):
        return LabelSelector(match_labels=value)
    return _lenient(value, LabelSelector)


_T = TypeVar("_T")


def _lenient(value: object, type_: type[_T]) -> _T | None:
    try:
        return None if value is None else msgspec.convert(value, type_)
    except msgspec.ValidationError:
        return None
