"""Kinds of workloads: one row a kind, with everything that follows of the kind alone.

Whatever asks "which kinds do so" asks the rows: by `traits` for one kind, by the tables below them for all. A new kind
is a row here, and its case in tests/core/workloads/test_kinds.py. A kind is told by its group and name, whatever the
version. Operators' kinds, of which only constraints and a few labels are known, are in `operators`.

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
    """The group of an API version: ``apps`` of ``apps/v1``, empty for the core group."""
    return api_version.rpartition("/")[0]


def group_kind(api_version: str, kind: str) -> GroupKind:
    """A kind without its version: owners are the same objects in every version."""
    return group_of(api_version), kind


class Traits(Struct, frozen=True, kw_only=True):
    """What follows of the kind of a workload. What is not said of a kind is what holds for an unknown one.

    Shape: ``layout`` says where its pod templates, selector and so on are; kinds that are built in are decoded as
    `built_in_objects`, and have the paths alone from it. ``short`` is kubectl's abbreviation.
    ``revision`` is the label by which its controller tells revisions of the template; "" where its pods have none,
    None where that is not known. ``added`` are labels that its pods have and its template does not; one that ends in
    "/" stands for every key with that prefix; None where they are not known.
    ``surges``: True where a rolling update makes as many pods more as its maxSurge says, False where it makes none
    more; None where the kind has ways of its own.
    """

    layout: Layout
    short: str = ""
    # kube-apiserver itself validates its templates.
    built_in: bool = False
    # Sent to the webhook; what another reviewed kind makes need not be.
    reviewed: bool = True
    # Has a selector that must match the labels of its template.
    selects: bool = False
    # kube-scheduler reads its selector for default constraints: without their owner, pods get the wrong one or none.
    selecting: bool = False
    # Its pods belong to ReplicaSets that it makes, one a revision.
    in_replica_sets: bool = False
    revision: str | None = None
    added: tuple[str, ...] | None = None
    # Makes replicas that are alike and meant to be spread; not one pod, a pod for each node, or pods that complete.
    replicated: bool = True
    # Its replicas serve until somebody deletes it.
    serves: bool = False
    # A change of its template replaces the pods step by step.
    rolls: bool = False
    surges: bool | None = None
    # ``kubectl rollout restart`` takes it.
    restarts: bool = False
    # Makes new pods for those on nodes that are gone.
    replaces: bool = False
    # Its pods have ordinals, and claims of their own.
    ordered: bool = False
    # One pod for each node.
    on_every_node: bool = False
    # Its pods complete.
    completes: bool = False
    # After a change of its template the pods that it made may stay (None), or do (True).
    keeps_pods: bool | None = False
    # kube-apiserver looks at the template only where the selector has no fault.
    selector_first: bool = False
    # What its controller makes of its templates, with an owner reference that says so.
    makes: tuple[GroupKind, ...] = ()


_STATEFUL = (POD_NAME, POD_INDEX, CONTROLLER_REVISION_HASH)
_JOB = (*JOB_LABELS, JOB_COMPLETION_INDEX, CRONJOB_SCHEDULED_TIMESTAMP)
_KRUISE = ("apps.kruise.io/", "lifecycle.apps.kruise.io/", CONTROLLER_REVISION_HASH, POD_TEMPLATE_HASH)
_RAY = ("ray.io/", APP_NAME, APP_CREATED_BY)
_RAY_CLUSTER: GroupKind = ("ray.io", "RayCluster")
# Knative names the revision in the label app, and the project owns the prefix.
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
    # Used by nothing in Kubernetes itself; who uses it has a whole pod template.
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
        # The workers' StatefulSets are controlled by the leaders' pods, which make nothing else.
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
    # Made by a Service.
    _CONFIGURATION: Traits(layout=Layout((Site("spec.template"),), selector=None), added=_KNATIVE, reviewed=False),
}

GROUP_LABELS: Mapping[str, tuple[str, ...]] = {
    "kubeflow.org": (
        *("training.kubeflow.org/", "group-name", OLD_JOB_NAME, "replica-type", "replica-index", "job-role"),
        *("controller-name", "pytorch-job-name", "tf-job-name", "mpi-job-name"),
    )
}
"""Labels that every controller of a group adds, also of a kind that has no row."""

_UNKNOWN = Traits(layout=Layout(()))


def traits(kind: GroupKind) -> Traits:
    """The traits of a kind. Kinds without a row have those of any kind."""
    return KINDS.get(kind, _UNKNOWN)


def resource_name(kind: GroupKind) -> str:
    """The name of the kind's resource in the API."""
    return f"{kind[1].lower()}s"


SCALED = (DEPLOYMENT, STATEFUL_SET, REPLICA_SET)
"""Kinds whose replicas are written as their scale, and whose templates the index keeps."""
_SCALED_RESOURCES = {(kind[0], resource_name(kind)): kind for kind in SCALED}


def scaled_kind(group: str, resource: str) -> GroupKind | None:
    """The kind whose scale is written at this resource of the API, of those in `SCALED`."""
    return _SCALED_RESOURCES.get((group, resource))


def native_version(kind: GroupKind) -> str:
    """The API version of a kind of Kubernetes itself: ``apps/v1``."""
    return f"{kind[0]}/v1".removeprefix("/")


NATIVE = tuple(kind for kind, row in KINDS.items() if row.built_in)
NATIVE_GROUPS = frozenset(group for group, _ in NATIVE)
BUILT_IN_KINDS = frozenset(NATIVE)
"""Kinds whose templates kube-apiserver validates."""

TEMPLATED = frozenset(kind for kind, row in KINDS.items() if row.layout.whole)
"""Kinds that are known to hold whole pod templates; Pod itself among them."""

SELECTING = frozenset(kind for kind, row in KINDS.items() if row.selecting)

REVISIONED: Mapping[GroupKind, str] = {
    kind: row.revision for kind, row in KINDS.items() if row.in_replica_sets and row.revision
}
"""Workloads that make ReplicaSets, and the label by which each tells its ReplicaSets apart."""

MADE_BY: frozenset[tuple[GroupKind, GroupKind]] = frozenset(
    (made, kind) for kind, row in KINDS.items() for made in row.makes
)
"""Kinds of objects that have a controller, each with the kind of that controller."""

REVISION_LABELS = frozenset(row.revision for row in KINDS.values() if row.revision)
"""By these a controller tells the revisions of its template from each other."""
