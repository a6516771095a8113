"""The VolumeRestrictions and VolumeZone plugins, and the copy of claims and volumes that all volume plugins read.

NodeVolumeLimits and VolumeBinding are in `node_volume_limits` and `volume_binding`.

Source: kube-scheduler volumerestrictions/volume_restrictions.go, volumezone/volume_zone.go.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from webhook.core.api import gates
from webhook.core.api.selectors import compile_node_selector
from webhook.core.api.storage import (
    READ_WRITE_ONCE_POD,
    WAIT_FOR_FIRST_CONSUMER,
    Claim,
    CsiDriver,
    PersistentVolume,
    StorageCapacity,
    StorageClass,
)
from webhook.core.api.types import Pod, Volume, named_claims
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import BETA_REGION, BETA_ZONE, REGION, ZONE
from webhook.core.index import node_sets
from webhook.core.index.nodes import NodeView
from webhook.core.index.pods import Counts, Mounted
from webhook.core.index.read_only import Handle, ReadOnlyIndex
from webhook.core.scheduler.plugins.node_selection import nodes_of_terms
from webhook.core.scheduler.plugins.status import OK, PASSES, PluginResult, Status, StatusOfNodes, unresolvable, unschedulable

VOLUME_RESTRICTIONS = "VolumeRestrictions"
# What drivers say of themselves: kind -> the resource of its objects. A cluster may do without them.
DRIVER_RESOURCES = {
    "CSIStorageCapacity": "csistoragecapacities",
    "VolumeAttachment": "volumeattachments",
    "CSIDriver": "csidrivers",
}
VOLUME_ZONE = "VolumeZone"

DISK_CONFLICT = unschedulable("node(s) had no available disk")
_SAME_CLAIM_IN_USE = unschedulable(
    "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
)
_CLAIM_IN_USE = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_OTHER_ZONE = unresolvable("node(s) had no available volume zone")

_TOPOLOGY_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_GENERAL = {BETA_ZONE: ZONE, BETA_REGION: REGION}


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


def run_volume_restrictions(pod: Pod, storage: Storage, nodes: NodeView, version: KubernetesVersion) -> PluginResult:
    """The result of VolumeRestrictions. Source: volume_restrictions.go ``PreFilter``, ``Filter``."""
    exclusive = set()
    for name in named_claims(pod.pod_spec.volumes):
        claim = storage.claims.get(name)
        if claim is None:
            return PluginResult(unresolvable(missing_claim(name)))
        if READ_WRITE_ONCE_POD in (claim.spec.access_modes or ()):
            exclusive.add(name)
    disks = [volume for volume in pod.pod_spec.volumes or () if is_disk(volume)]
    # ReadWriteOncePod is about the whole cluster: one user anywhere closes every node.
    in_use = any(nodes.live >> slot & 1 for name in exclusive for slot in storage.users.get(name, ()))
    if not disks and not in_use:
        return PASSES

    def decide(asked: int) -> list[StatusOfNodes]:
        conflicting = 0
        for slot, pods in storage.mounted.items() if disks else ():
            if any(_disks_conflict(one, other) for each in pods for other in each.volumes for one in disks):
                conflicting |= 1 << slot
        # Upstream tests disks first, and says no more of a node that fails there.
        return [(DISK_CONFLICT, asked & conflicting), (claim_in_use(version), asked & ~conflicting if in_use else 0)]

    return PluginResult(OK, decide)


def claim_in_use(version: KubernetesVersion) -> Status:
    """What VolumeRestrictions says of a ReadWriteOncePod claim that another pod uses.

    Source: volume_restrictions.go ``ErrReasonReadWriteOncePodConflict``.
    """
    return _CLAIM_IN_USE if gates.CLAIM_IN_USE_REASON.holds(version) else _SAME_CLAIM_IN_USE


def is_disk(volume: Volume) -> bool:
    """Whether the volume names a disk directly that only some pods of a node can share.

    Source: volume_restrictions.go ``needsRestrictionsCheck``.
    """
    return any((volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.rbd, volume.iscsi))


def _disks_conflict(one: Volume, other: Volume) -> bool:
    """Whether two pods cannot mount these volumes on one node. Source: volume_restrictions.go ``isVolumeConflict``."""
    gce, other_gce = one.gce_persistent_disk, other.gce_persistent_disk
    if gce and other_gce and gce.pd_name == other_gce.pd_name and not (gce.read_only and other_gce.read_only):
        return True
    # Of these alone EBS has no mount that two pods share for reading.
    ebs, other_ebs = one.aws_elastic_block_store, other.aws_elastic_block_store
    if ebs and other_ebs and ebs.volume_id == other_ebs.volume_id:
        return True
    iscsi, other_iscsi = one.iscsi, other.iscsi
    if iscsi and other_iscsi and iscsi.iqn == other_iscsi.iqn and not (iscsi.read_only and other_iscsi.read_only):
        return True
    rbd, other_rbd = one.rbd, other.rbd
    if not (rbd and other_rbd):
        return False
    # An image is known by its pool and name within one Ceph cluster, and that by any of its monitors.
    same = {*(rbd.monitors or ())} & {*(other_rbd.monitors or ())} and (rbd.pool, rbd.image) == (
        other_rbd.pool,
        other_rbd.image,
    )
    return bool(same) and not (rbd.read_only and other_rbd.read_only)


def run_volume_zone(pod: Pod, storage: Storage, nodes: NodeView) -> PluginResult:
    """The result of VolumeZone. Source: volume_zone.go ``PreFilter``, ``Filter``."""
    zones: list[tuple[str, frozenset[str]]] = []
    for name in named_claims(pod.pod_spec.volumes):
        status, volume = _bound_volume(name, storage)
        if status is not None:
            return PluginResult(status)
        if volume is not None:
            zones += zone_labels(volume)
    if not zones:
        return PASSES

    def decide(asked: int) -> list[StatusOfNodes]:
        return [(_OTHER_ZONE, asked & _in_other_zones(zones, nodes))]

    return PluginResult(OK, decide)


def _in_other_zones(zones: Iterable[tuple[str, frozenset[str]]], nodes: NodeView) -> int:
    """The nodes that have some topology label, but not those of the volumes. Nodes without any label pass.

    Source: volume_zone.go ``Filter``, ``translateToGALabel``.
    """
    # Upstream passes nodes without any of these labels: so a cluster in one place needs none.
    labelled = 0
    for key in _TOPOLOGY_LABELS:
        labelled |= nodes.column(key).present
    reachable = labelled
    for key, values in zones:
        column, general = nodes.column(key), nodes.column(_GENERAL.get(key, key))
        near = 0
        for value in values:
            # A volume with a beta label also fits a node that has only its successor.
            near |= column.with_value(value) | (general.with_value(value) & ~column.present)
        reachable &= near
    return labelled & ~reachable


def _bound_volume(name: str, storage: Storage) -> tuple[Status | None, PersistentVolume | None]:
    """The volume of a claim, or the status that rejects the pod; neither if the volume is made after scheduling.

    Source: volume_zone.go ``getPVbyPod``.
    """
    claim = storage.claims.get(name)
    if not name or claim is None:
        return unresolvable(missing_claim(name) if name else "PersistentVolumeClaim had no name"), None
    if not claim.spec.volume_name:
        fault = _unbound_fault(claim.storage_class, storage)
        return (unresolvable(fault) if fault else None), None
    volume = storage.volumes.get(claim.spec.volume_name)
    if volume is None:
        return unresolvable(f'persistentvolume "{claim.spec.volume_name}" not found'), None
    return None, volume


def _unbound_fault(class_name: str, storage: Storage) -> str:
    """Why an unbound claim of this class is an error; "" if its volume is made for its first pod.

    Source: volume_zone.go ``getPVbyPod``.
    """
    if not class_name:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    storage_class = storage.classes.get(class_name)
    if storage_class is None:
        return f'storageclass.storage.k8s.io "{class_name}" not found'
    if storage_class.volume_binding_mode is None:
        return f'VolumeBindingMode not set for StorageClass "{class_name}"'
    return "" if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else "PersistentVolume had no name"


def zone_labels(volume: PersistentVolume) -> list[tuple[str, frozenset[str]]]:
    """A volume's topology labels, each with its values, which ``__`` separates; one with an empty value is ignored.

    Source: volume_zone.go ``getPVTopologies``.
    """
    zones = []
    for key in _TOPOLOGY_LABELS:
        value = (volume.meta.labels or {}).get(key)
        if value is not None:
            values = frozenset(each.strip() for each in value.split("__"))
            if "" not in values:
                zones.append((key, values))
    return zones


def reachable_from(volume: PersistentVolume, nodes: NodeView) -> int:
    """The nodes that the volume's node affinity selects. Source: storage/volume/helpers.go ``CheckNodeAffinity``."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return nodes.live
    return nodes_of_terms(nodes, compile_node_selector(affinity.required), by_labels=True)


def usable_from(volume: PersistentVolume, nodes: NodeView) -> int:
    """The nodes where a pod can use the volume, by its node affinity and its topology labels.

    Source: volume_binding.go ``Filter``; volume_zone.go ``Filter``.
    """
    reached, zones = reachable_from(volume, nodes), zone_labels(volume)
    return reached & ~_in_other_zones(zones, nodes) if zones else reached
