"""The watched kinds and their paths on the API server, and further kinds with pod templates."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from webhook.cluster.connection import ApiServer
from webhook.cluster.discovery import read_group_versions, read_plurals
from webhook.cluster.errors import RefusedError
from webhook.core.api import spread_group
from webhook.core.api.types import TypeMeta
from webhook.core.index.readers import Reader, reader
from webhook.core.policy.policy import Policy
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.core.workloads.kind_fields import has_template
from webhook.core.workloads.kinds import (
    DEPLOYMENT,
    NATIVE,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    TEMPLATED,
    GroupKind,
    group_of,
    native_version,
    resource_name,
)
from webhook.core.workloads.operators import OPERATOR_LAYOUTS


class Resource(Struct, frozen=True, kw_only=True):
    """A kind of object in the Kubernetes API.

    Attributes:
        name: The plural of the kind, also used in metrics and messages. Empty until the API server reports it.
        api_versions: The versions to request, in order of preference.
        required: Whether reviews need this kind.
        extension: Whether the cluster may lack the kind. A missing kind then counts as one without objects.
    """

    kind: str
    name: str
    api_versions: tuple[str, ...] = ("v1",)
    field_selector: str = ""
    required: bool = True
    extension: bool = False
    embedded: tuple[EmbeddedKind, ...] = ()

    @property
    def title(self) -> str:
        """The plural for messages. Before the API server reports the plural, the kind and its group: ``Kind.group``."""
        return self.name or f"{self.kind}.{group_of(self.api_versions[0])}"

    def reader(self, api_version: str) -> Reader:
        """Return the reader for objects of this resource in this API version. Raises ValueError for an unused kind."""
        read = reader(TypeMeta(api_version=api_version, kind=self.kind), self.embedded)
        if read is None:
            raise ValueError(self.kind)
        return read


def native(kind: GroupKind) -> Resource:
    """Return the resource of a workload kind of Kubernetes itself."""
    return Resource(kind=kind[1], name=resource_name(kind), api_versions=(native_version(kind),))


def group_path(api_version: str) -> str:
    """Return the API server's path of a group and version."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


_STORAGE = ("storage.k8s.io/v1",)
BUILT_IN_RESOURCES = (
    Resource(kind="Node", name="nodes"),
    Resource(kind="Namespace", name="namespaces"),
    Resource(kind="Service", name="services"),
    *(native(kind) for kind in (REPLICA_SET, STATEFUL_SET, DEPLOYMENT, REPLICATION_CONTROLLER)),
    # The scheduler ignores finished pods too, and in many clusters most pods are finished.
    Resource(kind="Pod", name="pods", field_selector="status.phase!=Succeeded,status.phase!=Failed"),
    Resource(
        kind="HorizontalPodAutoscaler",
        name="horizontalpodautoscalers",
        api_versions=("autoscaling/v2", "autoscaling/v1"),
        required=False,
    ),
    # Only pods with volumes need these kinds.
    Resource(kind="PersistentVolumeClaim", name="persistentvolumeclaims", required=False),
    Resource(kind="PersistentVolume", name="persistentvolumes", required=False),
    Resource(kind="StorageClass", name="storageclasses", api_versions=_STORAGE, required=False),
    Resource(kind="CSINode", name="csinodes", api_versions=_STORAGE, required=False),
    Resource(kind="CSIDriver", name="csidrivers", api_versions=_STORAGE, required=False),
    Resource(kind="CSIStorageCapacity", name="csistoragecapacities", api_versions=_STORAGE, required=False),
    Resource(kind="VolumeAttachment", name="volumeattachments", api_versions=_STORAGE, required=False),
    # kube-apiserver's own admission uses these kinds to change pods.
    Resource(kind="LimitRange", name="limitranges", required=False),
    Resource(kind="PriorityClass", name="priorityclasses", api_versions=("scheduling.k8s.io/v1",), required=False),
    Resource(kind="RuntimeClass", name="runtimeclasses", api_versions=("node.k8s.io/v1",), required=False),
    Resource(
        kind=spread_group.KIND,
        name=spread_group.RESOURCE,
        api_versions=(spread_group.API_VERSION,),
        required=False,
        extension=True,
    ),
)
# Only commands read these.
BUDGETS = Resource(kind="PodDisruptionBudget", name="poddisruptionbudgets", api_versions=("policy/v1",), required=False)
_WATCHED = {(version, resource.kind) for resource in BUILT_IN_RESOURCES for version in resource.api_versions}


def watched(policy: Policy) -> tuple[Resource, ...]:
    """Return the kinds to watch: the built-in kinds, and the kinds configured in the policy."""
    named = [(kind.api_version, kind.kind) for kind in policy.workloads]
    named += policy.defaults.owners
    return BUILT_IN_RESOURCES + tuple(
        Resource(kind=kind, name="", api_versions=(api_version,), required=False, embedded=policy.workloads)
        for api_version, kind in dict.fromkeys(named)
        if (api_version, kind) not in _WATCHED
        # The index keeps nothing of owners without a pod template.
        and has_template(api_version, kind, policy.workloads)
    )


def with_workloads(server: ApiServer, policy: Policy) -> tuple[Resource, ...]:
    """Return the watched kinds, and every other kind with pod templates on the API server."""
    resources: dict[GroupKind, Resource] = {}
    for resource in (*watched(policy), *map(native, NATIVE), *_custom(server)):
        group = group_of(resource.api_versions[0])
        resources.setdefault((group, resource.kind), resource)
    return tuple(resources.values())


def _custom(server: ApiServer) -> Iterator[Resource]:
    """Yield the server's custom resources of known kinds, in the first version with this kind."""
    with server.open("/apis") as stream:
        groups = read_group_versions(stream.body())
    for group, versions in groups.items():
        wanted = {kind for api_group, kind in (*TEMPLATED, *OPERATOR_LAYOUTS) if api_group == group and "." in group}
        for version in versions:
            if not wanted:
                break
            plurals = _plurals(server, version)
            for kind in sorted(wanted & plurals.keys()):
                yield Resource(kind=kind, name=plurals[kind], api_versions=(version,), required=False)
            wanted -= plurals.keys()


def _plurals(server: ApiServer, api_version: str) -> Mapping[str, str]:
    try:
        with server.open(group_path(api_version)) as stream:
            return read_plurals(stream.body())
    except RefusedError:
        return {}  # an aggregated API whose server is down, or a CRD that has just gone
