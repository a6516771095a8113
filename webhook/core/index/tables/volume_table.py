"""The table of claims, volumes, storage classes and storage drivers."""

from collections.abc import Iterator, Mapping, Sequence

from webhook.core.api.storage import (
    Claim,
    CsiDriver,
    CsiNode,
    PersistentVolume,
    StorageCapacity,
    StorageClass,
    VolumeAttachment,
)
from webhook.core.api.well_known import BETA_DEFAULT_CLASS, DEFAULT_CLASS
from webhook.core.budget import check_time
from webhook.core.index.objects import StorageObject
from webhook.core.index.read_only import Handle, Volumes
from webhook.core.index.tables.shrinking import Grouped, drop, drop_under, put_under


def _is_default(annotations: Mapping[str, str]) -> bool:
    """Source: pkg/volume/util/storageclass.go ``IsDefaultAnnotation``."""
    return "true" in (annotations.get(DEFAULT_CLASS), annotations.get(BETA_DEFAULT_CLASS))


class VolumeTable(Volumes):
    """The cluster's storage objects: claims, volumes, classes, drivers, attachments.

    These objects decide which nodes can mount a volume, and how many volumes a node can mount.
    """

    def __init__(self) -> None:
        self._claims: dict[str, dict[str, Claim]] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        # Claimed volumes by their claim, others by their class.
        self._offered = Grouped[str | tuple[str, str], str, PersistentVolume]()
        self._classes: dict[str, StorageClass] = {}
        self._drivers: dict[str, CsiDriver] = {}
        self._nodes: dict[str, CsiNode] = {}
        self._limits: dict[str, Mapping[str, int]] = {}
        self._capacities = Grouped[str, tuple[str, str], StorageCapacity]()
        self._attachments = Grouped[str, str, VolumeAttachment]()

    def put(self, value: StorageObject) -> None:
        """Add or replace an object."""
        namespace, name = value.meta.namespace, value.meta.name
        match value:
            case Claim():
                put_under(self._claims, namespace, name, value)
            case PersistentVolume():
                claim = value.spec.claim_ref
                self._volumes[name] = value
                self._offered.put(value.storage_class if claim is None else (claim.namespace, claim.name), name, value)
            case StorageClass():
                self._classes[name] = value
            case CsiDriver():
                self._drivers[name] = value
            case StorageCapacity():
                self._capacities.put(value.storage_class_name, (namespace, name), value)
            case VolumeAttachment():
                self._attachments.put(value.spec.node_name, name, value)
            case _:
                self._nodes[name] = value
                self._limits[name] = value.limits

    def remove(self, value: StorageObject) -> None:
        """Remove an object, if present."""
        namespace, name = value.meta.namespace, value.meta.name
        match value:
            case Claim():
                drop_under(self._claims, namespace, name)
            case PersistentVolume():
                drop(self._volumes, name)
                self._offered.remove(name)
            case StorageClass():
                drop(self._classes, name)
            case CsiDriver():
                drop(self._drivers, name)
            case StorageCapacity():
                self._capacities.remove((namespace, name))
            case VolumeAttachment():
                self._attachments.remove(name)
            case _:
                drop(self._nodes, name)
                drop(self._limits, name)

    def claim(self, namespace: str, name: str) -> Claim | None:
        check_time()
        return self._claims[namespace].get(name) if namespace in self._claims else None

    def volume(self, name: str) -> PersistentVolume | None:
        check_time()
        return self._volumes.get(name)

    def candidates(self, claim: Claim) -> tuple[PersistentVolume, ...]:
        check_time()
        made = self._offered.values((claim.meta.namespace, claim.meta.name))
        free = self._offered.values(claim.storage_class)
        return (*(volume for volume in made if volume.storage_class == claim.storage_class), *free)

    def storage_class(self, name: str) -> StorageClass | None:
        return self._classes.get(name)

    def default_class(self) -> StorageClass | None:
        by_name = sorted(self._classes.values(), key=lambda candidate: candidate.meta.name)
        defaults = [candidate for candidate in by_name if _is_default(candidate.meta.annotations or {})]
        return max(defaults, key=lambda candidate: candidate.meta.creation_timestamp or "", default=None)

    def attach_limits(self) -> Mapping[str, Mapping[str, int]]:
        return dict(self._limits)

    def csi_node(self, name: str) -> CsiNode | None:
        """The CSINode of a node."""
        return self._nodes.get(name)

    def drivers(self) -> Mapping[str, CsiDriver]:
        return dict(self._drivers)

    def nodes_with_driver(self, driver: str) -> frozenset[str]:
        nodes = self._nodes.items()
        return frozenset(
            node for node, csi in nodes if any(installed.name == driver for installed in csi.spec.drivers or ())
        )

    def capacities(self, storage_class: str) -> tuple[StorageCapacity, ...]:
        return tuple(self._capacities.values(storage_class))

    def attachments(self) -> Mapping[str, int]:
        return self._attachments.sizes()

    def attached(self, nodes: Sequence[str]) -> Mapping[str, tuple[Handle, ...]]:
        return {node: handles for node in nodes if (handles := tuple(self._handles(node)))}

    def _handles(self, node: str) -> Iterator[Handle]:
        """The known volumes attached to a node."""
        for attachment in self._attachments.values(node):
            volume = self._volumes.get(attachment.spec.source.persistent_volume_name or "")
            if attachment.spec.attacher and volume is not None and volume.spec.csi is not None:
                yield attachment.spec.attacher, volume.spec.csi.volume_handle
