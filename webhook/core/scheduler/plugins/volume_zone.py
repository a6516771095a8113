"""The VolumeZone plugin: rejects nodes outside of the zones and regions in a bound volume's labels.

Source: kube-scheduler volumezone/volume_zone.go.
"""

from collections.abc import Iterable

from webhook.core.api.storage import WAIT_FOR_FIRST_CONSUMER, PersistentVolume
from webhook.core.api.types import Pod, named_claims
from webhook.core.api.well_known import BETA_REGION, BETA_ZONE, REGION, ZONE
from webhook.core.index.nodes import NodeView
from webhook.core.scheduler.plugins.status import OK, PASSES, PluginResult, Status, StatusOfNodes, unresolvable
from webhook.core.scheduler.plugins.volumes import Storage, missing_claim, reachable_from

VOLUME_ZONE = "VolumeZone"
_OTHER_ZONE = unresolvable("node(s) had no available volume zone")

_TOPOLOGY_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_GENERAL = {BETA_ZONE: ZONE, BETA_REGION: REGION}


def run_volume_zone(pod: Pod, storage: Storage, nodes: NodeView) -> PluginResult:
    """Run VolumeZone. Source: volume_zone.go ``PreFilter``, ``Filter``."""
    zones: list[tuple[str, frozenset[str]]] = []
    for name in named_claims(pod.pod_spec.volumes):
        status, volume = _bound_volume(name, storage)
        if status is not None:
            return PluginResult(status)
        if volume is not None:
            zones += zone_labels(volume)
    if not zones:
        return PASSES

    def reject(candidates: int) -> list[StatusOfNodes]:
        return [(_OTHER_ZONE, candidates & _in_other_zones(zones, nodes))]

    return PluginResult(OK, reject)


def _in_other_zones(zones: Iterable[tuple[str, frozenset[str]]], nodes: NodeView) -> int:
    """Return the nodes with other zone or region labels than the volumes. Nodes without such labels pass.

    Source: volume_zone.go ``Filter``, ``translateToGALabel``.
    """
    # Upstream passes nodes without any of these labels, so a cluster in one place needs none.
    labelled = 0
    for key in _TOPOLOGY_LABELS:
        labelled |= nodes.column(key).present
    reachable = labelled
    for key, values in zones:
        column, general = nodes.column(key), nodes.column(_GENERAL.get(key, key))
        near = 0
        for value in values:
            # A volume with a beta label also fits a node with only its successor.
            near |= column.with_value(value) | (general.with_value(value) & ~column.present)
        reachable &= near
    return labelled & ~reachable


def _bound_volume(name: str, storage: Storage) -> tuple[Status | None, PersistentVolume | None]:
    """Return a rejecting status, or the volume of a bound claim. With delayed binding, return neither.

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
    """Return the error about an unbound claim. Empty without an error. Source: volume_zone.go ``getPVbyPod``."""
    if not class_name:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    storage_class = storage.classes.get(class_name)
    if storage_class is None:
        return f'storageclass.storage.k8s.io "{class_name}" not found'
    if storage_class.volume_binding_mode is None:
        return f'VolumeBindingMode not set for StorageClass "{class_name}"'
    return "" if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else "PersistentVolume had no name"


def zone_labels(volume: PersistentVolume) -> list[tuple[str, frozenset[str]]]:
    """List a volume's topology labels. ``__`` separates several values.

    A label with an empty value is ignored.

    Source: volume_zone.go ``getPVTopologies``.
    """
    zones = []
    for key in _TOPOLOGY_LABELS:
        value = (volume.meta.labels or {}).get(key)
        if value is not None:
            values = frozenset(part.strip() for part in value.split("__"))
            if "" not in values:
                zones.append((key, values))
    return zones


def usable_from(volume: PersistentVolume, nodes: NodeView) -> int:
    """Select nodes that can use the volume. Source: volume_binding.go ``Filter``; volume_zone.go ``Filter``."""
    reached, zones = reachable_from(volume, nodes), zone_labels(volume)
    return reached & ~_in_other_zones(zones, nodes) if zones else reached
