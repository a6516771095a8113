"""The NodeVolumeLimits plugin: limits the volumes of each CSI driver on a node.

On nodes with a CSINode, an in-tree plugin's volume counts for the CSI driver that replaces the plugin. Attached volumes
count with or without a pod. A driver may require its own installation on the node.

Source: kube-scheduler nodevolumelimits/csi.go; k8s.io/csi-translation-lib plugins.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from webhook.core.api import gates
from webhook.core.api.storage import Claim, PersistentVolume, PersistentVolumeSpec, StorageClass
from webhook.core.api.types import Pod, Volume
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import (
    AWS_EBS,
    AZURE_DISK,
    AZURE_FILE,
    BETA_ZONE,
    CINDER,
    GCE_PD,
    PORTWORX,
    VSPHERE,
    ZONE,
)
from webhook.core.budget import check_time
from webhook.core.index import node_sets
from webhook.core.index.nodes import NodeView
from webhook.core.index.read_only import Handle, ReadOnlyIndex
from webhook.core.scheduler.plugins.status import (
    OK,
    PASSES,
    PluginResult,
    Status,
    StatusOfNodes,
    unresolvable,
    unschedulable,
)
from webhook.core.scheduler.plugins.volumes import Storage, claim_name, copy_mounted, missing_claim

NODE_VOLUME_LIMITS = "NodeVolumeLimits"
NO_DRIVER = "CSI driver is not installed on the node"  # after the name of the driver
TOO_MANY_VOLUMES = unschedulable("node(s) exceed max volume count")

# In-tree plugin -> the CSI driver in its place.
_MIGRATED = {
    AWS_EBS: "ebs.csi.aws.com",
    AZURE_DISK: "disk.csi.azure.com",
    CINDER: "cinder.csi.openstack.org",
    GCE_PD: "pd.csi.storage.gke.io",
    PORTWORX: "pxd.portworx.com",
}
# csi-translation-lib can translate these plugins, but NodeVolumeLimits does not treat them as migrated.
_NOT_COUNTED = frozenset({AZURE_FILE, VSPHERE})
_EBS_ID = re.compile(r"aws://[^/]*/+(vol-[^/]*)/*", re.ASCII)

_REJECTS = -(2**31)  # far below zero, because the volumes of leaving pods are added to it
_AT_ONCE = 100  # nodes; with ten pods with volumes each, they take about 10 ms between two checks of the time

_Attached = dict[tuple[str, str], None]  # (driver, volume handle), in the order found


class _LookupError(Exception):
    """Volumes that cannot be counted. ``status`` is the plugin's result."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.reasons[0])
        self.status = status


def run_node_volume_limits(pod: Pod, storage: Storage, nodes: NodeView, version: KubernetesVersion) -> PluginResult:
    """Run NodeVolumeLimits. Source: csi.go ``PreFilter``, ``Filter``."""
    volumes = pod.pod_spec.volumes or ()
    if not any(claim_name("", volume) is not None or _in_tree(volume) is not None for volume in volumes):
        return PASSES

    def reject(candidates: int) -> list[StatusOfNodes]:
        slots = [nodes.slots[name] for name in storage.limits if name in nodes.slots]
        described = node_sets.from_slots(slots, nodes.size)
        failed: list[StatusOfNodes] = []
        # A node without a CSINode has no limits and replaces no in-tree plugin. But upstream looks up claims for it,
        # and may fail.
        for part, migrates in ((candidates & ~described, False), (candidates & described, True)):
            if part:
                try:
                    wanted = _attachable(pod, storage, migrates=migrates)
                except _LookupError as error:
                    failed.append((error.status, part))
                else:
                    left = part
                    for status, without in _without_driver(wanted, storage, part, version):
                        failed.append((status, without))
                        left &= ~without
                    failed += _beyond_limits(wanted, storage, nodes, left) if migrates and wanted else []
        return failed

    return PluginResult(OK, reject)


def drivers_of_own_volumes(pod: Pod, storage: Storage) -> tuple[str, ...]:
    """Return the CSI driver of each ephemeral volume of a pod, except volumes without attach limits.

    Source: csi.go ``filterAttachableVolumes``.
    """
    attached: _Attached = {}
    for volume in pod.pod_spec.volumes or ():
        claim = storage.claims.get(claim_name(pod.meta.name, volume) or "") if volume.ephemeral is not None else None
        if claim is not None:
            _count_claim(claim, storage, attached, migrates=True)
    return tuple(driver for driver, _ in attached)


def free_attachments(driver: str, wanted: int, index: ReadOnlyIndex) -> dict[int, int]:
    """Return how many more volumes of a CSI driver each node can attach, by node slot. It can be negative.

    Nodes without a limit, and nodes with enough for ``wanted`` more volumes, are missing. Volumes attached without a
    pod do not count, because they are soon detached.

    Source: csi.go ``Filter``.
    """
    slots, mounts = index.nodes.view().slots, index.pods.mounts()
    limits = {
        slot: limit
        for node, by_driver in index.volumes.attach_limits().items()
        if (limit := by_driver.get(driver)) is not None
        and (slot := slots.get(node)) is not None
        and limit - mounts.get(slot, 0) < wanted
    }
    free, near = dict[int, int](), [*limits]
    for start in range(0, len(near), _AT_ONCE):
        check_time()
        some = near[start : start + _AT_ONCE]
        storage = copy_mounted(some, index)
        for slot in some:
            try:
                free[slot] = limits[slot] - sum(name == driver for name, _ in _attached(slot, storage))
            except _LookupError:
                free[slot] = _REJECTS
    return {slot: left for slot, left in free.items() if left < wanted}


def _without_driver(
    wanted: _Attached, storage: Storage, candidates: int, version: KubernetesVersion
) -> Iterator[StatusOfNodes]:
    """Yield the nodes that lack a required driver of the volumes.

    Source: csi.go ``checkCSIDriverOnNode``; if several drivers are missing, upstream names any of them.
    """
    if not gates.NEEDS_THE_DRIVER.holds(version):
        return
    for driver in dict.fromkeys(driver for driver, _ in wanted):
        missing = candidates & ~storage.installed.get(driver, candidates)
        yield unschedulable(f"{driver} {NO_DRIVER}"), missing
        candidates &= ~missing


def _beyond_limits(wanted: _Attached, storage: Storage, nodes: NodeView, candidates: int) -> Iterable[StatusOfNodes]:
    """Return the nodes with too many volumes, and the nodes with uncountable volumes. Source: csi.go ``Filter``."""
    full, members = 0, node_sets.flags(candidates, nodes.size)
    for name, limits in storage.limits.items():
        slot = nodes.slots.get(name, -1)
        if slot < 0 or not members[slot] or not limits:
            continue
        # The copy leaves out nodes below every limit even with these volumes.
        if slot not in storage.mounted and slot not in storage.attached and len(wanted) <= min(limits.values()):
            continue
        try:
            attached = _attached(slot, storage)
        except _LookupError as error:
            yield error.status, 1 << slot
            continue
        if _exceeds(wanted, attached, storage.attached.get(slot, ()), limits):
            full |= 1 << slot
    yield TOO_MANY_VOLUMES, full


def _exceeds(wanted: _Attached, attached: _Attached, besides: Iterable[Handle], limits: Mapping[str, int]) -> bool:
    """Whether the wanted volumes exceed a limit together with mounted and attached volumes.

    Source: csi.go ``Filter``.
    """
    present = Counter(driver for driver, _ in attached.keys() | {*besides})
    # A volume mounted by another pod of the node needs no second attachment.
    new = Counter(driver for driver, handle in wanted if (driver, handle) not in attached)
    return any(driver in limits and present[driver] + count > limits[driver] for driver, count in new.items())


def _attachable(pod: Pod, storage: Storage, *, migrates: bool) -> _Attached:
    """List the incoming pod's volumes to attach. Source: csi.go ``filterAttachableVolumes``."""
    attached: _Attached = {}
    meta = pod.meta
    for volume in pod.pod_spec.volumes or ():
        name = claim_name(meta.name, volume)
        if name is None:
            _count_inline(volume, attached, migrates=migrates)
            continue
        if not name:
            raise _LookupError(Status.of_error("PersistentVolumeClaim had no name"))
        claim = storage.claims.get(name)
        if claim is None:
            raise _LookupError(unresolvable(f"looking up PVC {meta.namespace}/{name}: {missing_claim(name)}"))
        _check_owner(volume, claim, meta.namespace, meta.name, meta.uid)
        _count_claim(claim, storage, attached, migrates=migrates)
    return attached


def _attached(slot: int, storage: Storage) -> _Attached:
    """Return the volumes attached for the pods on a node. Volumes of deleted claims do not count.

    Source: csi.go ``filterAttachableVolumes``, ``getNodeVolumeAttachmentInfo``.
    """
    attached: _Attached = {}
    for pod in storage.mounted.get(slot, ()):
        for volume in pod.volumes:
            name = claim_name(pod.name, volume)
            if name is None:
                _count_inline(volume, attached, migrates=True)
                continue
            if not name:
                raise _LookupError(Status.of_error("PersistentVolumeClaim had no name"))
            claim = storage.others.get((pod.namespace, name))
            # Unlike the incoming pod's claims, upstream skips missing claims here.
            if claim is not None:
                _check_owner(volume, claim, pod.namespace, pod.name, pod.uid)
                _count_claim(claim, storage, attached, migrates=True)
    return attached


def owner_fault(claim: Claim, namespace: str, name: str, uid: str) -> str:
    """Return the error about the owner of an ephemeral claim. Empty without an error.

    Source: storage/ephemeral/ephemeral.go ``VolumeIsForPod``.
    """
    controller = claim.meta.controller
    if claim.meta.namespace == namespace and controller is not None and controller.uid == uid:
        return ""
    claimed = f"{claim.meta.namespace}/{claim.meta.name}"
    return f"PVC {claimed} was not created for pod {namespace}/{name} (pod is not owner)"


def _check_owner(volume: Volume, claim: Claim, namespace: str, name: str, uid: str) -> None:
    """Source: csi.go ``filterAttachableVolumes``."""
    if volume.persistent_volume_claim is None:
        fault = owner_fault(claim, namespace, name, uid)
        if fault:
            raise _LookupError(Status.of_error(fault))


def _count_inline(volume: Volume, attached: _Attached, *, migrates: bool) -> None:
    """Source: csi.go ``checkAttachableInlineVolume``."""
    source = _in_tree(volume)
    if source is not None and migrates:
        plugin, handle = source
        fault = _fault(volume, handle)
        if fault:
            raise _LookupError(Status.of_error(f"converting volume({volume.name}) from inline to csi: {fault}"))
        if plugin == GCE_PD:
            # An inline volume has no project and zone. csi-translation-lib writes UNSPECIFIED for both.
            handle = f"projects/UNSPECIFIED/zones/UNSPECIFIED/disks/{handle}"
        attached[_MIGRATED[plugin], handle] = None


def _fault(source: Volume | PersistentVolumeSpec, handle: str) -> str:
    """Return why an in-tree volume cannot be converted to CSI. Empty if it can.

    Source: plugins/azure_disk.go ``isManagedDisk``; plugins/aws_ebs.go ``KubernetesVolumeIDToEBSVolumeID``.
    """
    disk, block_store = source.azure_disk, source.aws_elastic_block_store
    if disk is not None and disk.kind is not None and disk.kind.lower() != "managed":
        return f"kind({disk.kind}) is not supported in csi migration"
    if block_store is not None and not handle:
        return (
            "failed to translate Kubernetes ID to EBS Volume ID "
            f"Invalid format for AWS volume ({block_store.volume_id})"
        )
    return ""


def _count_claim(claim: Claim, storage: Storage, attached: _Attached, *, migrates: bool) -> None:
    """Source: csi.go ``getCSIDriverInfo``."""
    volume = storage.volumes.get(claim.spec.volume_name or "")
    if volume is None:
        driver = driver_of_class(storage.classes.get(claim.storage_class), migrates=migrates)
        # Upstream generates a random handle here. The claim's name is also unique.
        handle = f"{claim.meta.namespace}/{claim.meta.name}"
    else:
        driver, handle = driver_of_volume(volume, migrates=migrates)
    if driver and handle:
        attached[driver, handle] = None


def driver_of_class(storage_class: StorageClass | None, *, migrates: bool) -> str:
    """Return the CSI driver of a class's new volumes. Empty if they count for no limit.

    With ``migrates``, an in-tree provisioner's volumes count for the CSI driver that replaces the provisioner.
    Source: csi.go ``getCSIDriverInfoFromSC``.
    """
    provisioner = storage_class.provisioner if storage_class else ""
    if provisioner in _NOT_COUNTED:
        return ""
    if provisioner in _MIGRATED:
        return _MIGRATED[provisioner] if migrates else ""
    return provisioner


def driver_of_volume(volume: PersistentVolume, *, migrates: bool) -> tuple[str, str]:
    """Return a volume's CSI driver and handle. Empty for a volume that counts for no limit.

    For ``migrates``, see `driver_of_class`. Source: csi.go ``getCSIDriverInfo``.
    """
    csi = volume.spec.csi
    if csi is not None:
        return csi.driver, csi.volume_handle
    source = _in_tree(volume.spec)
    # Upstream logs an untranslatable volume and does not count it.
    if source is None or not migrates or _fault(volume.spec, source[1]):
        return "", ""
    plugin, handle = source
    if plugin == GCE_PD:
        labels = volume.meta.labels or {}
        zone = labels.get(BETA_ZONE) or labels.get(ZONE)
        handle = f"projects/UNSPECIFIED/zones/{zone or 'UNSPECIFIED'}/disks/{handle}"
    return _MIGRATED[plugin], handle


def _in_tree(source: Volume | PersistentVolumeSpec) -> tuple[str, str] | None:
    """Return a volume's in-tree plugin and handle. None for other volumes.

    Source: csi-translation-lib translate.go ``GetInTreePluginNameFromSpec``.
    """
    if source.aws_elastic_block_store is not None:
        written = source.aws_elastic_block_store.volume_id
        match = _EBS_ID.fullmatch(written)
        return AWS_EBS, match[1] if match else "" if written.startswith("aws://") else written
    if source.gce_persistent_disk is not None:
        return GCE_PD, source.gce_persistent_disk.pd_name
    if source.azure_disk is not None:
        return AZURE_DISK, source.azure_disk.disk_uri
    if source.cinder is not None:
        return CINDER, source.cinder.volume_id
    if source.portworx_volume is not None:
        return PORTWORX, source.portworx_volume.volume_id
    return None
