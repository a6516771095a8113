"""What storage drivers say of themselves: CSIDriver, CSINode, CSIStorageCapacity, and the volumes that are attached."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from webhook.core.api.storage import CsiDriver, CsiNode, PersistentVolume, StorageCapacity, VolumeAttachment
from webhook.core.index.tables.shrinking import drop, drop_under, put_under

DriverObject = CsiDriver | CsiNode | StorageCapacity | VolumeAttachment
Handle = tuple[str, str]  # driver, and what it calls the volume

_Item = TypeVar("_Item")
_Identity = tuple[str, str]  # namespace, name


class _Grouped(Generic[_Item]):
    """Objects under a text that a later version of the object may change."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[_Identity, _Item]] = {}
        self._group_of: dict[_Identity, str] = {}

    def put(self, group: str, key: _Identity, item: _Item) -> None:
        self.remove(key)
        self._group_of[key] = group
        put_under(self._groups, group, key, item)

    def remove(self, key: _Identity) -> None:
        group = drop(self._group_of, key)
        if group is not None:
            drop_under(self._groups, group, key)

    def of(self, group: str) -> Iterable[_Item]:
        return self._groups.get(group, {}).values()

    def sizes(self) -> dict[str, int]:
        return {group: len(items) for group, items in self._groups.items()}


class StorageDrivers:
    """The objects by which storage drivers tell the scheduler what they can do."""

    def __init__(self) -> None:
        self._drivers: dict[str, CsiDriver] = {}
        self._nodes: dict[str, CsiNode] = {}
        self._limits: dict[str, Mapping[str, int]] = {}
        self._capacities = _Grouped[StorageCapacity]()
        self._attachments = _Grouped[VolumeAttachment]()

    def put(self, value: DriverObject) -> None:
        """Add or replace an object."""
        key = value.meta.namespace, value.meta.name
        match value:
            case CsiDriver():
                self._drivers[value.meta.name] = value
            case StorageCapacity():
                self._capacities.put(value.storage_class_name, key, value)
            case VolumeAttachment():
                self._attachments.put(value.spec.node_name, key, value)
            case _:
                self._nodes[value.meta.name] = value
                self._limits[value.meta.name] = value.limits

    def remove(self, value: DriverObject) -> None:
        """Remove an object, if it is there."""
        key = value.meta.namespace, value.meta.name
        match value:
            case CsiDriver():
                drop(self._drivers, value.meta.name)
            case StorageCapacity():
                self._capacities.remove(key)
            case VolumeAttachment():
                self._attachments.remove(key)
            case _:
                drop(self._nodes, value.meta.name)
                drop(self._limits, value.meta.name)

    def drivers(self) -> Mapping[str, CsiDriver]:
        """Every CSIDriver by its name."""
        return dict(self._drivers)

    def limits(self) -> Mapping[str, Mapping[str, int]]:
        """The most volumes by node and driver."""
        return dict(self._limits)

    def installed(self, driver: str) -> frozenset[str]:
        """The nodes on which the driver has registered itself."""
        nodes = self._nodes.items()
        return frozenset(node for node, csi in nodes if any(each.name == driver for each in csi.spec.drivers or ()))

    def capacities(self, storage_class: str) -> tuple[StorageCapacity, ...]:
        """What is published of a class."""
        return tuple(self._capacities.of(storage_class))

    def attachments(self) -> Mapping[str, int]:
        """How many volumes are attached, by node."""
        return self._attachments.sizes()

    def attached(self, node: str, volumes: Mapping[str, PersistentVolume]) -> Iterator[Handle]:
        """The volumes that are attached to a node, as far as they are known.

        Source: nodevolumelimits/csi.go ``getNodeVolumeAttachmentInfo``.
        """
        for each in self._attachments.of(node):
            volume = volumes.get(each.spec.source.persistent_volume_name or "")
            if each.spec.attacher and volume is not None and volume.spec.csi is not None:
                yield each.spec.attacher, volume.spec.csi.volume_handle
