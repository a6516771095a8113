"""The context of an examination: the policy, the release, the cluster and the budget."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import Pod
from webhook.core.api.version import KubernetesVersion
from webhook.core.budget import Budget
from webhook.core.index.objects import Autoscaler
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.lookup import profile_for
from webhook.core.policy.policy import Policy
from webhook.core.scheduler.ephemeral_claims import with_ephemeral_claims
from webhook.core.scheduler.problem import Problem, take


class Context(Struct, frozen=True, kw_only=True):
    """The context of an examination, shared by all rules and by most objects of a run.

    Attributes:
        policy: The policy.
        version: The Kubernetes release.
        index: The cluster. None if no cluster is known.
        now: An ISO time (UTC). The CLI gives only a date. Empty if unknown.
        age: Seconds since the index was last known to be current.
        budget: The time and effort that the examination may take.
        namespace: The namespace of an object that names none.
        scalers: Autoscalers in the same input.
        same_file: The workloads and SpreadGroups of the object's file. None for a file with one workload.
        offline: Whether no API server sees the object now. Then evenspread gives the API server's warnings.
        skipped_rules: Ids of rules to skip.
        warned_by_policies: Ids of rules whose warnings and audits the API server's own policies give.
        creating: False if the object exists already.
        fixes: Whether to test the fix of each finding.
    """

    policy: Policy
    version: KubernetesVersion
    index: ReadOnlyIndex | None = None
    now: str = ""
    age: Callable[[], float] = float  # returns 0.0, and can be sent to another process
    budget: Budget = Budget()
    namespace: str = ""
    scalers: tuple[Autoscaler, ...] = ()
    same_file: ReadOnlyIndex | None = None
    offline: bool = False
    skipped_rules: frozenset[str] = frozenset()
    warned_by_policies: frozenset[str] = frozenset()
    creating: bool = True
    fixes: bool = True

    @property
    def today(self) -> str:
        """The ISO date (UTC)."""
        return self.now[:10]

    @property
    def cluster(self) -> ReadOnlyIndex:
        """The cluster. Raises LookupError if no cluster is known."""
        if self.index is None:
            raise LookupError("no cluster is known")
        return self.index

    def with_index(self, index: ReadOnlyIndex) -> "Context":
        """Return the context with another cluster."""
        return replace(self, index=index)


def problem_of(pod: Pod, context: Context) -> Problem:
    """Return the pod's scheduling problem in the context's cluster, with the profile of the pod's scheduler.

    A pod without a uid does not exist yet. The claims of its ephemeral volumes are added to the cluster.
    """
    index = with_ephemeral_claims(context.cluster, pod)
    return take(index, pod, profile=profile_for(context.policy, pod.pod_spec.scheduler_name))
