"""The NodeVolumeLimits plugin: the most volumes that each CSI driver attaches to a node.

On nodes with a CSINode, a volume of an in-tree plugin counts for the CSI driver that replaces the plugin. Volumes that
are attached count whether or not a pod uses them, and a driver may ask for nodes on which it is installed.

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
from webhook.core.index import node_sets
from webhook.core.index.nodes import NodeView
from webhook.core.index.read_only import Handle
from webhook.core.scheduler.plugins.status import (
    OK,
    PASSES,
    PluginResult,
    Status,
    StatusOfNodes,
    failure,
    unresolvable,
    unschedulable,
)
from webhook.core.scheduler.plugins.volumes import Storage, claim_name, missing_claim

NODE_VOLUME_LIMITS = "NodeVolumeLimits"
NO_DRIVER = "CSI driver is not installed on the node"  # after the name of the driver
TOO_MANY_VOLUMES = unschedulable("node(s) exceed max volume count")

# In-tree plugin -> the CSI driver that replaces it.
_MIGRATED = {
    AWS_EBS: "ebs.csi.aws.com",
    AZURE_DISK: "disk.csi.azure.com",
    CINDER: "cinder.csi.openstack.org",
    GCE_PD: "pd.csi.storage.gke.io",
    PORTWORX: "pxd.portworx.com",
}
# Plugins that csi-translation-lib can translate, but that NodeVolumeLimits does not treat as migrated.
_NOT_COUNTED = frozenset({AZURE_FILE, VSPHERE})
_EBS_ID = re.compile(r"aws://[^/]*/+(vol-[^/]*)/*", re.ASCII)

_Attached = dict[tuple[str, str], None]  # (driver, volume handle), in the order found


class _LookupError(Exception):
    """Volumes cannot be counted; ``status`` is what the plugin then answers."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.reasons[0])
        self.status = status


def run_node_volume_limits(pod: Pod, storage: Storage, nodes: NodeView, version: KubernetesVersion) -> PluginResult:
    """The plugin's result. Source: csi.go ``PreFilter``, ``Filter``."""
    volumes = pod.pod_spec.volumes or ()
    if not any(claim_name("", volume) is not None or _in_tree(volume) is not None for volume in volumes):
        return PASSES

    def decide(asked: int) -> list[StatusOfNodes]:
        slots = [nodes.slots[name] for name in storage.limits if name in nodes.slots]
        described = node_sets.from_slots(slots, nodes.size)
        failed: list[StatusOfNodes] = []
        # Without a CSINode a node has no limits and replaces no in-tree plugin; but claims are looked up there as well,
        # and may fail.
        for part, migrates in ((asked & ~described, False), (asked & described, True)):
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

    return PluginResult(OK, decide)


def _without_driver(
    wanted: _Attached, storage: Storage, asked: int, version: KubernetesVersion
) -> Iterator[StatusOfNodes]:
    """The nodes on which a driver of the volumes is not installed, if it insists on that.

    Source: csi.go ``checkCSIDriverOnNode``; of several such drivers upstream names any.
    """
    if not gates.NEEDS_THE_DRIVER.holds(version):
        return
    for driver in dict.fromkeys(driver for driver, _ in wanted):
        missing = asked & ~storage.installed.get(driver, asked)
        yield unschedulable(f"{driver} {NO_DRIVER}"), missing
        asked &= ~missing


def _beyond_limits(wanted: _Attached, storage: Storage, nodes: NodeView, asked: int) -> Iterable[StatusOfNodes]:
    """The nodes with too many volumes, and those on which they cannot be counted. Source: csi.go ``Filter``."""
    full, members = 0, node_sets.flags(asked, nodes.size)
    for name, limits in storage.limits.items():
        slot = nodes.slots.get(name, -1)
        if slot < 0 or not members[slot] or not limits:
            continue
        # The copy has nothing of such a node because its volumes and these together reach no limit.
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
    """Whether volumes that pods use, those that are attached ``besides``, and the wanted ones are too many.

    Source: csi.go ``Filter``.
    """
    present = Counter(driver for driver, _ in attached.keys() | {*besides})
    # A volume that another pod of the node has mounted needs no second attachment.
    new = Counter(driver for driver, handle in wanted if (driver, handle) not in attached)
    return any(driver in limits and present[driver] + count > limits[driver] for driver, count in new.items())


def _attachable(pod: Pod, storage: Storage, *, migrates: bool) -> _Attached:
    """The volumes that the incoming pod needs attached. Source: csi.go ``filterAttachableVolumes``."""
    attached: _Attached = {}
    meta = pod.meta
    for volume in pod.pod_spec.volumes or ():
        name = claim_name(meta.name, volume)
        if name is None:
            _count_inline(volume, attached, migrates=migrates)
            continue
        if not name:
            raise _LookupError(failure("PersistentVolumeClaim had no name"))
        claim = storage.claims.get(name)
        if claim is None:
            raise _LookupError(unresolvable(f"looking up PVC {meta.namespace}/{name}: {missing_claim(name)}"))
        _check_owner(volume, claim, meta.namespace, meta.name, meta.uid)
        _count_claim(claim, storage, attached, migrates=migrates)
    return attached


def _attached(slot: int, storage: Storage) -> _Attached:
    """The volumes attached for the pods on a node; deleted claims do not count.

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
                raise _LookupError(failure("PersistentVolumeClaim had no name"))
            claim = storage.others.get((pod.namespace, name))
            # Unlike a claim that the incoming pod needs: upstream does not count what it cannot look up here.
            if claim is not None:
                _check_owner(volume, claim, pod.namespace, pod.name, pod.uid)
                _count_claim(claim, storage, attached, migrates=True)
    return attached


def owner_fault(claim: Claim, namespace: str, name: str, uid: str) -> str:
    """The error if an ephemeral volume's claim was not created for the pod; "" if it was.

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
            raise _LookupError(failure(fault))


def _count_inline(volume: Volume, attached: _Attached, *, migrates: bool) -> None:
    """Source: csi.go ``checkAttachableInlineVolume``."""
    source = _in_tree(volume)
    if source is not None and migrates:
        plugin, handle = source
        fault = _fault(volume, handle)
        if fault:
            raise _LookupError(failure(f"converting volume({volume.name}) from inline to csi: {fault}"))
        if plugin == GCE_PD:
            # A volume in a pod names no project and no zone; csi-translation-lib writes UNSPECIFIED for both.
            handle = f"projects/UNSPECIFIED/zones/UNSPECIFIED/disks/{handle}"
        attached[_MIGRATED[plugin], handle] = None


def _fault(source: Volume | PersistentVolumeSpec, handle: str) -> str:
    """Why a volume of an in-tree plugin cannot become one of a CSI driver; "" if it can.

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
        driver = _driver_of_class(storage.classes.get(claim.storage_class), migrates=migrates)
        # Upstream makes up a random handle here; the claim's name is as unique.
        handle = f"{claim.meta.namespace}/{claim.meta.name}"
    else:
        driver, handle = _driver_of_volume(volume, migrates=migrates)
    if driver and handle:
        attached[driver, handle] = None


def _driver_of_class(storage_class: StorageClass | None, *, migrates: bool) -> str:
    """Source: csi.go ``getCSIDriverInfoFromSC``."""
    provisioner = storage_class.provisioner if storage_class else ""
    if provisioner in _NOT_COUNTED:
        return ""
    if provisioner in _MIGRATED:
        return _MIGRATED[provisioner] if migrates else ""
    return provisioner


def _driver_of_volume(volume: PersistentVolume, *, migrates: bool) -> tuple[str, str]:
    """Source: csi.go ``getCSIDriverInfo``; csi-translation-lib translate.go ``TranslateInTreePVToCSI``."""
    csi = volume.spec.csi
    if csi is not None:
        return csi.driver, csi.volume_handle
    source = _in_tree(volume.spec)
    # Upstream logs a volume that cannot be translated, and does not count it.
    if source is None or not migrates or _fault(volume.spec, source[1]):
        return "", ""
    plugin, handle = source
    if plugin == GCE_PD:
        labels = volume.meta.labels or {}
        zone = labels.get(BETA_ZONE) or labels.get(ZONE)
        handle = f"projects/UNSPECIFIED/zones/{zone or 'UNSPECIFIED'}/disks/{handle}"
    return _MIGRATED[plugin], handle


def _in_tree(source: Volume | PersistentVolumeSpec) -> tuple[str, str] | None:
    """The in-tree plugin of a volume and its handle; None for any other volume.

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
