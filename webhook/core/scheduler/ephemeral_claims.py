"""The claims of a new pod's ephemeral volumes.

kube-controller-manager creates these claims after it sees the pod, and the scheduler waits for them. So a new pod is
judged as if its claims existed.

Source: pkg/controller/volume/ephemeral/controller.go; plugin/pkg/admission/storage/storageclass/setdefault/admission.go
"""

from collections.abc import Iterator

from msgspec.structs import replace

from webhook.core.api.storage import Claim, PersistentVolume
from webhook.core.api.types import ObjectMeta, OwnerReference, Pod
from webhook.core.api.well_known import BETA_STORAGE_CLASS, BIND_COMPLETED
from webhook.core.index.overlay import with_claims
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.scheduler.plugins.volume_binding import waits_for_pod
from webhook.core.scheduler.plugins.volumes import claim_name

_POD = "Pod"
# A volume for claims that do not wait for their pod. Any node may use it, and it counts for no limit.
UNKNOWN_VOLUME = PersistentVolume(metadata=ObjectMeta(name="not-yet-known"))


def with_ephemeral_claims(index: ReadOnlyIndex, pod: Pod) -> ReadOnlyIndex:
    """Add the claims of a new pod's ephemeral volumes to the index. A pod with a uid exists, so nothing is added.

    A claim is bound if its storage class does not wait for the pod. Its volume is unknown, so it restricts no node.

    Source: volumebinding/binder.go ``GetPodVolumeClaims``.
    """
    if pod.meta.uid or not pod.pod_spec.volumes:
        return index
    classes = index.volumes.storage_class
    claims = [
        claim if waits_for_pod(claim, classes(claim.storage_class)) else _bound(claim)
        for claim in _missing_claims(pod, index)
    ]
    return with_claims(index, claims, UNKNOWN_VOLUME) if claims else index


def _missing_claims(pod: Pod, index: ReadOnlyIndex) -> Iterator[Claim]:
    """Yield the claims to be created for a new pod's ephemeral volumes.

    A claim with the same name stays, unless it belongs to an earlier pod with the name of this pod.

    Source: pkg/controller/volume/ephemeral/controller.go ``handleVolume``.
    """
    meta = pod.meta
    owner = OwnerReference(api_version="v1", kind=_POD, name=meta.name, controller=True)
    for volume in pod.pod_spec.volumes or ():
        template = volume.ephemeral.volume_claim_template if volume.ephemeral is not None else None
        if template is None or volume.persistent_volume_claim is not None:
            continue
        name = claim_name(meta.name, volume) or ""
        existing = index.volumes.claim(meta.namespace, name)
        above = existing.meta.controller if existing is not None else None
        if existing is None or (above is not None and (above.kind, above.name) == (_POD, meta.name)):
            made = ObjectMeta(
                name=name,
                namespace=meta.namespace,
                annotations=template.metadata.annotations if template.metadata is not None else None,
                owner_references=(owner,),
            )
            yield _with_class(Claim(metadata=made, spec=template.spec), index)


def _with_class(claim: Claim, index: ReadOnlyIndex) -> Claim:
    """Add the default class to a claim without a class. Source: setdefault/admission.go ``Admit``."""
    default = index.volumes.default_class()
    if default is None or claim.spec.storage_class_name is not None or BETA_STORAGE_CLASS in claim.annotations:
        return claim
    return replace(claim, spec=replace(claim.spec, storage_class_name=default.meta.name))


def _bound(claim: Claim) -> Claim:
    annotations = {**claim.annotations, BIND_COMPLETED: "yes"}
    spec = replace(claim.spec, volume_name=UNKNOWN_VOLUME.meta.name)
    return replace(claim, metadata=replace(claim.meta, annotations=annotations), spec=spec)
