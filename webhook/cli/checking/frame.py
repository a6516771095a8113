"""With what a command looks at manifests: the policy, the release, the cluster, the day."""

from msgspec import Struct

from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import Autoscaler
from webhook.core.policy.policy import Policy
from webhook.core.rules.frame.subject import Circumstances


class Frame(Struct, frozen=True, kw_only=True):
    """What objects are looked at with.

    Shape: ``today`` is an ISO date; ``namespace`` is for objects that name none; ``rules`` are the only ones to
    report, all where it is empty. ``index`` is None where no cluster is known. ``asked_version`` outweighs
    ``cluster_version``. ``scalers`` stand in the input.
    """

    policy: Policy
    today: str
    namespace: str = ""
    rules: frozenset[str] = frozenset()
    index: ClusterIndex | None = None
    asked_version: KubernetesVersion | None = None
    cluster_version: KubernetesVersion | None = None
    scalers: tuple[Autoscaler, ...] = ()

    @property
    def version(self) -> KubernetesVersion:
        """The release whose behaviour counts."""
        return self.asked_version or self.cluster_version or RECORDED

    def circumstances(self, namespace: str = "") -> Circumstances:
        """The same for the rules, of an object that would be created in this namespace."""
        return Circumstances(
            policy=self.policy,
            version=self.version,
            index=self.index,
            today=self.today,
            namespace=namespace,
            scalers=self.scalers,
        )
