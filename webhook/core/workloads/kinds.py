"""Kinds of workloads: a row for each kind, with all its properties.

Call `traits` for a kind, or use the tables of all kinds below. To add a kind, add a row here and a case to
tests/core/workloads/test_kinds.py. Group and name identify a kind in every version. Kinds of operators, with only
constraints and a few labels known, are in `operators`.

Source: the API types and controllers of k8s.io/kubernetes; the CRDs and controllers of the projects named in the rows.
"""

from collections.abc import Mapping

from msgspec import Struct

from webhook.core.api.well_known import (
    APP_CREATED_BY,
    APP_NAME,
    CONTROLLER_REVISION_HASH,
    CRONJOB_SCHEDULED_TIMESTAMP,
    JOB_COMPLETION_INDEX,
    JOB_LABELS,
    OLD_JOB_NAME,
    POD_INDEX,
    POD_NAME,
    POD_TEMPLATE_GENERATION,
    POD_TEMPLATE_HASH,
    ROLLOUTS_POD_TEMPLATE_HASH,
)
from webhook.core.workloads.custom_kinds import Layout, Site

GroupKind = tuple[str, str]

POD: GroupKind = ("", "Pod")
POD_TEMPLATE: GroupKind = ("", "PodTemplate")
REPLICATION_CONTROLLER: GroupKind = ("", "ReplicationController")
DEPLOYMENT: GroupKind = ("apps", "Deployment")
REPLICA_SET: GroupKind = ("apps", "ReplicaSet")
STATEFUL_SET: GroupKind = ("apps", "StatefulSet")
DAEMON_SET: GroupKind = ("apps", "DaemonSet")
JOB: GroupKind = ("batch", "Job")
CRON_JOB: GroupKind = ("batch", "CronJob")


def group_of(api_version: str) -> str:
    """Return the group of an API version: ``apps`` for ``apps/v1``, empty for the core group."""
    return api_version.rpartition("/")[0]


def group_kind(api_version: str, kind: str) -> GroupKind:
    """Return a kind's group and name, without the version."""
    return group_of(api_version), kind


class Traits(Struct, frozen=True, kw_only=True):
    """The properties of a workload kind. The defaults are those of an unknown kind.

    Attributes:
        layout: The paths of its fields. Built-in kinds are decoded as `built_in_objects` instead. Only their paths of
            template and replicas are used.
        short: kubectl's abbreviation.
        built_in: kube-apiserver validates the templates.
        reviewed: The webhook reviews its objects. Kinds made by another reviewed kind need no review.
        selects: Has a selector for the labels of its template.
        selecting: kube-scheduler's default constraints select its pods by its own selector and those of Services. Pods
            of other kinds are selected only by Services.
        in_replica_sets: Its pods belong to ReplicaSets, each with its own revision.
        revision: The label with the revision of the template. Empty for none, None for unknown.
        added: Labels of its pods missing from the template. A final "/" marks a prefix. None for unknown.
        replicated: Has equal replicas to spread. False for one pod, a pod for each node, or pods that complete.
        serves: Its replicas run until deleted.
        rolls: A new template replaces the pods step by step.
        surges: Whether a rolling update adds maxSurge pods. None for other update strategies.
        restarts: ``kubectl rollout restart`` supports the kind.
        replaces: Replaces pods on lost nodes.
        ordered: Its pods have ordinals and their own claims.
        on_every_node: Runs one pod on each node.
        completes: Its pods complete.
        keeps_pods: After a change of the template, old pods remain (True) or may remain (None).
        selector_first: kube-apiserver validates the template only with a valid selector.
        makes: The kinds of objects created from its templates, with an owner reference.
    """

    layout: Layout
    short: str = ""
    built_in: bool = False
    reviewed: bool = True
    selects: bool = False
    selecting: bool = False
    in_replica_sets: bool = False
    revision: str | None = None
    added: tuple[str, ...] | None = None
    replicated: bool = True
    serves: bool = False
    rolls: bool = False
    surges: bool | None = None
    restarts: bool = False
    replaces: bool = False
    ordered: bool = False
    on_every_node: bool = False
    completes: bool = False
    keeps_pods: bool | None = False
    selector_first: bool = False
    makes: tuple[GroupKind, ...] = ()


_STATEFUL = (POD_NAME, POD_INDEX, CONTROLLER_REVISION_HASH)
_JOB = (*JOB_LABELS, JOB_COMPLETION_INDEX, CRONJOB_SCHEDULED_TIMESTAMP)
_KRUISE = ("apps.kruise.io/", "lifecycle.apps.kruise.io/", CONTROLLER_REVISION_HASH, POD_TEMPLATE_HASH)
_RAY = ("ray.io/", APP_NAME, APP_CREATED_BY)
_RAY_CLUSTER: GroupKind = ("ray.io", "RayCluster")
# Knative writes the revision into the label app, and owns the prefix.
_KNATIVE = ("serving.knative.dev/", "app", POD_TEMPLATE_HASH)
_CONFIGURATION: GroupKind = ("serving.knative.dev", "Configuration")


def _plain(*, strategy: str | None = None) -> Layout:
    return Layout((Site("spec.template", "spec.replicas"),), strategy=strategy)


def _training(field: str) -> Traits:
    site = Site(f"spec.{field}.*.template", "replicas")
    return Traits(layout=Layout((site,), selector=None, suspend="spec.runPolicy.suspend"), makes=(POD,))


def _ray(prefix: str, *more: Site, makes: tuple[GroupKind, ...], added: tuple[str, ...] = _RAY) -> Traits:
    head = Site(f"{prefix}.headGroupSpec.template")
    workers = Site(f"{prefix}.workerGroupSpecs[*].template", "replicas")
    return Traits(
        layout=Layout((head, workers, *more), selector=None, suspend="spec.suspend"), added=added, makes=makes
    )


KINDS: Mapping[GroupKind, Traits] = {
    POD: Traits(layout=Layout((Site(""),), selector=None), short="po", built_in=True, replicated=False),
    # Kubernetes itself does not use this kind. Its users embed a whole pod template.
    POD_TEMPLATE: Traits(
        layout=Layout((Site("template"),), selector=None, whole=False), reviewed=False, replicated=False
    ),
    REPLICATION_CONTROLLER: Traits(
        layout=_plain(),
        short="rc",
        built_in=True,
        selects=True,
        selecting=True,
        serves=True,
        surges=False,
        replaces=True,
        keeps_pods=True,
        makes=(POD,),
    ),
    DEPLOYMENT: Traits(
        layout=_plain(strategy="spec.strategy"),
        short="deploy",
        built_in=True,
        selects=True,
        in_replica_sets=True,
        revision=POD_TEMPLATE_HASH,
        added=(POD_TEMPLATE_HASH,),
        serves=True,
        rolls=True,
        surges=True,
        restarts=True,
        replaces=True,
        selector_first=True,
        makes=(REPLICA_SET,),
    ),
    STATEFUL_SET: Traits(
        layout=_plain(strategy="spec.updateStrategy"),
        short="sts",
        built_in=True,
        selects=True,
        selecting=True,
        revision=CONTROLLER_REVISION_HASH,
        added=_STATEFUL,
        serves=True,
        rolls=True,
        surges=False,
        restarts=True,
        ordered=True,
        keeps_pods=None,
        selector_first=True,
        makes=(POD,),
    ),
    DAEMON_SET: Traits(
        layout=Layout((Site("spec.template"),), strategy="spec.updateStrategy"),
        short="ds",
        built_in=True,
        selects=True,
        revision=CONTROLLER_REVISION_HASH,
        added=(CONTROLLER_REVISION_HASH, POD_TEMPLATE_GENERATION),
        replicated=False,
        on_every_node=True,
        restarts=True,
        keeps_pods=None,
        makes=(POD,),
    ),
    REPLICA_SET: Traits(
        layout=_plain(),
        short="rs",
        built_in=True,
        selects=True,
        selecting=True,
        serves=True,
        surges=False,
        replaces=True,
        keeps_pods=True,
        selector_first=True,
        makes=(POD,),
    ),
    JOB: Traits(
        layout=Layout((Site("spec.template", "spec.parallelism"),), suspend="spec.suspend"),
        built_in=True,
        revision="",
        added=_JOB,
        replicated=False,
        completes=True,
        makes=(POD,),
    ),
    CRON_JOB: Traits(
        layout=Layout(
            (Site("spec.jobTemplate.spec.template", "spec.jobTemplate.spec.parallelism"),),
            selector="spec.jobTemplate.spec.selector",
            suspend="spec.suspend",
        ),
        short="cj",
        built_in=True,
        revision="",
        added=_JOB,
        replicated=False,
        completes=True,
        makes=(JOB,),
    ),
    ("argoproj.io", "Rollout"): Traits(
        layout=Layout(
            (Site("spec.template", "spec.replicas"),),
            late_labels=(
                "spec.strategy.canary.canaryMetadata.labels",
                "spec.strategy.canary.stableMetadata.labels",
                "spec.strategy.blueGreen.activeMetadata.labels",
                "spec.strategy.blueGreen.previewMetadata.labels",
            ),
        ),
        selects=True,
        in_replica_sets=True,
        revision=ROLLOUTS_POD_TEMPLATE_HASH,
        added=(ROLLOUTS_POD_TEMPLATE_HASH,),
        serves=True,
        rolls=True,
        replaces=True,
        makes=(REPLICA_SET,),
    ),
    ("apps.kruise.io", "CloneSet"): Traits(
        layout=_plain(), selects=True, added=_KRUISE, serves=True, rolls=True, replaces=True, makes=(POD,)
    ),
    ("apps.kruise.io", "StatefulSet"): Traits(
        layout=_plain(strategy="spec.updateStrategy"),
        selects=True,
        added=(*_STATEFUL, *_KRUISE),
        serves=True,
        rolls=True,
        surges=False,
        ordered=True,
        makes=(POD,),
    ),
    ("apps.kruise.io", "DaemonSet"): Traits(
        layout=Layout((Site("spec.template"),)),
        selects=True,
        added=(*_KRUISE, POD_TEMPLATE_GENERATION),
        replicated=False,
        on_every_node=True,
        makes=(POD,),
    ),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): Traits(
        layout=Layout(
            (
                Site("spec.leaderWorkerTemplate.leaderTemplate", "spec.replicas"),
                Site("spec.leaderWorkerTemplate.workerTemplate"),
            ),
            selector=None,
        ),
        added=("leaderworkerset.sigs.k8s.io/", *_STATEFUL),
        # The leaders' pods control the workers' StatefulSets, and make nothing else.
        makes=(STATEFUL_SET,),
    ),
    ("jobset.x-k8s.io", "JobSet"): Traits(
        layout=Layout(
            (Site("spec.replicatedJobs[*].template.spec.template", "template.spec.parallelism"),),
            selector=None,
            suspend="spec.suspend",
        ),
        added=("jobset.sigs.k8s.io/", *_JOB),
        makes=(JOB,),
    ),
    _RAY_CLUSTER: _ray("spec", makes=(POD,)),
    ("ray.io", "RayJob"): _ray(
        "spec.rayClusterSpec", Site("spec.submitterPodTemplate"), added=(*_RAY, *_JOB), makes=(_RAY_CLUSTER, JOB)
    ),
    ("ray.io", "RayService"): _ray("spec.rayClusterConfig", makes=(_RAY_CLUSTER,)),
    ("kubeflow.org", "PyTorchJob"): _training("pytorchReplicaSpecs"),
    ("kubeflow.org", "TFJob"): _training("tfReplicaSpecs"),
    ("kubeflow.org", "MPIJob"): _training("mpiReplicaSpecs"),
    ("kubeflow.org", "XGBoostJob"): _training("xgbReplicaSpecs"),
    ("kubeflow.org", "PaddleJob"): _training("paddleReplicaSpecs"),
    ("kubeflow.org", "MXJob"): _training("mxReplicaSpecs"),
    ("kubeflow.org", "JAXJob"): _training("jaxReplicaSpecs"),
    ("batch.volcano.sh", "Job"): Traits(
        layout=Layout((Site("spec.tasks[*].template", "replicas"),), selector=None),
        added=("volcano.sh/",),
        replicated=False,
        makes=(POD,),
    ),
    ("serving.knative.dev", "Service"): Traits(
        layout=Layout((Site("spec.template"),), selector=None), added=_KNATIVE, makes=(_CONFIGURATION,)
    ),
    # A Service creates it.
    _CONFIGURATION: Traits(layout=Layout((Site("spec.template"),), selector=None), added=_KNATIVE, reviewed=False),
}

GROUP_LABELS: Mapping[str, tuple[str, ...]] = {
    "kubeflow.org": (
        *("training.kubeflow.org/", "group-name", OLD_JOB_NAME, "replica-type", "replica-index", "job-role"),
        *("controller-name", "pytorch-job-name", "tf-job-name", "mpi-job-name"),
    )
}
"""Labels added by all controllers of a group, also for kinds without a row."""

_UNKNOWN = Traits(layout=Layout(()))


def traits(kind: GroupKind) -> Traits:
    """Return the traits of a kind. Kinds missing from ``KINDS`` get the defaults.

    >>> traits(("apps", "Deployment")).revision
    'pod-template-hash'
    """
    return KINDS.get(kind, _UNKNOWN)


def are_removed_by_replica_sets(kind: GroupKind) -> bool:
    """Whether a ReplicaSet chooses the pods to remove when an object of this kind scales in."""
    return kind == REPLICA_SET or traits(kind).in_replica_sets


def resource_name(kind: GroupKind) -> str:
    return f"{kind[1].lower()}s"


SCALED = (DEPLOYMENT, STATEFUL_SET, REPLICA_SET)
"""Kinds with a scale subresource. The index keeps their templates."""
_SCALED_RESOURCES = {(kind[0], resource_name(kind)): kind for kind in SCALED}


def scaled_kind(group: str, resource: str) -> GroupKind | None:
    """Return the kind in `SCALED` with this resource. None if no kind has it."""
    return _SCALED_RESOURCES.get((group, resource))


def native_version(kind: GroupKind) -> str:
    """Return the API version of a built-in kind: ``apps/v1``."""
    return f"{kind[0]}/v1".removeprefix("/")


NATIVE = tuple(kind for kind, row in KINDS.items() if row.built_in)
NATIVE_GROUPS = frozenset(group for group, _ in NATIVE)
BUILT_IN_KINDS = frozenset(NATIVE)
"""Kinds with templates validated by kube-apiserver."""

TEMPLATED = frozenset(kind for kind, row in KINDS.items() if row.layout.whole)
"""Kinds known to hold whole pod templates, and Pod itself."""

SELECTING = frozenset(kind for kind, row in KINDS.items() if row.selecting)

REVISIONED: Mapping[GroupKind, str] = {
    kind: row.revision for kind, row in KINDS.items() if row.in_replica_sets and row.revision
}
"""Kinds with ReplicaSets, each with the label of the revision."""

MADE_BY: frozenset[tuple[GroupKind, GroupKind]] = frozenset(
    (made, kind) for kind, row in KINDS.items() for made in row.makes
)
"""Pairs of a created kind and its controller's kind."""

REVISION_LABELS = frozenset(row.revision for row in KINDS.values() if row.revision)
"""Labels with the revision of a template."""
