"""Volumes, claims and storage classes, with only the fields that a verdict needs.

A class without a docstring is the API's type of the same name, restricted to these fields.

Source: k8s.io/api core/v1/types.go, storage/v1/types.go.
"""

from collections.abc import Mapping

from webhook.core.api.types import (
    ApiType,
    AwsElasticBlockStore,
    AzureDisk,
    ClaimSpec,
    GcePersistentDisk,
    Int32,
    LabelSelector,
    Named,
    NodeSelector,
    VolumeIdSource,
    WrittenQuantity,
)
from webhook.core.api.well_known import BETA_STORAGE_CLASS, BIND_COMPLETED, MIGRATED_PLUGINS, SELECTED_NODE

KEPT_ANNOTATIONS = frozenset({BIND_COMPLETED, SELECTED_NODE, BETA_STORAGE_CLASS, MIGRATED_PLUGINS})
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
STORAGE = "storage"


class CsiSource(ApiType, frozen=True, gc=False):
    driver: str = ""
    volume_handle: str = ""


class ClaimReference(ApiType, frozen=True, gc=False):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(ApiType, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(ApiType, frozen=True):
    capacity: Mapping[str, WrittenQuantity] | None = None
    access_modes: tuple[str, ...] | None = None
    claim_ref: ClaimReference | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiSource | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: VolumeIdSource | None = None
    portworx_volume: VolumeIdSource | None = None


class Phase(ApiType, frozen=True, gc=False):
    """The status of a volume or a claim."""

    phase: str = ""


class PersistentVolume(Named, frozen=True):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: Phase | None = None

    @property
    def storage_class(self) -> str:
        """The class's name or "". Source: storage/volume/helpers.go ``GetPersistentVolumeClass``."""
        beta = (self.meta.annotations or {}).get(BETA_STORAGE_CLASS)
        return (self.spec.storage_class_name or "") if beta is None else beta


class Claim(Named, frozen=True):
    """A PersistentVolumeClaim."""

    spec: ClaimSpec = ClaimSpec()
    status: Phase | None = None

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations, empty if absent."""
        return self.meta.annotations or {}

    @property
    def storage_class(self) -> str:
        """The class's name or "". Source: storage/volume/helpers.go ``GetPersistentVolumeClaimClass``."""
        beta = self.annotations.get(BETA_STORAGE_CLASS)
        return (self.spec.storage_class_name or "") if beta is None else beta

    @property
    def bound(self) -> bool:
        """Whether the binding of volume and claim is complete. Source: volumebinding/binder.go ``isPVCFullyBound``."""
        return bool(self.spec.volume_name) and BIND_COMPLETED in self.annotations


class TopologyRequirement(ApiType, frozen=True):
    key: str = ""
    values: tuple[str, ...] | None = None


class TopologyTerm(ApiType, frozen=True):
    match_label_expressions: tuple[TopologyRequirement, ...] | None = None


class StorageClass(Named, frozen=True):
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologyTerm, ...] | None = None


class CsiDriverSpec(ApiType, frozen=True, gc=False):
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CsiDriver(Named, frozen=True):
    spec: CsiDriverSpec = CsiDriverSpec()


class StorageCapacity(Named, frozen=True):
    """The API type ``CSIStorageCapacity``."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: WrittenQuantity | None = None
    maximum_volume_size: WrittenQuantity | None = None

    @property
    def limit(self) -> WrittenQuantity | None:
        """The largest possible volume, None if unknown. Source: volumebinding/binder.go ``volumeLimit``."""
        return self.capacity if self.maximum_volume_size is None else self.maximum_volume_size


class AttachmentSource(ApiType, frozen=True, gc=False):
    """The API type ``VolumeAttachmentSource``."""

    persistent_volume_name: str | None = None


class AttachmentSpec(ApiType, frozen=True, gc=False):
    """The API type ``VolumeAttachmentSpec``."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(Named, frozen=True):
    spec: AttachmentSpec = AttachmentSpec()


class DriverAllocatable(ApiType, frozen=True, gc=False):
    count: Int32 | None = None


class CsiDriverOnNode(ApiType, frozen=True):
    name: str = ""
    allocatable: DriverAllocatable | None = None


class CsiNodeSpec(ApiType, frozen=True):
    drivers: tuple[CsiDriverOnNode, ...] | None = None


class CsiNode(Named, frozen=True):
    """The CSI drivers of the node with the same name."""

    spec: CsiNodeSpec = CsiNodeSpec()

    @property
    def limits(self) -> Mapping[str, int]:
        """The most volumes of each limited driver. Source: nodevolumelimits/csi.go ``getVolumeLimits``."""
        return {
            driver.name: driver.allocatable.count
            for driver in self.spec.drivers or ()
            if driver.allocatable is not None and driver.allocatable.count is not None
        }
