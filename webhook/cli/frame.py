"""What a command examines manifests with: policy, release, cluster, date."""

from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec import Struct

from webhook.core.api.types import TypeMeta
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.context import Context
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import Autoscaler
from webhook.core.policy.policy import Policy


class Frame(Struct, frozen=True, kw_only=True):
    """What objects are examined with, for a whole command.

    Shape: ``today`` is an ISO date; ``namespace`` is for objects that name none; ``rules`` are the only ones to report,
    empty for all. ``index`` is None without a cluster. ``asked_version`` takes precedence over ``cluster_version``.
    ``scalers`` are autoscalers in the input, ``patches`` the resolved paths of files that a kustomization
    patches with, each with the type of its target if stated.
    ``same_file`` has an index of each file with several workloads, by its name.
    """

    policy: Policy
    today: str
    namespace: str = ""
    rules: frozenset[str] = frozenset()
    index: ClusterIndex | None = None
    asked_version: KubernetesVersion | None = None
    cluster_version: KubernetesVersion | None = None
    scalers: tuple[Autoscaler, ...] = ()
    patches: Mapping[str, TypeMeta | None] = {}
    same_file: Mapping[str, ClusterIndex] = {}

    @property
    def version(self) -> KubernetesVersion:
        """The release to examine for: as asked, else the cluster's, else the recorded one."""
        return self.asked_version or self.cluster_version or RECORDED

    def context(self, namespace: str = "", file: str = "") -> Context:
        """The same for the rules, of an object of this file that would be created in this namespace."""
        return Context(
            policy=self.policy,
            version=self.version,
            index=self.index,
            today=self.today,
            namespace=namespace,
            scalers=self.scalers,
            same_file=self.same_file.get(file),
        )


def today() -> str:
    """The date, in ISO format."""
    return datetime.now(UTC).date().isoformat()
