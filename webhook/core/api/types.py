"""The Kubernetes API objects and fields that evenspread reads, decoded from JSON.

Decoding ignores unknown fields and reads null as absent, except for fields of type UNSET. Decoding is strict: a bool or
1.0 is not an integer. `core.apiserver.decoding` turns decoding errors into kube-apiserver's errors. A field of type ``X
| None`` is None if absent.

A class without a docstring is the API's type of the same name, with these fields.

Source: k8s.io/api core/v1/types.go; k8s.io/apimachinery meta/v1/types.go.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
MAX_INT64 = 2**63 - 1
INT64_DIGITS = 19  # decimal digits of MAX_INT64
_Int64 = Annotated[int, Meta(ge=-MAX_INT64 - 1, le=MAX_INT64)]
# Canonical JSON writes quantities as text. Kubernetes also decodes bare numbers.
WrittenQuantity = str | int | float

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
HONOR = "Honor"
IGNORE = "Ignore"
# Names of fields of a constraint.
NODE_TAINTS_POLICY = "nodeTaintsPolicy"
NODE_AFFINITY_POLICY = "nodeAffinityPolicy"
WHEN_UNSATISFIABLE = "whenUnsatisfiable"

# Operators of label selectors, node selectors and tolerations. EQUALS is an entry of matchLabels.
EQUALS = "="
IN = "In"
NOT_IN = "NotIn"
EXISTS = "Exists"
DOES_NOT_EXIST = "DoesNotExist"
GREATER = "Gt"
LESS = "Lt"


class ApiType(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base class: frozen, keyword-only, camelCase in JSON, encoded without defaults."""


class OwnerReference(ApiType, frozen=True, gc=False):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


def controller_of(owners: tuple[OwnerReference, ...] | None) -> OwnerReference | None:
    """Return the owner with controller: true. Source: meta/v1/controller_ref.go ``GetControllerOf``."""
    for owner in owners or ():
        if owner.controller:
            return owner
    return None


class ObjectMeta(ApiType, frozen=True, gc=False):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    finalizers: tuple[str, ...] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None

    @property
    def controller(self) -> OwnerReference | None:
        """The managing owner."""
        return controller_of(self.owner_references)


class LabelSelectorRequirement(ApiType, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class LabelSelector(ApiType, frozen=True, gc=False):
    match_labels: Mapping[str, str] | None = None
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None


class SpreadConstraint(ApiType, frozen=True):
    """One entry of topologySpreadConstraints as written.

    ``label_selector`` is UNSET if absent, None for null and ``LabelSelector()`` for ``{}``. Absent and null both match
    no pod. Only error messages differ between absent and null.
    """

    max_skew: Int32 | None = None
    topology_key: str | None = None
    when_unsatisfiable: str | None = None
    label_selector: LabelSelector | UnsetType | None = UNSET
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None

    @property
    def selector(self) -> LabelSelector | None:
        """The selector, None for absent and null."""
        return None if self.label_selector is UNSET else self.label_selector

    @property
    def hard(self) -> bool:
        """Whether the constraint is DoNotSchedule and filters nodes. A soft constraint only scores nodes."""
        return self.when_unsatisfiable == DO_NOT_SCHEDULE

    @property
    def identity(self) -> tuple[str | None, str | None]:
        """Topology key and whenUnsatisfiable: unique within a pod for kube-apiserver."""
        return self.topology_key, self.when_unsatisfiable


class NodeSelectorRequirement(ApiType, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(ApiType, frozen=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] | None = None
    match_fields: tuple[NodeSelectorRequirement, ...] | None = None


class NodeSelector(ApiType, frozen=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class PreferredSchedulingTerm(ApiType, frozen=True):
    weight: Int32 | None = None
    preference: NodeSelectorTerm | None = None


class NodeAffinity(ApiType, frozen=True):
    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredSchedulingTerm, ...] | None = field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(ApiType, frozen=True):
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class WeightedPodAffinityTerm(ApiType, frozen=True):
    weight: Int32 | None = None
    pod_affinity_term: PodAffinityTerm | None = None


class PodAffinity(ApiType, frozen=True):
    required: tuple[PodAffinityTerm, ...] | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] | None = field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )

    @property
    def terms(self) -> tuple[PodAffinityTerm, ...]:
        """All terms, required ones first."""
        preferred = (weighted.pod_affinity_term for weighted in self.preferred or ())
        return (*(self.required or ()), *(term for term in preferred if term is not None))


class Affinity(ApiType, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(ApiType, frozen=True, gc=False):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: _Int64 | None = None


class ResourceRequirements(ApiType, frozen=True):
    requests: Mapping[str, WrittenQuantity] | None = None
    limits: Mapping[str, WrittenQuantity] | None = None


ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - what an absent hostIP means, not an address to bind to


class ContainerPort(ApiType, frozen=True, gc=False):
    container_port: Int32 | None = None
    host_port: Int32 | None = None
    protocol: str | None = None
    host_ip: str | None = field(default=None, name="hostIP")


class Container(ApiType, frozen=True):
    name: str = ""
    resources: ResourceRequirements | None = None
    ports: tuple[ContainerPort, ...] | None = None
    restart_policy: str | None = None


class ClaimSource(ApiType, frozen=True, gc=False):
    claim_name: str = ""


class ClaimSpec(ApiType, frozen=True):
    """The spec of a PersistentVolumeClaim."""

    access_modes: tuple[str, ...] | None = None
    selector: LabelSelector | None = None
    resources: ResourceRequirements | None = None
    volume_name: str | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class _ClaimTemplateMeta(ApiType, frozen=True, gc=False):
    annotations: Mapping[str, str] | None = None


class ClaimTemplate(ApiType, frozen=True, gc=False):
    metadata: _ClaimTemplateMeta | None = None
    spec: ClaimSpec = ClaimSpec()


class EphemeralSource(ApiType, frozen=True, gc=False):
    """A claim template inside a volume. The resulting claim has the name ``<pod>-<volume>``."""

    volume_claim_template: ClaimTemplate | None = None


class GcePersistentDisk(ApiType, frozen=True, gc=False):
    pd_name: str = ""
    read_only: bool | None = None


class AwsElasticBlockStore(ApiType, frozen=True, gc=False):
    volume_id: str = field(default="", name="volumeID")


class Iscsi(ApiType, frozen=True, gc=False):
    iqn: str = ""
    read_only: bool | None = None


class Rbd(ApiType, frozen=True):
    monitors: tuple[str, ...] | None = None
    image: str = ""
    pool: str = ""
    read_only: bool | None = None


class AzureDisk(ApiType, frozen=True, gc=False):
    disk_uri: str = field(default="", name="diskURI")
    kind: str | None = None


class VolumeIdSource(ApiType, frozen=True, gc=False):
    """A Cinder or Portworx volume."""

    volume_id: str = field(default="", name="volumeID")


class Volume(ApiType, frozen=True):
    """A volume of a pod, with only the fields that the scheduler reads."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    iscsi: Iscsi | None = None
    rbd: Rbd | None = None
    azure_disk: AzureDisk | None = None
    cinder: VolumeIdSource | None = None
    portworx_volume: VolumeIdSource | None = None

    @property
    def has_claim(self) -> bool:
        """Whether the volume uses a named or an ephemeral claim."""
        return self.persistent_volume_claim is not None or self.ephemeral is not None


def named_claims(volumes: Iterable[Volume] | None) -> Iterator[str]:
    """List the pod's named claims, without the claims of ephemeral volumes.

    Source: kube-scheduler volume_zone.go ``getPersistentVolumeClaimNameFromPod``.
    """
    return (volume.persistent_volume_claim.claim_name for volume in volumes or () if volume.persistent_volume_claim)


class ResourceClaim(ApiType, frozen=True, gc=False):
    """A claim on devices."""

    name: str = ""


class PodSchedulingGroup(ApiType, frozen=True, gc=False):
    """The pod's PodGroup. The scheduler places all pods of the group or none."""

    pod_group_name: str | None = None


class SchedulingGate(ApiType, frozen=True, gc=False):
    name: str = ""


class PodSpec(ApiType, frozen=True):
    topology_spread_constraints: tuple[SpreadConstraint, ...] | None = None
    affinity: Affinity | None = None
    node_selector: Mapping[str, str] | None = None
    tolerations: tuple[Toleration, ...] | None = None
    node_name: str | None = None
    scheduler_name: str | None = None
    priority: Int32 | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    runtime_class_name: str | None = None
    host_network: bool | None = None
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    overhead: Mapping[str, WrittenQuantity] | None = None
    resources: ResourceRequirements | None = None
    volumes: tuple[Volume, ...] | None = None
    scheduling_gates: tuple[SchedulingGate, ...] | None = None
    resource_claims: tuple[ResourceClaim, ...] | None = None
    scheduling_group: PodSchedulingGroup | None = None
    host_users: bool | None = None

    @property
    def constraints(self) -> tuple[SpreadConstraint, ...]:
        """The spread constraints, empty if absent."""
        return self.topology_spread_constraints or ()

    @property
    def pod_affinity(self) -> PodAffinity:
        """The pod affinity, empty if absent."""
        return (self.affinity and self.affinity.pod_affinity) or _NO_PODS

    @property
    def pod_anti_affinity(self) -> PodAffinity:
        """The pod anti-affinity, empty if absent."""
        return (self.affinity and self.affinity.pod_anti_affinity) or _NO_PODS

    @property
    def node_terms(self) -> tuple[NodeSelectorTerm, ...] | None:
        """The alternative terms of the required node affinity, None without it."""
        nodes = self.affinity.node_affinity if self.affinity else None
        return None if nodes is None or nodes.required is None else nodes.required.node_selector_terms or ()


_NO_PODS = PodAffinity()
_NO_META = ObjectMeta()
_NO_SPEC = PodSpec()


class PodTemplate(ApiType, frozen=True):
    """A pod template. Also the base class of a Pod, with metadata and spec."""

    metadata: ObjectMeta | None = None
    spec: PodSpec | None = None

    @property
    def meta(self) -> ObjectMeta:
        """The metadata, empty if absent."""
        return self.metadata or _NO_META

    @property
    def pod_spec(self) -> PodSpec:
        """The pod spec, empty if absent."""
        return self.spec or _NO_SPEC

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels, empty if absent."""
        return (self.metadata or _NO_META).labels or {}


class TypeMeta(ApiType, frozen=True, gc=False):
    """An object's apiVersion and kind. They select the decoder of the object."""

    api_version: str | None = None
    kind: str | None = None


class ListMeta(ApiType, frozen=True, gc=False):
    resource_version: str = ""
    continue_: str = field(default="", name="continue")


class Named(ApiType, frozen=True):
    """Any object, with only kind and metadata."""

    api_version: str | None = None
    kind: str | None = None
    metadata: ObjectMeta | None = None

    @property
    def meta(self) -> ObjectMeta:
        """The metadata, empty if absent."""
        return self.metadata or _NO_META


class ContainerStatus(ApiType, frozen=True):
    name: str = ""
    allocated_resources: Mapping[str, WrittenQuantity] | None = None
    resources: ResourceRequirements | None = None


class PodCondition(ApiType, frozen=True, gc=False):
    type: str = ""
    status: str = ""
    reason: str = ""


class PodStatus(ApiType, frozen=True):
    phase: str = ""
    nominated_node_name: str | None = None
    conditions: tuple[PodCondition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    allocated_resources: Mapping[str, WrittenQuantity] | None = None
    resources: ResourceRequirements | None = None


class Pod(PodTemplate, frozen=True):
    """A pod with its status."""

    status: PodStatus | None = None


class Taint(ApiType, frozen=True, gc=False):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None

    @property
    def text(self) -> str:
        """The taint in kubectl's form: ``dedicated=gpu:NoSchedule``."""
        return f"{self.key}{f'={self.value}' if self.value else ''}:{self.effect}"


class NodeSpec(ApiType, frozen=True):
    unschedulable: bool | None = None
    taints: tuple[Taint, ...] | None = None


class NodeStatus(ApiType, frozen=True):
    allocatable: Mapping[str, WrittenQuantity] | None = None


class Node(ApiType, frozen=True):
    metadata: ObjectMeta | None = None
    spec: NodeSpec | None = None
    status: NodeStatus | None = None

    @property
    def name(self) -> str:
        """The node's name."""
        return (self.metadata or _NO_META).name

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels, empty if absent."""
        return (self.metadata or _NO_META).labels or {}

    @property
    def taints(self) -> tuple[Taint, ...]:
        """The node's taints, empty if absent."""
        return (self.spec.taints if self.spec else None) or ()


class ServiceSpec(ApiType, frozen=True):
    selector: Mapping[str, str] | None = None


class Service(ApiType, frozen=True):
    metadata: ObjectMeta | None = None
    spec: ServiceSpec | None = None
