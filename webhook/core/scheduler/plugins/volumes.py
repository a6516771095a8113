"""The claims, volumes and classes of one pod, copied from the index for the volume plugins.

Source: kube-scheduler volumebinding/binder.go, nodevolumelimits/csi.go; k8s.io/component-helpers storage.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from webhook.core.api.selectors import compile_node_selector
from webhook.core.api.storage import Claim, CsiDriver, PersistentVolume, StorageCapacity, StorageClass
from webhook.core.api.types import Pod, Volume
from webhook.core.index import node_sets
from webhook.core.index.nodes import NodeView
from webhook.core.index.pods import Counts, Mounted
from webhook.core.index.read_only import Handle, ReadOnlyIndex
from webhook.core.scheduler.plugins.node_selection import nodes_of_terms

# What drivers say of themselves: kind -> the resource of its objects. A cluster may do without them.
DRIVER_RESOURCES = {
    "CSIStorageCapacity": "csistoragecapacities",
    "VolumeAttachment": "volumeattachments",
    "CSIDriver": "csidrivers",
}


class Storage(Struct, frozen=True):
    """The claims, volumes and classes that matter to one pod.

    Shape: ``claims`` are the pod's, by name, as far as they exist; ``volumes`` by name; ``free`` has the volumes that
    each unbound claim may bind; ``users`` the pods that mount each claim, by slot; ``limits`` the most volumes by node
    and driver; ``mounted`` the pods with volumes by slot, where they can matter; ``others`` the claims of those pods;
    ``attached`` the volumes that are attached, where they can matter. ``drivers`` are those that say something of
    themselves; of those ``installed`` has the nodes, where a node without them is none for the pod. ``capacities`` are
    by class, for classes whose driver publishes them. ``unknown`` are kinds of which nothing is known.
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
    """Copy everything that the volume plugins need for this pod; nothing for a pod without volumes.

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
    # A disk that is named without a claim may be in use on any node.
    mounted = index.pods.mounting(None if any(map(is_disk, volumes)) else [*near_limit.values()])
    attached = index.volumes.attached([*near_limit])
    others = {
        (each.namespace, name): claim
        for pods in mounted.values()
        for each in pods
        for volume in each.volumes
        if (name := claim_name(each.name, volume)) and (claim := index.volumes.claim(each.namespace, name)) is not None
    }
    everyone = (*claims.values(), *others.values())
    named = {claim.spec.volume_name for claim in everyone if claim.spec.volume_name}
    classes = {
        name: storage_class
        for name in {claim.storage_class for claim in everyone}
        if (storage_class := index.volumes.storage_class(name)) is not None
    }
    return Storage(
        claims=claims,
        volumes={name: volume for name in named if (volume := index.volumes.volume(name)) is not None},
        # Only an unbound claim still chooses a volume.
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


def _slots(names: Iterable[str], nodes: NodeView) -> int:
    return node_sets.from_slots([nodes.slots[name] for name in names if name in nodes.slots], nodes.size)


def _near_limit(wanted: int, limits: Mapping[str, Mapping[str, int]], index: ReadOnlyIndex) -> Mapping[str, int]:
    """The nodes, with their slots, that so many volumes more may bring beyond a limit."""
    slots, mounts, attachments = index.nodes.view().slots, index.pods.mounts(), index.volumes.attachments()
    # Both are upper bounds, so whoever is left out has room for certain.
    return {
        name: slots[name]
        for name, counts in limits.items()
        if counts
        and name in slots
        and mounts.get(slots[name], 0) + attachments.get(name, 0) + wanted > min(counts.values())
    }


def claim_name(pod_name: str, volume: Volume) -> str | None:
    """The claim that a volume uses; None for volumes without one.

    Source: storage/ephemeral/ephemeral.go ``VolumeClaimName``.
    """
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return None if volume.ephemeral is None else f"{pod_name}-{volume.name}"


def missing_claim(name: str) -> str:
    """The API server's message about a claim that does not exist.

    Source: apimachinery pkg/api/errors/errors.go ``NewNotFound``.
    """
    return f'persistentvolumeclaim "{name}" not found'


def is_disk(volume: Volume) -> bool:
    """Whether the volume names a disk directly that only some pods of a node can share.

    Source: volume_restrictions.go ``needsRestrictionsCheck``.
    """
    return any((volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.rbd, volume.iscsi))


def reachable_from(volume: PersistentVolume, nodes: NodeView) -> int:
    """The nodes that the volume's node affinity selects. Source: storage/volume/helpers.go ``CheckNodeAffinity``."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return nodes.live
    return nodes_of_terms(nodes, compile_node_selector(affinity.required), by_labels=True)
