"""The VolumeRestrictions plugin: rejects nodes where other pods use the pod's disks or claims exclusively.

Source: kube-scheduler volumerestrictions/volume_restrictions.go.
"""

from webhook.core.api import gates
from webhook.core.api.storage import READ_WRITE_ONCE_POD
from webhook.core.api.types import Pod, Volume, named_claims
from webhook.core.api.version import KubernetesVersion
from webhook.core.index.nodes import NodeView
from webhook.core.scheduler.plugins.status import (
    OK,
    PASSES,
    PluginResult,
    Status,
    StatusOfNodes,
    unresolvable,
    unschedulable,
)
from webhook.core.scheduler.plugins.volumes import Storage, is_disk, missing_claim

VOLUME_RESTRICTIONS = "VolumeRestrictions"
DISK_CONFLICT = unschedulable("node(s) had no available disk")
_SAME_CLAIM_IN_USE = unschedulable(
    "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
)
_CLAIM_IN_USE = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


def run_volume_restrictions(pod: Pod, storage: Storage, nodes: NodeView, version: KubernetesVersion) -> PluginResult:
    """Run VolumeRestrictions. Source: volume_restrictions.go ``PreFilter``, ``Filter``."""
    exclusive = set()
    for name in named_claims(pod.pod_spec.volumes):
        claim = storage.claims.get(name)
        if claim is None:
            return PluginResult(unresolvable(missing_claim(name)))
        if READ_WRITE_ONCE_POD in (claim.spec.access_modes or ()):
            exclusive.add(name)
    disks = [volume for volume in pod.pod_spec.volumes or () if is_disk(volume)]
    # ReadWriteOncePod applies to the whole cluster: one user on any node rejects every node.
    in_use = any(nodes.live >> slot & 1 for name in exclusive for slot in storage.users.get(name, ()))
    if not disks and not in_use:
        return PASSES

    def reject(candidates: int) -> list[StatusOfNodes]:
        conflicting = 0
        for slot, pods in storage.mounted.items() if disks else ():
            if any(disks_conflict(one, other) for user in pods for other in user.volumes for one in disks):
                conflicting |= 1 << slot
        # Upstream tests disks first and reports only the first failure.
        return [
            (DISK_CONFLICT, candidates & conflicting),
            (claim_in_use(version), candidates & ~conflicting if in_use else 0),
        ]

    return PluginResult(OK, reject)


def claim_in_use(version: KubernetesVersion) -> Status:
    """Return the status for a claim in use by another pod.

    Source: volume_restrictions.go ``ErrReasonReadWriteOncePodConflict``.
    """
    return _CLAIM_IN_USE if gates.CLAIM_IN_USE_REASON.holds(version) else _SAME_CLAIM_IN_USE


def disks_conflict(one: Volume, other: Volume) -> bool:
    """Whether two pods on a node cannot mount these volumes. Source: volume_restrictions.go ``isVolumeConflict``."""
    gce, other_gce = one.gce_persistent_disk, other.gce_persistent_disk
    if gce and other_gce and gce.pd_name == other_gce.pd_name and not (gce.read_only and other_gce.read_only):
        return True
    # Unlike the others, EBS has no shared read-only mount.
    ebs, other_ebs = one.aws_elastic_block_store, other.aws_elastic_block_store
    if ebs and other_ebs and ebs.volume_id == other_ebs.volume_id:
        return True
    iscsi, other_iscsi = one.iscsi, other.iscsi
    if iscsi and other_iscsi and iscsi.iqn == other_iscsi.iqn and not (iscsi.read_only and other_iscsi.read_only):
        return True
    rbd, other_rbd = one.rbd, other.rbd
    if not (rbd and other_rbd):
        return False
    # Pool and name identify an image within a Ceph cluster. Any of its monitors identifies the cluster.
    same = {*(rbd.monitors or ())} & {*(other_rbd.monitors or ())} and (rbd.pool, rbd.image) == (
        other_rbd.pool,
        other_rbd.image,
    )
    return bool(same) and not (rbd.read_only and other_rbd.read_only)
