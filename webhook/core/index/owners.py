"""A pod's owner: its controller, how many pods of the workload there may be, and which selector selects them.

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

_CHAIN = 4  # enough for ReplicaSet, Deployment, an operator's resource and its parent; also ends cycles
_LONGEST_COUNT = 10  # digits: of a 32-bit number; anybody may write more
# Labels that select exactly one Job's pods: the value is the Job's uid. The second is the older spelling.
_JOB_LABELS = (CONTROLLER_UID, OLD_CONTROLLER_UID)


def reference_to(owner: Owner) -> OwnerReference:
    """The owner reference that objects of this controller carry.

    Source: meta/v1/controller_ref.go ``NewControllerRef``.
    """
    return OwnerReference(
        api_version=owner.api_version, kind=owner.kind, name=owner.meta.name, uid=owner.meta.uid, controller=True
    )


def owner_json(owner: Owner, replicas: int) -> bytes | None:
    """The object with so many replicas, as far as it is read; None where the index does not keep its spec."""
    if not owner.spec:
        return None
    spec = {**msgspec.json.decode(owner.spec), "replicas": replicas}
    return msgspec.json.encode({"metadata": owner.meta, "spec": spec})


def topmost_workload(pod: PodTemplate, index: ReadOnlyIndex) -> Workload | None:
    """The topmost controller of the pod as an object of its own, as far as it is read; None where that is not kept."""
    for reference in reversed(controllers(pod, index)):
        owner = index.owners.get(reference.api_version, reference.kind, pod.meta.namespace, reference.name)
        written = None if owner is None or owner.replicas is None else owner_json(owner, owner.replicas)
        if owner is not None and written is not None:
            return read_workload(written, api_version=owner.api_version, kind=owner.kind)
    return None


def has_same_template(workload: Workload, template: PodTemplate, namespace: str, index: ReadOnlyIndex) -> bool:
    """Whether the cluster has the workload with this template: the same labels and constraints.

    Then its running pods are of this revision, and its next pod is one more of them.
    """
    owner = index.owners.get(workload.api_version, workload.kind, namespace, workload.meta.name)
    return owner is not None and owner.templates == (DeclaredTemplate(template.labels, template.pod_spec.constraints),)


class Awaited(Struct, frozen=True, kw_only=True, gc=False):
    """An object the watch has not delivered yet: the owner or the namespace of a new pod.

    Its own ``namespace`` is empty for a Namespace.
    """

    api_version: str
    kind: str
    namespace: str
    name: str


def controllers(pod: PodTemplate, index: ReadOnlyIndex) -> list[OwnerReference]:
    """The pod's controller, its controller's controller, and so on, as far as the index knows them."""
    chain: list[OwnerReference] = []
    reference = pod.meta.controller
    while reference is not None and len(chain) < _CHAIN:
        chain.append(reference)
        owner = index.owners.get(reference.api_version, reference.kind, pod.meta.namespace, reference.name)
        reference = owner.meta.controller if owner is not None else None
    return chain


def controller_kind(pod: PodTemplate) -> GroupKind | None:
    """The kind of the pod's controller; None for a pod without one."""
    reference = pod.meta.controller
    return None if reference is None else group_kind(reference.api_version, reference.kind)


def find_owner(
    pod: PodTemplate, namespace: str, index: ReadOnlyIndex, *, waited: bool = False
) -> Owner | Awaited | None:
    """The object that controls the pod.

    Returns:
        Awaited if the scheduler reads its kind and the index lacks it, or has only an earlier object of that name. With
        ``waited`` the earlier object, as the scheduler takes it. None without a controller, and for an unknown one of
        another kind.
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
    """How many pods the workload may have: the maximum of its autoscaler, else its replicas; None if unknown.

    The workload is the owner's own controller where it has one: during a rollout a ReplicaSet has only some of the
    pods of its Deployment.
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
    """The selector of an owner that the scheduler does not read; that of a Job follows from its pod's labels.

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
    """Whether the object in the index is an earlier one of the same name."""
    return bool(owner.meta.uid and reference.uid and owner.meta.uid != reference.uid)


def _wanted_above(owner: Owner) -> int | None:
    """The replicas of a workload that the index lacks, by what it controls.

    A ReplicaSet has them as an annotation; any other owner (a StatefulSet of an operator) has all of the pods itself.
    Source: deployment/util/deployment_util.go ``DesiredReplicasAnnotation``.
    """
    if group_kind(owner.api_version, owner.kind) != REPLICA_SET:
        return owner.replicas
    for key in DESIRED_REPLICAS_ANNOTATIONS:
        text = (owner.meta.annotations or {}).get(key, "")
        if text.isdecimal() and len(text) <= _LONGEST_COUNT:
            return int(text)
    return None
