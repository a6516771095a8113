"""What is watched: kinds that an answer depends on, and where the API server keeps them."""

from msgspec import Struct

from webhook.core.api.types import TypeMeta
from webhook.core.index.readers import Reader, reader
from webhook.core.policy.policy import Policy
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.core.workloads.kinds import (
    DEPLOYMENT,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    GroupKind,
    group_of,
    native_version,
    plural,
)
from webhook.core.workloads.reading import has_template


class Resource(Struct, frozen=True, kw_only=True):
    """One kind of object in the API.

    Shape: ``name`` is the API's plural, and what metrics and messages call it; empty where the API server has to be
    asked for it. ``api_versions`` are tried in order. Without ``required`` a kind that cannot be read is done without.
    """

    kind: str
    name: str
    api_versions: tuple[str, ...] = ("v1",)
    field_selector: str = ""
    required: bool = True
    embedded: tuple[EmbeddedKind, ...] = ()

    @property
    def title(self) -> str:
        """What it is called before its plural is known."""
        return self.name or f"{self.kind}.{group_of(self.api_versions[0])}"

    def reader(self, api_version: str) -> Reader:
        """What reads its objects in this version.

        Errors: ValueError for a kind that nothing reads.
        """
        read = reader(TypeMeta(api_version=api_version, kind=self.kind), self.embedded)
        if read is None:
            raise ValueError(self.kind)
        return read


def native(kind: GroupKind) -> Resource:
    """A workload of Kubernetes itself."""
    return Resource(kind=kind[1], name=plural(kind), api_versions=(native_version(kind),))


def group_path(api_version: str) -> str:
    """Where the API server keeps a group's version."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


_STORAGE = ("storage.k8s.io/v1",)
BUILT_IN = (
    Resource(kind="Node", name="nodes"),
    Resource(kind="Namespace", name="namespaces"),
    Resource(kind="Service", name="services"),
    *(native(kind) for kind in (REPLICA_SET, STATEFUL_SET, DEPLOYMENT, REPLICATION_CONTROLLER)),
    # The scheduler does not see finished pods either, and in many clusters they are the greater part.
    Resource(kind="Pod", name="pods", field_selector="status.phase!=Succeeded,status.phase!=Failed"),
    Resource(
        kind="HorizontalPodAutoscaler",
        name="horizontalpodautoscalers",
        api_versions=("autoscaling/v2", "autoscaling/v1"),
        required=False,
    ),
    # Only pods with volumes ask for these.
    Resource(kind="PersistentVolumeClaim", name="persistentvolumeclaims", required=False),
    Resource(kind="PersistentVolume", name="persistentvolumes", required=False),
    Resource(kind="StorageClass", name="storageclasses", api_versions=_STORAGE, required=False),
    Resource(kind="CSINode", name="csinodes", api_versions=_STORAGE, required=False),
)
_WATCHED = {(version, resource.kind) for resource in BUILT_IN for version in resource.api_versions}


def watched(policy: Policy) -> tuple[Resource, ...]:
    """Every kind that answers under this policy depend on: the built-in ones, and owners that it names."""
    named = [(each.api_version, each.kind) for each in policy.workloads]
    named += policy.defaults.owners
    return BUILT_IN + tuple(
        Resource(kind=kind, name="", api_versions=(api_version,), required=False, embedded=policy.workloads)
        for api_version, kind in dict.fromkeys(named)
        if (api_version, kind) not in _WATCHED
        # Of other owners nothing is read that an answer could depend on.
        and has_template(api_version, kind, policy.workloads)
    )
