"""Find a pod's controllers, the replicas of its workload, and the selector of its pods.

Source: the controllers' own labels and annotations in k8s.io/kubernetes pkg/controller and Argo Rollouts.
"""

import msgspec
from msgspec import Struct

from webhook.core.api.types import LabelSelector, OwnerReference, PodTemplate
from webhook.core.api.well_known import CONTROLLER_UID, DESIRED_REPLICAS_ANNOTATIONS, OLD_CONTROLLER_UID
from webhook.core.index.objects import DeclaredTemplate, Owner
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.workloads.kinds import JOB, REPLICA_SET, SELECTING, GroupKind, group_kind
from webhook.core.workloads.reading import read_workload
from webhook.core.workloads.workload import Workload

_CHAIN = 4  # Enough for ReplicaSet, Deployment, an operator's resource and its parent. Also ends cycles.
_LONGEST_COUNT = 10  # The digits of a 32-bit number. Users can write more into an annotation.
# Labels that select the pods of a single Job by its uid. The second is the older spelling.
_JOB_LABELS = (CONTROLLER_UID, OLD_CONTROLLER_UID)


def reference_to(owner: Owner) -> OwnerReference:
    """The owner reference to this controller.

    Source: meta/v1/controller_ref.go ``NewControllerRef``.
    """
    return OwnerReference(
        api_version=owner.api_version, kind=owner.kind, name=owner.meta.name, uid=owner.meta.uid, controller=True
    )


def owner_json(owner: Owner, replicas: int | None = None) -> bytes | None:
    """Encode the owner's metadata and spec as JSON, with this number of replicas, else its own.

    Only fields kept by the index are included. None if the index does not keep the spec.
    """
    if not owner.spec:
        return None
    spec = {**msgspec.json.decode(owner.spec), "replicas": owner.wanted if replicas is None else replicas}
    return msgspec.json.encode({"metadata": owner.meta, "spec": spec})


def owner_workload(owner: Owner) -> Workload | None:
    """Read the owner as a workload, with the fields kept in the index. None if the index does not keep its spec."""
    written = owner_json(owner)
    return None if written is None else read_workload(written, api_version=owner.api_version, kind=owner.kind)


def topmost_workload(pod: PodTemplate, index: ReadOnlyIndex) -> Workload | None:
    """The pod's topmost controller as a workload, with the fields kept in the index.

    None if the index does not keep the controller's spec.
    """
    for reference in reversed(controllers(pod, index)):
        owner = index.owners.get(reference.api_version, reference.kind, pod.meta.namespace, reference.name)
        if owner is not None and owner.spec and owner.replicas is not None:
            return owner_workload(owner)
    return None


def has_same_template(workload: Workload, template: PodTemplate, namespace: str, index: ReadOnlyIndex) -> bool:
    """Whether the cluster has the workload with the template's labels and constraints.

    If so, its running pods and its next pod have the same revision.
    """
    owner = index.owners.get(workload.api_version, workload.kind, namespace, workload.meta.name)
    return owner is not None and owner.templates == (DeclaredTemplate(template.labels, template.pod_spec.constraints),)


class Awaited(Struct, frozen=True, kw_only=True, gc=False):
    """An object the watch has not delivered yet: the owner or the namespace of a new pod.

    ``namespace`` is empty for a Namespace.
    """

    api_version: str
    kind: str
    namespace: str
    name: str


def controllers(pod: PodTemplate, index: ReadOnlyIndex) -> list[OwnerReference]:
    """The pod's controller, the controller above it, and so on, as far as the index knows them."""
    chain: list[OwnerReference] = []
    reference = pod.meta.controller
    while reference is not None and len(chain) < _CHAIN:
        chain.append(reference)
        owner = index.owners.get(reference.api_version, reference.kind, pod.meta.namespace, reference.name)
        reference = owner.meta.controller if owner is not None else None
    return chain


def controller_kind(pod: PodTemplate) -> GroupKind | None:
    """The kind of the pod's controller. None without a controller."""
    reference = pod.meta.controller
    return None if reference is None else group_kind(reference.api_version, reference.kind)


def find_owner(
    pod: PodTemplate, namespace: str, index: ReadOnlyIndex, *, waited: bool = False
) -> Owner | Awaited | None:
    """Find the pod's controller.

    Args:
        pod: The pod.
        namespace: The pod's namespace.
        index: The cluster.
        waited: Whether to accept an earlier object with the controller's name, like the scheduler.

    Returns:
        The controller. None for a pod without controller, or if the index lacks the controller. For kinds that the
            scheduler reads, `Awaited` instead if the index lacks the controller or only has an earlier object of that
            name.
    """
    reference = pod.meta.controller
    if reference is None:
        return None
    owner = index.owners.get(reference.api_version, reference.kind, namespace, reference.name)
    missing = owner is None or (not waited and _replaced(owner, reference))
    if missing and group_kind(reference.api_version, reference.kind) in SELECTING:
        return Awaited(api_version=reference.api_version, kind=reference.kind, namespace=namespace, name=reference.name)
    return owner


def most_replicas(owner: Owner, index: ReadOnlyIndex) -> int | None:
    """Return the most pods of a workload: its autoscaler's maximum, else its replicas.

    None if unknown. The workload is the owner's controller, if the owner has one. During a rollout, a ReplicaSet has
    only some of its Deployment's pods.
    """
    namespace = owner.meta.namespace
    above = owner.meta.controller
    if above is None:
        api_version, kind, name, replicas = owner.api_version, owner.kind, owner.meta.name, owner.replicas
    else:
        api_version, kind, name = above.api_version, above.kind, above.name
        top = index.owners.get(api_version, kind, namespace, name)
        replicas = _wanted_above(owner) if top is None or _replaced(top, above) else top.replicas
    scaler = index.owners.autoscaler(api_version, kind, namespace, name)
    return replicas if scaler is None else scaler.spec.max_replicas


def owner_selector(pod: PodTemplate, owner: Owner | None) -> LabelSelector | None:
    """Return the selector of a pod's controller. None if unknown.

    The scheduler does not read this selector. A Job's selector follows from the labels of the Job's pods.

    Source: batch/job/strategy.go ``generateSelector``.
    """
    if owner is not None and owner.selector is not None and owner.selector != LabelSelector():
        return owner.selector
    reference = pod.meta.controller
    if reference is not None and reference.uid and group_kind(reference.api_version, reference.kind) == JOB:
        for label in _JOB_LABELS:
            if pod.labels.get(label) == reference.uid:
                return LabelSelector(match_labels={label: reference.uid})
    return None


def _replaced(owner: Owner, reference: OwnerReference) -> bool:
    """Whether the index still has an earlier object of the owner's name, with another uid."""
    return bool(owner.meta.uid and reference.uid and owner.meta.uid != reference.uid)


def _wanted_above(owner: Owner) -> int | None:
    """The replicas of a workload missing from the index, read from an object controlled by the workload.

    A ReplicaSet has the number in an annotation. Any other object, such as an operator's StatefulSet, has all pods of
    the workload, so its own replicas count.
    Source: deployment/util/deployment_util.go ``DesiredReplicasAnnotation``.
    """
    if group_kind(owner.api_version, owner.kind) != REPLICA_SET:
        return owner.replicas
    for key in DESIRED_REPLICAS_ANNOTATIONS:
        text = (owner.meta.annotations or {}).get(key, "")
        if text.isdecimal() and len(text) <= _LONGEST_COUNT:
            return int(text)
    return None
