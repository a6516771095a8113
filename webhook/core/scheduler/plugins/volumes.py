"""A pod's claims, volumes and classes, copied for the volume plugins.

Source: kube-scheduler volumebinding/binder.go, nodevolumelimits/csi.go; k8s.io/component-helpers storage.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from webhook.core.api.node_selectors import compile_node_selector
from webhook.core.api.storage import Claim, CsiDriver, PersistentVolume, StorageCapacity, StorageClass
from webhook.core.api.types import Pod, Volume
from webhook.core.index import node_sets
from webhook.core.index.nodes import NodeView
from webhook.core.index.pod_extras import Mounted
from webhook.core.index.pods import Counts
from webhook.core.index.read_only import Handle, ReadOnlyIndex
from webhook.core.scheduler.plugins.node_selection import nodes_of_terms

# Optional kinds of storage drivers' objects: kind -> resource.
DRIVER_RESOURCES = {
    "CSIStorageCapacity": "csistoragecapacities",
    "VolumeAttachment": "volumeattachments",
    "CSIDriver": "csidrivers",
}


class Storage(Struct, frozen=True):
    """The claims, volumes and classes of one pod, and other pods' volumes.

    A slot is the number of a node in the index.

    Attributes:
        claims: The pod's existing claims, by name.
        volumes: The volumes of the pod's claims and of ``others``, by name.
        free: For each unbound claim of the pod, the volumes available for binding.
        classes: The storage classes of the pod's claims and of ``others``, by name.
        users: For each claim of the pod, the number of pods mounting the claim on each node slot.
        limits: The most volumes a node may attach, by node name and driver.
        mounted: Pods with volumes, by node slot.
        others: The claims of the pods in ``mounted``, by namespace and name.
        attached: Attached volumes, by node slot.
        drivers: CSIDriver objects, by name.
        installed: The nodes with the driver, as a bit set, by driver name. Only drivers with
            preventPodSchedulingIfMissing are included.
        capacities: Published capacities by storage class, for classes whose driver publishes capacities.
        unknown: Kinds missing from the index.
    """

    claims: Mapping[str, Claim] = {}
    volumes: Mapping[str, PersistentVolume] = {}
    free: Mapping[str, tuple[PersistentVolume, ...]] = {}
    classes: Mapping[str, StorageClass] = {}
    users: Mapping[str, Counts] = {}
    limits: Mapping[str, Mapping[str, int]] = {}
    mounted: Mapping[int, tuple[Mounted, ...]] = {}
    others: Mapping[tuple[str, str], Claim] = {}
    attached: Mapping[int, tuple[Handle, ...]] = {}
    drivers: Mapping[str, CsiDriver] = {}
    installed: Mapping[str, int] = {}
    capacities: Mapping[str, tuple[StorageCapacity, ...]] = {}
    unknown: tuple[str, ...] = ()


def copy_storage(pod: Pod, index: ReadOnlyIndex) -> Storage:
    """Copy the volume plugins' input for this pod. Empty for a pod without volumes.

    Source: volumebinding/binder.go ``GetPodVolumeClaims``; nodevolumelimits/csi.go ``filterAttachableVolumes``.
    """
    volumes = pod.pod_spec.volumes or ()
    if not volumes:
        return Storage()
    namespace = pod.meta.namespace
    names = {claim_name(pod.meta.name, volume) for volume in volumes} - {None}
    claims = {name: claim for name in names if name and (claim := index.volumes.claim(namespace, name)) is not None}
    limits, drivers = index.volumes.attach_limits(), index.volumes.drivers()
    near_limit = _near_limit(len(volumes), limits, index)
    # Any node may use a disk named without a claim.
    mounted = index.pods.mounting(None if any(map(is_disk, volumes)) else [*near_limit.values()])
    attached = index.volumes.attached([*near_limit])
    others = _claims_of(mounted, index)
    volumes_by_name, classes = _volumes_and_classes((*claims.values(), *others.values()), index)
    return Storage(
        claims=claims,
        volumes=volumes_by_name,
        # Only unbound claims choose a volume.
        free={name: index.volumes.candidates(claim) for name, claim in claims.items() if not claim.bound},
        classes=classes,
        users={name: index.pods.claim_users(namespace, name) for name in claims},
        limits=limits,
        mounted=mounted,
        others=others,
        attached={near_limit[node]: handles for node, handles in attached.items()},
        drivers=drivers,
        installed={
            name: _slots(index.volumes.nodes_with_driver(name), index.nodes.view())
            for name, driver in drivers.items()
            if driver.spec.prevent_pod_scheduling_if_missing
        },
        capacities={
            name: index.volumes.capacities(name)
            for name, storage_class in classes.items()
            if storage_class.provisioner in drivers and drivers[storage_class.provisioner].spec.storage_capacity
        },
        unknown=tuple(kind for kind, resource in DRIVER_RESOURCES.items() if resource in index.lacking),
    )


def copy_mounted(slots: Sequence[int], index: ReadOnlyIndex) -> Storage:
    """Copy the volumes of the pods on these nodes. Source: nodevolumelimits/csi.go ``filterAttachableVolumes``."""
    mounted = index.pods.mounting(slots)
    others = _claims_of(mounted, index)
    volumes, classes = _volumes_and_classes(others.values(), index)
    return Storage(mounted=mounted, others=others, volumes=volumes, classes=classes)


def _volumes_and_classes(
    claims: Collection[Claim], index: ReadOnlyIndex
) -> tuple[Mapping[str, PersistentVolume], Mapping[str, StorageClass]]:
    volumes = ((name, index.volumes.volume(name)) for name in {claim.spec.volume_name for claim in claims} if name)
    classes = ((name, index.volumes.storage_class(name)) for name in {claim.storage_class for claim in claims})
    return {name: volume for name, volume in volumes if volume}, {name: found for name, found in classes if found}


def _claims_of(mounted: Mapping[int, tuple[Mounted, ...]], index: ReadOnlyIndex) -> Mapping[tuple[str, str], Claim]:
    return {
        (pod.namespace, name): claim
        for pods in mounted.values()
        for pod in pods
        for volume in pod.volumes
        if (name := claim_name(pod.name, volume)) and (claim := index.volumes.claim(pod.namespace, name)) is not None
    }


def _slots(names: Iterable[str], nodes: NodeView) -> int:
    return node_sets.from_slots([nodes.slots[name] for name in names if name in nodes.slots], nodes.size)


def _near_limit(wanted: int, limits: Mapping[str, Mapping[str, int]], index: ReadOnlyIndex) -> Mapping[str, int]:
    """Return the nodes where ``wanted`` more volumes may exceed a volume limit, as slots by node name."""
    slots, mounts, attachments = index.nodes.view().slots, index.pods.mounts(), index.volumes.attachments()
    # Both are upper bounds, so the other nodes certainly have enough.
    return {
        name: slots[name]
        for name, counts in limits.items()
        if counts
        and name in slots
        and mounts.get(slots[name], 0) + attachments.get(name, 0) + wanted > min(counts.values())
    }


def claim_name(pod_name: str, volume: Volume) -> str | None:
    """Return the name of a volume's claim, if any. Source: storage/ephemeral/ephemeral.go ``VolumeClaimName``."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return None if volume.ephemeral is None else f"{pod_name}-{volume.name}"


def missing_claim(name: str) -> str:
    """Return upstream's error about a missing claim. Source: apimachinery pkg/api/errors/errors.go ``NewNotFound``."""
    return f'persistentvolumeclaim "{name}" not found'


def is_disk(volume: Volume) -> bool:
    """Whether the volume is a disk without a claim. Source: volume_restrictions.go ``needsRestrictionsCheck``."""
    return any((volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.rbd, volume.iscsi))


def reachable_from(volume: PersistentVolume, nodes: NodeView) -> int:
    """Select nodes that match the volume's node affinity. Source: storage/volume/helpers.go ``CheckNodeAffinity``."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return nodes.live
    return nodes_of_terms(nodes, compile_node_selector(affinity.required), by_labels=True)
