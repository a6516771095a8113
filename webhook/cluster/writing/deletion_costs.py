"""Read and write the annotation ``controller.kubernetes.io/pod-deletion-cost`` of pods.

Server-side apply with a field manager of its own writes the annotation alone. It never overrides another field manager:
the API server answers 409. Each write has the pod's uid, so it never creates a pod.

Source: kubernetes.io/docs/reference/using-api/server-side-apply.
"""

from collections.abc import Iterator, Mapping
from urllib.parse import quote

import msgspec
from msgspec import Struct

from webhook.cluster.connection import ApiServer
from webhook.cluster.listing import list_labelled
from webhook.core.api.types import ApiType, OwnerReference, controller_of
from webhook.core.api.well_known import DELETION_COST_ANNOTATION
from webhook.core.decoders import decoder_of
from webhook.core.pods_to_remove.running_pod import RemovalFields, RemovalMeta, RunningPod, active_pod
from webhook.core.workloads.kinds import REPLICA_SET

_COST_MANAGER = "evenspread-scale-in"
_FIELDS = ("f:metadata", "f:annotations", f"f:{DELETION_COST_ANNOTATION}")


class _ManagedFields(ApiType, frozen=True):
    manager: str = ""
    fields_v1: Mapping[str, object] | None = None


class _Meta(RemovalMeta, frozen=True):
    namespace: str = ""
    owner_references: tuple[OwnerReference, ...] | None = None
    managed_fields: tuple[_ManagedFields, ...] | None = None


class _Pod(RemovalFields, frozen=True):
    metadata: _Meta = _Meta()


class CostedPod(Struct, frozen=True):
    """A pod, and the writers of its deletion cost.

    Attributes:
        active: The facts of an active pod. None for a terminating or ended pod.
        replica_set: The uid of the pod's ReplicaSet. Empty without one.
        ours: Whether evenspread wrote the annotation, perhaps with other writers.
        foreign: Whether another field manager wrote it, also in a pod template.
    """

    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str]
    active: RunningPod | None
    replica_set: str
    ours: bool
    foreign: bool


_POD = decoder_of(_Pod)


def costed_pods(server: ApiServer, namespace: str = "", selector: str = "") -> Iterator[CostedPod]:
    """Yield the matching pods, of all namespaces without ``namespace``. Undecodable pods are left out."""
    within = f"/namespaces/{quote(namespace)}" if namespace else ""
    for page in list_labelled(server, f"/api/v1{within}/pods", selector):
        for raw in page.items or ():
            try:
                pod = _POD.decode(raw)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            yield _costed(pod)


def put_cost(server: ApiServer, pod: CostedPod, cost: int | None) -> None:
    """Write the cost, or remove ours for None.

    Raises:
        ClusterError: The API server refuses or does not answer. 409 for a pod that is gone, or another writer's cost.

    Source: apiserver pkg/endpoints/handlers/patch.go ``applyPatch``.
    """
    annotations = {} if cost is None else {"annotations": {DELETION_COST_ANNOTATION: str(cost)}}
    meta = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid, **annotations}
    path = f"/api/v1/namespaces/{quote(pod.namespace)}/pods/{quote(pod.name)}?fieldManager={_COST_MANAGER}&force=false"
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": meta}
    server.send("PATCH", path, document, media="application/apply-patch+yaml").accepted()


def _costed(pod: _Pod) -> CostedPod:
    meta = pod.metadata
    managers = {each.manager for each in meta.managed_fields or () if _has_cost(each.fields_v1)}
    present = DELETION_COST_ANNOTATION in (meta.annotations or {})
    owner = controller_of(meta.owner_references)
    return CostedPod(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        labels=meta.labels or {},
        active=active_pod(pod),
        replica_set=owner.uid if owner is not None and owner.kind == REPLICA_SET[1] else "",
        ours=_COST_MANAGER in managers,
        foreign=present and managers != {_COST_MANAGER},
    )


def _has_cost(fields: object) -> bool:
    for name in _FIELDS:
        if not isinstance(fields, dict) or name not in fields:
            return False
        fields = fields[name]
    return True
