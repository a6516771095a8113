"""Where custom resources keep their pod templates or the constraints alone, and the way there over parsed JSON.

In a path ``[*]`` stands for every entry of a list, ``*`` for every value of a map.

Source: the CRDs of the projects named in ``CUSTOM``.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct


class EmbeddedKind(Struct, frozen=True, kw_only=True, rename="camel"):
    """A further kind whose pods have constraints, from ``workloads`` of the configuration.

    Shape: it has a ``template_path``, or a ``constraints_path`` where they stand outside a pod template; ``pod_labels``
    are pairs.
    """

    api_version: str
    kind: str
    template_path: str | None = None
    replicas_path: str | None = None
    selector_path: str | None = None
    constraints_path: str | None = None
    pod_labels: tuple[tuple[str, str], ...] = ()


class Site(Struct, frozen=True):
    """One place of templates in an object, or of constraints that stand in none.

    Shape: ``template`` is a path from the object. ``replicas`` is one from the entry that the last wildcard of
    ``template`` stands for; from the object where there is no wildcard. Where ``alone`` is set, it is the path of the
    constraints and ``template`` is empty. ``labels`` are those that the kind's operator gives the pods, as pairs;
    ``{name}`` in a value is the name of the object.
    """

    template: str
    replicas: str | None = None
    alone: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def constraints(self) -> str:
        """Where the constraints stand, as a path from the object."""
        return self.alone or f"{self.template}.spec.{CONSTRAINTS}".removeprefix(".")


class Layout(Struct, frozen=True):
    """Where one kind keeps what is read of it, as paths from the object.

    Shape: what is not ``whole`` is a part of the pods: an operator adds the rest. ``filled`` names what the operator
    writes into constraints, if anything. Where ``inherits`` is set, pods get the labels of the object too.
    """

    sites: tuple[Site, ...]
    selector: str | None = "spec.selector"
    strategy: str | None = None
    suspend: str | None = None
    late_labels: tuple[str, ...] = ()
    whole: bool = True
    filled: str = ""
    inherits: bool = False


CONSTRAINTS = "topologySpreadConstraints"


def _plain(strategy: str | None = None) -> Layout:
    return Layout((Site("spec.template", "spec.replicas"),), strategy=strategy)


def _replica_specs(field: str) -> Layout:
    site = Site(f"spec.{field}.*.template", "replicas")
    return Layout((site,), selector=None, suspend="spec.runPolicy.suspend")


def _ray(prefix: str, *more: Site) -> Layout:
    head = Site(f"{prefix}.headGroupSpec.template")
    workers = Site(f"{prefix}.workerGroupSpecs[*].template", "replicas")
    return Layout((head, workers, *more), selector=None, suspend="spec.suspend")


BUILT_IN = frozenset(
    {
        *(("", "Pod"), ("", "ReplicationController")),
        *(("apps", "Deployment"), ("apps", "ReplicaSet"), ("apps", "StatefulSet"), ("apps", "DaemonSet")),
        *(("batch", "Job"), ("batch", "CronJob")),
    }
)

CUSTOM: Mapping[tuple[str, str], Layout] = {
    ("argoproj.io", "Rollout"): Layout(
        (Site("spec.template", "spec.replicas"),),
        late_labels=(
            "spec.strategy.canary.canaryMetadata.labels",
            "spec.strategy.canary.stableMetadata.labels",
            "spec.strategy.blueGreen.activeMetadata.labels",
            "spec.strategy.blueGreen.previewMetadata.labels",
        ),
    ),
    ("apps.kruise.io", "CloneSet"): _plain(),
    ("apps.kruise.io", "StatefulSet"): _plain("spec.updateStrategy"),
    ("apps.kruise.io", "DaemonSet"): Layout((Site("spec.template"),)),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): Layout(
        (
            Site("spec.leaderWorkerTemplate.leaderTemplate", "spec.replicas"),
            Site("spec.leaderWorkerTemplate.workerTemplate"),
        ),
        selector=None,
    ),
    ("jobset.x-k8s.io", "JobSet"): Layout(
        (Site("spec.replicatedJobs[*].template.spec.template", "template.spec.parallelism"),),
        selector=None,
        suspend="spec.suspend",
    ),
    ("ray.io", "RayCluster"): _ray("spec"),
    ("ray.io", "RayJob"): _ray("spec.rayClusterSpec", Site("spec.submitterPodTemplate")),
    ("ray.io", "RayService"): _ray("spec.rayClusterConfig"),
    ("kubeflow.org", "PyTorchJob"): _replica_specs("pytorchReplicaSpecs"),
    ("kubeflow.org", "TFJob"): _replica_specs("tfReplicaSpecs"),
    ("kubeflow.org", "MPIJob"): _replica_specs("mpiReplicaSpecs"),
    ("kubeflow.org", "XGBoostJob"): _replica_specs("xgbReplicaSpecs"),
    ("kubeflow.org", "PaddleJob"): _replica_specs("paddleReplicaSpecs"),
    ("kubeflow.org", "MXJob"): _replica_specs("mxReplicaSpecs"),
    ("kubeflow.org", "JAXJob"): _replica_specs("jaxReplicaSpecs"),
    ("batch.volcano.sh", "Job"): Layout((Site("spec.tasks[*].template", "replicas"),), selector=None),
    ("serving.knative.dev", "Service"): Layout((Site("spec.template"),), selector=None),
    ("serving.knative.dev", "Configuration"): Layout((Site("spec.template"),), selector=None),
}

TEMPLATED = BUILT_IN | {*CUSTOM}
"""Group and kind of all that are known to hold pod templates; Pod itself among them."""


def configured_layout(api_version: str, kind: str, embedded: tuple[EmbeddedKind, ...]) -> Layout | None:
    """The layout of a kind that the configuration names."""
    for own in embedded:
        if own.kind == kind and own.api_version == api_version:
            alone = own.constraints_path or ""
            site = Site(own.template_path or "", own.replicas_path, alone, own.pod_labels)
            return Layout((site,), selector=own.selector_path, whole=not alone)
    return None


def walk(value: object, path: str) -> Iterator[tuple[tuple[str, ...], object, object]]:
    """Every place that a path with wildcards stands for: its concrete path, its value, the last wildcard's entry."""
    frontier: list[tuple[tuple[str, ...], object, object]] = [((), value, value)]
    for name, many in _steps(path):
        frontier = [
            ((*at, step), child, child if many else entry)
            for at, here, entry in frontier
            for step, child in _children(here, name, many=many)
        ]
    return iter(frontier)


def leads_to(path: str, steps: tuple[str, ...]) -> bool:
    """Whether a path with wildcards stands for this place; an item is ``[0]`` in its steps."""
    names = [*_steps(path)]
    return len(names) == len(steps) and all(
        step == name or (many and step.startswith("[") == (name == "[]"))
        for (name, many), step in zip(names, steps, strict=True)
    )


def _steps(path: str) -> Iterator[tuple[str, bool]]:
    for segment in path.split(".") if path else ():
        if segment == "*":
            yield "", True
        elif segment.endswith("[*]"):
            yield segment.removesuffix("[*]"), False
            yield "[]", True
        else:
            yield segment, False


def _children(here: object, name: str, *, many: bool) -> Iterator[tuple[str, object]]:
    if many and name == "[]":
        if isinstance(here, list):
            yield from ((f"[{index}]", child) for index, child in enumerate(here))
    elif isinstance(here, dict):
        if many:
            yield from ((key if key.isalnum() else f"[{key}]", child) for key, child in here.items())
        elif name in here:
            yield name, here[name]


def value_at(value: object, path: str | None) -> object:
    """The value at a path without wildcards, or None."""
    if path is None:
        return None
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value
