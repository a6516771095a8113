"""The values that the index keeps, one for each object of the cluster."""

from collections.abc import Mapping

from msgspec import Struct

from webhook.core.api.admission_objects import LimitRange, PriorityClass, RuntimeClass
from webhook.core.api.spread_group import SpreadGroup
from webhook.core.api.storage import (
    Claim,
    CsiDriver,
    CsiNode,
    PersistentVolume,
    StorageCapacity,
    StorageClass,
    VolumeAttachment,
)
from webhook.core.api.types import Int32, LabelSelector, Named, Node, ObjectMeta, Pod, Service, SpreadConstraint
from webhook.core.workloads.kinds import GroupKind, group_of


class Namespace(Named, frozen=True):
    """A namespace; its labels select overrides of defaults, and ceilings."""


class DeclaredTemplate(Struct, frozen=True):
    """What rules about other workloads need of a pod template: its labels and its constraints."""

    labels: Mapping[str, str]
    constraints: tuple[SpreadConstraint, ...]


class Owner(Struct, frozen=True, kw_only=True, gc=False):
    """A controller of pods, or of the controllers of pods.

    Attributes:
        replicas: None if the kind has none or the object states none. For a Job, the pods that run at once.
        templates: None if unknown: for Jobs, custom resources with a broken template, and ReplicaSets of a controller,
            which have a past or present template of it.
        spec: The fields that `read_workload` reads, in JSON, for a Deployment, a StatefulSet, or a ReplicaSet without a
            controller. Empty for others, and for a spec that is longer than people write.
    """

    api_version: str
    kind: str
    meta: ObjectMeta
    replicas: int | None = None
    selector: LabelSelector | None = None
    templates: tuple[DeclaredTemplate, ...] | None = None
    spec: bytes = b""


class ScaleTarget(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What an autoscaler scales. Source: k8s.io/api autoscaling/v2/types.go ``CrossVersionObjectReference``."""

    api_version: str = ""
    kind: str = ""
    name: str = ""


class AutoscalerSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """Unit: pods. Source: k8s.io/api autoscaling/v2/types.go ``HorizontalPodAutoscalerSpec``."""

    scale_target_ref: ScaleTarget = ScaleTarget()
    max_replicas: Int32 = 0


class Autoscaler(Named, frozen=True):
    """A HorizontalPodAutoscaler, of either version."""

    spec: AutoscalerSpec = AutoscalerSpec()

    @property
    def target(self) -> tuple[str, GroupKind, str]:
        """What it scales: namespace, kind and name; API versions are not compared."""
        of = self.spec.scale_target_ref
        return self.meta.namespace, (group_of(of.api_version), of.kind), of.name


StorageObject = Claim | PersistentVolume | StorageClass | CsiNode | CsiDriver | StorageCapacity | VolumeAttachment
AdmissionObject = LimitRange | PriorityClass | RuntimeClass
ApiObject = Node | Pod | Namespace | Service | Owner | Autoscaler | SpreadGroup | StorageObject | AdmissionObject


def meta_of(value: ApiObject) -> ObjectMeta:
    """The metadata, empty where absent."""
    meta = value.meta if isinstance(value, Owner) else value.metadata
    return meta or ObjectMeta()
