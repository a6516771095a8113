"""The settings of a command's checks: policy, Kubernetes release, cluster and date."""

from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec import Struct

from webhook.core.api.types import TypeMeta
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.context import Context
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import Autoscaler
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.policy import Policy


class Frame(Struct, frozen=True, kw_only=True):
    """The settings of all checks in a command.

    Attributes:
        policy: The policy.
        today: ISO date, for expired exemptions.
        namespace: The namespace of objects without one.
        rules: The rules to report. Empty for all.
        index: The cluster. None without a cluster.
        declared: The cluster, with the autoscalers and SpreadGroups of the input added. If None, ``index`` is used.
        asked_version: The release in --kube-version. It overrides ``cluster_version``.
        cluster_version: The cluster's release.
        scalers: Autoscalers in the input.
        patches: The resolved paths of a kustomization's patch files. Each has the type of the patched object, or None
            if the kustomization does not name the type.
        same_file: For each file with several workloads, an index of these workloads by the file's name.
        reasons_required: Whether an ignore comment needs a reason.
    """

    policy: Policy
    today: str
    namespace: str = ""
    rules: frozenset[str] = frozenset()
    index: ClusterIndex | None = None
    declared: ReadOnlyIndex | None = None
    asked_version: KubernetesVersion | None = None
    cluster_version: KubernetesVersion | None = None
    scalers: tuple[Autoscaler, ...] = ()
    patches: Mapping[str, TypeMeta | None] = {}
    same_file: Mapping[str, ReadOnlyIndex] = {}
    reasons_required: bool = False

    @property
    def version(self) -> KubernetesVersion:
        """The Kubernetes release for the rules: from --kube-version, else of the cluster, else the newest supported."""
        return self.asked_version or self.cluster_version or RECORDED

    def context(self, namespace: str = "", file: str = "") -> Context:
        """The context of the rules, for an object of this file in this namespace."""
        return Context(
            policy=self.policy,
            version=self.version,
            index=self.declared or self.index,
            now=self.today,
            namespace=namespace,
            scalers=self.scalers,
            same_file=self.same_file.get(file),
        )


def today() -> str:
    """The date in UTC, in ISO format."""
    return datetime.now(UTC).date().isoformat()
