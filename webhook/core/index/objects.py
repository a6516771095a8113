"""What the index keeps of each object of the cluster."""

from collections.abc import Mapping

from msgspec import Struct

from webhook.core.api.storage import Claim, CsiNode, PersistentVolume, StorageClass
from webhook.core.api.types import Int32, LabelSelector, Named, Node, ObjectMeta, Pod, Service, SpreadConstraint

SKIP_ANNOTATION = "evenspread.io/skip"
INJECTED_ANNOTATION = "evenspread.io/injected"
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
# The controllers above a ReplicaSet write here how many replicas they want over all their ReplicaSets.
DESIRED_REPLICAS_ANNOTATIONS = ("deployment.kubernetes.io/desired-replicas", "rollout.argoproj.io/desired-replicas")


class Namespace(Named, frozen=True):
    """A namespace: its labels choose overrides and ceilings."""


class Declared(Struct, frozen=True):
    """What a pod template says of spreading."""

    labels: Mapping[str, str]
    constraints: tuple[SpreadConstraint, ...]


class Owner(Struct, frozen=True, kw_only=True, gc=False):
    """A controller of pods, or of the controllers of pods.

    Shape: ``replicas`` is None where the kind has none or does not say; of a Job, the pods that it runs at once.
    ``templates`` is None where they are not known: of Jobs, of custom resources whose template is broken, and of
    ReplicaSets that have a controller, whose template is a past or present one of it.
    """

    api_version: str
    kind: str
    meta: ObjectMeta
    replicas: int | None = None
    selector: LabelSelector | None = None
    templates: tuple[Declared, ...] | None = None


class ScaleTarget(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class AutoscalerSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    scale_target_ref: ScaleTarget = ScaleTarget()
    max_replicas: Int32 = 0


class Autoscaler(Named, frozen=True):
    """A HorizontalPodAutoscaler, of either version."""

    spec: AutoscalerSpec = AutoscalerSpec()

    def scales(self, api_version: str, kind: str, name: str) -> bool:
        """Whether it scales this object of its namespace, in whatever version."""
        target = self.spec.scale_target_ref
        group, wanted = target.api_version.rpartition("/")[0], api_version.rpartition("/")[0]
        return (group, target.kind, target.name) == (wanted, kind, name)


ApiObject = Node | Pod | Namespace | Service | Owner | Autoscaler | Claim | PersistentVolume | StorageClass | CsiNode
