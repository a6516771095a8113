"""Objects for tests: every default is valid, labels are written ``app=web tier=front``."""

from msgspec import convert
from msgspec.structs import replace

from webhook.core.api.selectors import EVERYTHING
from webhook.core.api.storage import CsiNode, StorageClass
from webhook.core.api.types import (
    Affinity,
    Container,
    LabelSelector,
    LabelSelectorRequirement,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodAffinity,
    PodSpec,
    PodStatus,
    Service,
    ServiceSpec,
    SpreadConstraint,
    Taint,
)
from webhook.core.api.version import RECORDED
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.context import Context
from webhook.core.defaulting.injection import inject
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import Autoscaler, AutoscalerSpec, DeclaredTemplate, Namespace, Owner, ScaleTarget
from webhook.core.policy.defaults import DefaultConstraint, Defaults
from webhook.core.policy.policy import Policy

NAMESPACE = "shop"
API_VERSIONS = {
    "Pod": "v1",
    "ReplicationController": "v1",
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "Rollout": "argoproj.io/v1alpha1",
    "CloneSet": "apps.kruise.io/v1alpha1",
    "RayCluster": "ray.io/v1",
    "PyTorchJob": "kubeflow.org/v1",
    **dict.fromkeys(
        ("App", "Cache", "Database", "Redis", "Thing", "Tree"), "example.com/v1"
    ),  # kinds that nobody knows
}


def labels(text):
    return dict(part.split("=", 1) for part in text.split())


def selector(text):
    """``app=web tier!=data track !old``: equality, NotIn, Exists, DoesNotExist; ``{}`` is the empty selector."""
    pairs, expressions = {}, []
    for part in text.replace("{}", "").split():
        key, sign, value = part.partition("=")
        if key.endswith("!"):
            expressions.append(LabelSelectorRequirement(key=key[:-1], operator="NotIn", values=(value,)))
        elif key.startswith("!"):
            expressions.append(LabelSelectorRequirement(key=key[1:], operator="DoesNotExist"))
        elif sign:
            pairs[key] = value
        else:
            expressions.append(LabelSelectorRequirement(key=key, operator="Exists"))
    return LabelSelector(match_labels=pairs or None, match_expressions=tuple(expressions) or None)


def reference(text, uid=""):
    """``ReplicaSet/web-7d4``: a controller."""
    kind, name = text.split("/")
    return OwnerReference(api_version=API_VERSIONS[kind], kind=kind, name=name, uid=uid, controller=True)


def meta(name, *, namespace=NAMESPACE, labelled="", owner=None, uid="", annotations=None):
    return ObjectMeta(
        name=name,
        namespace=namespace,
        labels=labels(labelled) or None,
        owner_references=(reference(owner, uid),) if owner else None,
        annotations=annotations,
    )


def constraint(key=ZONE, *, max_skew=1, when="DoNotSchedule", select=None, keys=None, **more):
    told = {} if select is None else {"label_selector": selector(select)}
    return SpreadConstraint(
        max_skew=max_skew, topology_key=key, when_unsatisfiable=when, match_label_keys=keys, **told, **more
    )


def pod(labelled="app=web", *, owner=None, uid="", annotations=None, constraints=None, **spec):
    return Pod(
        metadata=meta("web-0", labelled=labelled, owner=owner, uid=uid, annotations=annotations),
        spec=PodSpec(topology_spread_constraints=constraints, **spec),
    )


def requiring(*terms):
    """The affinity for nodes that match one of these terms."""
    return Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=terms)))


def apart(*terms):
    """The required anti-affinity with these terms."""
    return Affinity(pod_anti_affinity=PodAffinity(required=terms))


def node(name, zone=None, **more):
    own = {HOSTNAME: name} | ({} if zone is None else {ZONE: zone})
    return Node(
        metadata=ObjectMeta(
            name=name, labels=own | {key.replace("__", ".", 1).replace("__", "/"): value for key, value in more.items()}
        )
    )


def namespace(name=NAMESPACE, labelled=""):
    return Namespace(metadata=meta(name, namespace="", labelled=labelled))


def service(name, select, *, namespace=NAMESPACE):
    wanted = None if select is None else labels(select.replace("{}", ""))
    return Service(metadata=meta(name, namespace=namespace), spec=ServiceSpec(selector=wanted))


def declared(labelled, *constraints):
    """What a template says of spreading."""
    return DeclaredTemplate(labels(labelled), constraints)


def owner(text, select=None, *templates, replicas=None, above=None, above_uid="", uid="", annotations=None):
    """``ReplicaSet/web-7d4``, owned by ``above``; without ``templates`` they are not known."""
    kind, name = text.split("/")
    own = meta(name, owner=above, uid=above_uid, annotations=annotations)
    return Owner(
        api_version=API_VERSIONS[kind],
        kind=kind,
        meta=ObjectMeta(
            name=own.name,
            namespace=own.namespace,
            uid=uid,
            owner_references=own.owner_references,
            annotations=annotations,
        ),
        replicas=replicas,
        selector=None if select is None else selector(select),
        templates=templates or None,
    )


def autoscaler(target, most, least=None):
    kind, name = target.split("/")
    scaled = ScaleTarget(api_version=API_VERSIONS[kind], kind=kind, name=name)
    return Autoscaler(
        metadata=meta(name), spec=AutoscalerSpec(scale_target_ref=scaled, min_replicas=least, max_replicas=most)
    )


def filled(index, values):
    """The index with these objects."""
    for each in values:
        index.apply("ADDED", each)
    return index


def limited(spread, most, mode="WaitForFirstConsumer"):
    """The index of `cluster` with the class ``late``. Each node can attach ``most`` volumes of its driver."""
    made = cluster(spread)
    late = {"metadata": {"name": "late"}, "provisioner": "disks", "volumeBindingMode": mode}
    drivers = [{"name": "disks", "allocatable": {"count": most}}]
    nodes = ({"metadata": {"name": name}, "spec": {"drivers": drivers}} for name in made.nodes.view().names)
    return filled(made, [convert(late, StorageClass), *(convert(node, CsiNode) for node in nodes)])


def index(*values):
    return filled(ClusterIndex(), values)


def default(key=ZONE, *, hard_when=None, **fields):
    return DefaultConstraint(constraint=constraint(key, **fields), hard_when_domains=hard_when)


def policy(*defaults, mode="inject", scheduler_names=("default-scheduler",), domains=None, **more):
    settings = Defaults(mode=mode, default_constraints=defaults or (default(),), **more)
    return Policy(defaults=settings, scheduler_names=scheduler_names, domains=domains or {})


def defaulted(incoming, configured, cluster, **more):
    """What a pod of the namespace gets."""
    return inject(incoming, NAMESPACE, Context(policy=configured, version=RECORDED, index=cluster), **more)


def cluster(text, *, taint="dedicated", resources=None, labelled=""):
    """``z1: a=2 b=1 | z2: x=0 ~y=3``: zones with their nodes, and how many pods ``app=web`` run on each.

    A node with a tilde has a taint that keeps pods away; nodes before any colon have no zone; ``labelled`` are labels
    of all nodes.
    """
    index = ClusterIndex()
    for part in text.split("|"):
        zone, _, written = part.rpartition(":")
        for entry in written.split():
            name, _, pods = entry.lstrip("~").partition("=")
            taints = (Taint(key=taint, effect="NoSchedule"),) if entry.startswith("~") else None
            status = NodeStatus(allocatable=resources or ROOMY)
            index.apply(
                "ADDED",
                replace(
                    node(name, zone.strip() or None, **labels(labelled)), spec=NodeSpec(taints=taints), status=status
                ),
            )
            for number in range(int(pods or 0)):
                index.apply("ADDED", running(f"{name}-{number}", name))
    return index


ROOMY = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "100Gi"}


def terminating(name, on, labelled="app=web", **more):
    """A pod on a node that is being deleted."""
    pod = running(name, on, labelled, **more)
    return replace(pod, metadata=replace(pod.meta, deletion_timestamp="2026-01-01T00:00:00Z"))


def running(name, on, labelled="app=web", *, namespace=NAMESPACE, **more):
    """A pod on a node."""
    spec = {"containers": (Container(name="c"),)} | more
    return Pod(
        metadata=replace(meta(name, namespace=namespace, labelled=labelled), uid=f"uid-{name}"),
        spec=PodSpec(node_name=on, **spec),
        status=PodStatus(phase="Running"),
    )


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self):
        return self.now


def pod_names(index, namespace):
    """The namespace's unfinished pods: first those on nodes, then those without a node."""
    on_nodes = (name for name, _ in index.pods.matching(namespace, EVERYTHING))
    return (*on_nodes, *(pod.meta.name for pod in index.pods.waiting(namespace)))
