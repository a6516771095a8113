"""The types that the index keeps for objects of the cluster."""

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
    """A namespace. Selectors of the policy match its labels, to choose default constraints and ceilings."""


class DeclaredTemplate(Struct, frozen=True):
    """The labels and constraints of a pod template, for rules about other workloads."""

    labels: Mapping[str, str]
    constraints: tuple[SpreadConstraint, ...]


class Owner(Struct, frozen=True, kw_only=True, gc=False):
    """A controller of pods, or of the controllers of pods.

    Attributes:
        api_version: The API version.
        kind: The kind.
        meta: The metadata.
        replicas: The desired pods. None if the kind has no such field, or it is not set. For a Job, the pods that run
            at the same time.
        selector: Selects its pods.
        templates: Its pod templates. None for Jobs, and for custom resources with a broken template. None for a
            ReplicaSet with a controller too: it may be an old revision, and only the controller's template counts.
        spec: The fields for `read_workload`, as JSON, for a Deployment, a StatefulSet, or a ReplicaSet without a
            controller. Empty for others, and for an oversized spec.
    """

    api_version: str
    kind: str
    meta: ObjectMeta
    replicas: int | None = None
    selector: LabelSelector | None = None
    templates: tuple[DeclaredTemplate, ...] | None = None
    spec: bytes = b""

    @property
    def wanted(self) -> int:
        """The desired pods. 1, the API server's default, if not set."""
        return 1 if self.replicas is None else self.replicas


def is_controlled_by(owner: Owner, kind: str, name: str) -> bool:
    """Whether the owner's controller has this kind and name."""
    above = owner.meta.controller
    return above is not None and (above.kind, above.name) == (kind, name)


class ScaleTarget(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The target of an autoscaler. Source: k8s.io/api autoscaling/v2/types.go ``CrossVersionObjectReference``."""

    api_version: str = ""
    kind: str = ""
    name: str = ""


class AutoscalerSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """The target and its limits in pods.

    Attributes:
        min_replicas: 1 by default. Read `least`, because null means the default too.

    Source: k8s.io/api autoscaling/v2/types.go ``HorizontalPodAutoscalerSpec``.
    """

    scale_target_ref: ScaleTarget = ScaleTarget()
    min_replicas: Int32 | None = None
    max_replicas: Int32 = 0

    @property
    def least(self) -> int:
        """The fewest pods. Source: apis/autoscaling/v2/defaults.go ``SetDefaults_HorizontalPodAutoscaler``."""
        return 1 if self.min_replicas is None else self.min_replicas


class Autoscaler(Named, frozen=True):
    """A HorizontalPodAutoscaler, of either version."""

    spec: AutoscalerSpec = AutoscalerSpec()

    @property
    def target(self) -> tuple[str, GroupKind, str]:
        """The scaled object: namespace, kind without version, and name."""
        target = self.spec.scale_target_ref
        return self.meta.namespace, (group_of(target.api_version), target.kind), target.name


StorageObject = Claim | PersistentVolume | StorageClass | CsiNode | CsiDriver | StorageCapacity | VolumeAttachment
AdmissionObject = LimitRange | PriorityClass | RuntimeClass
ApiObject = Node | Pod | Namespace | Service | Owner | Autoscaler | SpreadGroup | StorageObject | AdmissionObject


def meta_of(value: ApiObject) -> ObjectMeta:
    """The object's metadata. Empty if absent."""
    meta = value.meta if isinstance(value, Owner) else value.metadata
    return meta or ObjectMeta()
