"""Who makes a pod and its siblings: the controller of a pod, how many pods there may be, which labels select them.

Source: the controllers' own labels and annotations in k8s.io/kubernetes pkg/controller and Argo Rollouts.
"""

from msgspec import Struct

from webhook.core.api.types import LabelSelector, OwnerReference, PodTemplate
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import DESIRED_REPLICAS_ANNOTATIONS, Owner
from webhook.core.workloads.kinds import JOB, REPLICA_SET, SELECTING, GroupKind, group_kind

_CHAIN = 4  # Pod, StatefulSet, an operator's resource, and what made that: longer chains say nothing more
# Labels that select exactly one Job's pods: the value is the Job's uid. The second is the older spelling.
_JOB_LABELS = ("batch.kubernetes.io/controller-uid", "controller-uid")


def reference_to(owner: Owner) -> OwnerReference:
    """How what this owner controls names it."""
    return OwnerReference(
        api_version=owner.api_version, kind=owner.kind, name=owner.meta.name, uid=owner.meta.uid, controller=True
    )


class Awaited(Struct, frozen=True, kw_only=True, gc=False):
    """What the pod arrived before, its owner or its namespace: worth asking again in a moment.

    Shape: ``namespace`` is empty where a Namespace is awaited.
    """

    api_version: str
    kind: str
    namespace: str
    name: str


def controllers(pod: PodTemplate, index: ClusterIndex) -> list[OwnerReference]:
    """Who controls the pod, who controls that, and so on, as far as it is known."""
    found: list[OwnerReference] = []
    reference = pod.meta.controller
    while reference is not None and len(found) < _CHAIN:
        found.append(reference)
        owner = index.owner(reference.api_version, reference.kind, pod.meta.namespace, reference.name)
        reference = owner.meta.controller if owner is not None else None
    return found


def controller_kind(pod: PodTemplate) -> GroupKind | None:
    """The kind of the pod's controller; None for a pod that stands alone."""
    reference = pod.meta.controller
    return None if reference is None else group_kind(reference.api_version, reference.kind)


def find_owner(
    pod: PodTemplate, namespace: str, index: ClusterIndex, *, waited: bool = False
) -> Owner | Awaited | None:
    """The pod's controller.

    Shape: Awaited where the scheduler would read it and it is not known, or only an earlier object of that name
    is; ``waited`` takes that one too, as the scheduler does. None for a pod without a controller, and for an unknown
    controller of another kind.
    """
    reference = pod.meta.controller
    if reference is None:
        return None
    owner = index.owner(reference.api_version, reference.kind, namespace, reference.name)
    missing = owner is None or (not waited and _replaced(owner, reference))
    if missing and group_kind(reference.api_version, reference.kind) in SELECTING:
        return Awaited(api_version=reference.api_version, kind=reference.kind, namespace=namespace, name=reference.name)
    return owner


def most_replicas(owner: Owner, index: ClusterIndex) -> int | None:
    """How many pods there may be of the workload at the top: its autoscaler's maximum, else its replicas.

    Shape: None where nobody knows. A ReplicaSet alone says little: in a rollout it holds a part of the pods.
    """
    namespace = owner.meta.namespace
    above = owner.meta.controller
    if above is None:
        api_version, kind, name, replicas = owner.api_version, owner.kind, owner.meta.name, owner.replicas
    else:
        api_version, kind, name = above.api_version, above.kind, above.name
        top = index.owner(api_version, kind, namespace, name)
        replicas = _wanted_above(owner) if top is None or _replaced(top, above) else top.replicas
    scaler = index.autoscaler(api_version, kind, namespace, name)
    return replicas if scaler is None else scaler.spec.max_replicas


def own_selector(pod: PodTemplate, owner: Owner | None) -> LabelSelector | None:
    """The immutable selector of an owner that the scheduler does not read; a Job's can be told from its pod."""
    if owner is not None and owner.selector is not None and owner.selector != LabelSelector():
        return owner.selector
    reference = pod.meta.controller
    if reference is not None and reference.uid and group_kind(reference.api_version, reference.kind) == JOB:
        for label in _JOB_LABELS:
            if pod.labels.get(label) == reference.uid:
                return LabelSelector(match_labels={label: reference.uid})
    return None


def _replaced(owner: Owner, reference: OwnerReference) -> bool:
    """Whether what is known is an earlier object of that name."""
    return bool(owner.meta.uid and reference.uid and owner.meta.uid != reference.uid)


def _wanted_above(owner: Owner) -> int | None:
    """What the unknown workload above wants.

    A ReplicaSet carries it as an annotation; any other owner (a StatefulSet below an operator) is itself the whole.
    """
    if group_kind(owner.api_version, owner.kind) != REPLICA_SET:
        return owner.replicas
    for key in DESIRED_REPLICAS_ANNOTATIONS:
        text = (owner.meta.annotations or {}).get(key, "")
        if text.isdecimal():
            return int(text)
    return None
