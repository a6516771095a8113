"""What an object is examined in: the policy, the release, the cluster and the time there is."""

from collections.abc import Callable
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.version import KubernetesVersion
from webhook.core.index.objects import Autoscaler
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.policy import Policy


class Context(Struct, frozen=True, kw_only=True):
    """The circumstances in which an object is examined: the same for all rules, and mostly for all objects of a run.

    Shape: ``index`` is None without a cluster. ``today`` is an ISO date (UTC), ``now`` an ISO time (UTC), empty if
    unknown. Objects that cost much (`cost`) are not judged if they can be ``elsewhere``, and rules do not look at the
    cluster for them if ``unlooked`` says why not. ``namespace`` is where the object would be created if it names none.
    ``scalers`` are autoscalers that come with it. ``same_file`` has the workloads and SpreadGroups of its file, None
    where the file has only one workload. ``offline`` says that no kube-apiserver sees the object
    now, so that we give its warnings. Rules that are ``unheard`` are not asked. ``creating`` is false if the object
    exists already. ``fixes`` says whether the fix of each finding is tried. The answer is due when the ``clock`` shows
    ``until``.
    Unit: all in seconds, ``age`` since the index was last known to be current.
    """

    policy: Policy
    version: KubernetesVersion
    index: ReadOnlyIndex | None = None
    today: str = ""
    now: str = ""
    age: Callable[[], float] = lambda: 0.0
    clock: Callable[[], float] = lambda: 0.0
    until: float = inf
    unlooked: str = ""
    elsewhere: bool = False
    namespace: str = ""
    scalers: tuple[Autoscaler, ...] = ()
    same_file: ReadOnlyIndex | None = None
    offline: bool = False
    unheard: frozenset[str] = frozenset()
    creating: bool = True
    fixes: bool = True

    @property
    def cluster(self) -> ReadOnlyIndex:
        """The cluster, for who knows that there is one."""
        if self.index is None:
            raise LookupError("no cluster is known")
        return self.index

    def beside(self, index: ReadOnlyIndex) -> "Context":
        """The same beside another cluster."""
        return replace(self, index=index)
