"""The results of a scan: of a workload, and of the whole cluster.

Fields of `PublishedSkew`, `PublishedWorkload` and `PublishedScan` are part of the console's API, under stable camelCase
names. Fields of their subclasses are not. The API omits them or formats them differently
(`webhook/answers/scanned.py`).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, field

from webhook.core.review.judging import JudgedFinding
from webhook.core.rules.frame.rule import NotEvaluated
from webhook.core.text import object_title


class Origin(StrEnum):
    """Where a constraint comes from."""

    DECLARED = "declared"
    INJECTED = "injected"
    DEFAULT = "scheduler-default"


class PendingCause(StrEnum):
    """Why a pod is Pending, the worst cause first.

    First come the causes that a user must fix, then the temporary causes.
    """

    SPREAD = "spread"
    CAPACITY = "capacity"
    OTHER = "other"
    FITS = "fits"
    GATED = "gated"
    FOREIGN = "other scheduler"
    UNKNOWN = "unknown"


Count = Annotated[int, Meta(ge=0)]


class Published(Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of the JSON of a scan. Existing fields keep their name and meaning. Releases may add fields."""


class PublishedSkew(Published, frozen=True, kw_only=True):
    """A constraint of a workload's next pod, and the number of the workload's pods in each domain."""

    topology_key: str
    when_unsatisfiable: str
    selector: str
    max_skew: int
    skew: Annotated[int | None, Meta(description="null if no domain is eligible.")]
    global_minimum: Annotated[int | None, Meta(description="null if no domain is eligible.")]
    domains: Annotated[
        Mapping[str, Count],
        Meta(
            description="The pods of each eligible domain, 0 for an empty one. With very many domains, empty ones are"
            " left out."
        ),
    ]
    origin: Origin
    empty: Annotated[Count, Meta(description="Number of empty domains left out of domains.")] = field(
        default=0, name="emptyDomains"
    )
    min_domains: int | None = None
    outside: Annotated[
        Mapping[str, Count],
        Meta(
            description="Matching pods on nodes excluded from the count, by the node's label value;"
            ' "" without the label.'
        ),
    ] = {}
    others: Annotated[
        Mapping[str, Count],
        Meta(description="Counted pods of other workloads, by domain, without domains that have none."),
    ] = {}
    own: Annotated[
        Mapping[str, Count] | None,
        Meta(
            description="The workload's running pods, counted or not, by the label value of their node. "
            "null if evenspread cannot identify them."
        ),
    ] = None
    path: Annotated[str, Meta(description="The constraint's path in the object; empty if the object lacks it.")]


class ActualSkew(PublishedSkew, frozen=True, kw_only=True):
    """The skew of a constraint, and two fields that reports leave out.

    Attributes:
        name: The constraint's name in messages, for example ``zone[0]``.
        uncounted: How many of the workload's own pods its selector does not match.
    """

    uncounted: int = 0
    name: str

    @property
    def eligible(self) -> int:
        """The number of eligible domains, listed or not."""
        return len(self.domains) + self.empty

    @property
    def fewest(self) -> int:
        """The fewest pods in an eligible domain. 0 without such a domain."""
        return 0 if self.empty else min(self.domains.values(), default=0)

    @property
    def most(self) -> int:
        """The most pods in an eligible domain. 0 without such a domain."""
        return max(self.domains.values(), default=0)

    @property
    def above(self) -> bool:
        """Whether the actual skew exceeds maxSkew, for example after a scale-down or when an empty domain returns."""
        return self.skew is not None and self.skew > self.max_skew

    @property
    def hard(self) -> bool:
        """Whether the constraint is hard: whenUnsatisfiable is DoNotSchedule."""
        return self.when_unsatisfiable == "DoNotSchedule"


class PendingPod(Struct, frozen=True):
    """A pod without a node."""

    name: str
    uid: str
    since: Annotated[str, Meta(description="When it was created.")]
    cause: PendingCause


class Stranded(Struct, frozen=True):
    """The fewest and the most Pending pods after a failure, over all orders of placing them. None if unknown."""

    fewest: int | None
    most: int | None

    def text(self, unknown: str) -> str:
        """Return the number in words: ``3``, ``2 to 5`` or ``2 or more``. Return the text ``unknown`` if unknown."""
        if self.fewest == self.most:
            return unknown if self.fewest is None else f"{self.fewest:,}"
        if self.most is None:
            return f"{self.fewest or 0:,} or more"
        return f"{self.fewest or 0:,} to {self.most:,}"


class ZoneLoss(Published, frozen=True, kw_only=True):
    """The number of Pending pods after the failure of a zone.

    The number is for a workload, or for all workloads together. Pods already Pending before the failure are included.
    The total of ``fewest`` leaves out workloads with an unknown number.
    """

    zone: str
    wanted: Annotated[Count, Meta(description="The wanted number of pods.")] = field(name="pods")
    unreachable: Annotated[Stranded, Meta(description="Pending pods before the nodes are deleted.")] = field(
        name="pendingIfUnreachable"
    )
    gone: Annotated[Stranded, Meta(description="Pending pods after the nodes are deleted.")] = field(
        name="pendingIfGone"
    )

    @property
    def costs(self) -> bool:
        """Whether any pod may stay Pending."""
        return self.ends != (_NONE, _NONE)

    @property
    def ends(self) -> tuple[Stranded, Stranded]:
        """The Pending pods before and after the deletion of the failed zone's nodes."""
        return self.unreachable, self.gone

    @property
    def most_pending(self) -> int:
        """The highest known number of pods that stay Pending."""
        return max(pods or 0 for each in self.ends for pods in (each.fewest, each.most))


_NONE = Stranded(0, 0)


class SmallestFix(Struct, frozen=True, kw_only=True):
    """The smallest helpful change of an object."""

    of: Annotated[
        str,
        Meta(description="The id of the rule, `pending` for Pending pods, or `defaults` for missing defaults."),
    ]
    text: str
    yaml: Annotated[
        str, Meta(description="YAML of the changed fields, from the object's root; empty without a tested change.")
    ] = ""


class ScanFailure(Struct, frozen=True):
    """An exception raised in a part of the scan, because of a bug.

    ``part`` is the id of a rule, or the name of a check of the pods.
    """

    part: str
    error: Exception


class GuardState(StrEnum):
    """Whether the scale-in guard orders the removal of a workload's pods."""

    REPORT = "report"  # the policy asks for the worst skew only
    REQUESTED = "requested"  # the policy asks for the guard. Only the controller knows whether it is active.
    WAITING = "waiting"  # for the controller's limit of writes per minute
    GUARDED = "guarded"
    STOPPED = "stopped"  # another program writes deletion costs


class ScaleInState(Published, frozen=True, kw_only=True):
    """The worst scale-in of a workload with `scaleIn: report` or `guard` in the policy."""

    worst_skew: Annotated[Count, Meta(description="The largest skew of any constraint that a scale-in can leave.")]
    above: Annotated[bool, Meta(description="Whether a scale-in can leave a skew above maxSkew.")]
    guard: GuardState
    inactive: Annotated[str, Meta(description="Why a requested guard is not active; empty if unknown.")] = ""


class PublishedWorkload(Published, frozen=True, kw_only=True):
    """The scan of one workload."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    stands_for: Annotated[
        str,
        Meta(
            description="The controller that created this pod, such as ReplicaSet shop/web-1. This pod then represents"
            " all pods of the controller. Else empty."
        ),
    ] = ""
    readable: bool = True
    wanted: Annotated[int | None, Meta(description="The wanted number of pods; null if the kind has none.")] = None
    pods: Annotated[
        int | None, Meta(description="Pods that do not terminate; null if evenspread cannot identify them.")
    ] = None
    zones: Annotated[
        Mapping[str, Count], Meta(description="Running pods in every zone; empty with fewer than two zones.")
    ] = {}
    pending: Mapping[PendingCause, Count] = {}
    pending_since: str = ""
    pending_pods: Annotated[tuple[PendingPod, ...], Meta(description="The oldest Pending pods.")] = ()
    losses: tuple[ZoneLoss, ...] = field(default=(), name="zoneLosses")
    would_deny: Annotated[
        tuple[str, ...], Meta(description="Rules that would reject the object if the ceiling were deny.")
    ] = ()
    would_inject: Annotated[Count, Meta(description="Constraints that the defaults would add to the next pod.")] = 0
    lacking: Annotated[
        Count, Meta(description="Running pods without any constraint, if the defaults would add some.")
    ] = 0
    fix: SmallestFix | None = None
    scale_in: Annotated[
        ScaleInState | None,
        Meta(description="null unless the policy's scaleIn is report or guard, and ReplicaSets remove the pods."),
    ] = None


class ScannedWorkload(PublishedWorkload, frozen=True, kw_only=True):
    """A scanned workload, with its findings, unevaluated rules, exceptions and skews."""

    findings: tuple[JudgedFinding, ...] = ()
    not_evaluated: tuple[NotEvaluated, ...] = ()
    failures: tuple[ScanFailure, ...] = ()
    skews: tuple[ActualSkew, ...] = ()

    @property
    def title(self) -> str:
        """The workload's name in messages: ``Deployment shop/web``."""
        return object_title(self.kind, self.namespace, self.name)

    @property
    def pending_fix(self) -> str:
        """The smallest change that helps the workload's Pending pods. Empty if none is known."""
        return self.fix.text if self.fix is not None and self.fix.of == "pending" else ""

    @property
    def oldest_for_spread(self) -> PendingPod | None:
        """The oldest pod Pending because of spread. None without such a pod, or if no creation time is known."""
        pods = (pod for pod in self.pending_pods if pod.cause is PendingCause.SPREAD and pod.since)
        return min(pods, key=lambda pod: (pod.since, pod.name), default=None)


class RuleGap(Struct, frozen=True, rename="camel"):
    """A rule that was not evaluated, and the missing fact."""

    rule: str
    missing: str = field(name="notEvaluated")


class ScanGap(RuleGap, frozen=True):
    """A rule that was not evaluated for some objects, and the number of these objects."""

    objects: Count


class PublishedScan(Published, frozen=True, kw_only=True):
    """The scan of a whole cluster. Both times are ISO times, or empty."""

    started: str = ""
    ended: str = ""
    nodes: Count = 0
    pods: Annotated[Count, Meta(description="Includes pods without a node.")] = 0
    pending: Annotated[Mapping[PendingCause, Count], Meta(description="Pending pods by cause.")] = {}
    zones: Annotated[tuple[ZoneLoss, ...], Meta(description="All workloads together.")] = ()
    gaps: tuple[ScanGap, ...] = field(default=(), name="notEvaluated")
    lacks: Annotated[Mapping[str, str], Meta(description="Resources that could not be read, and why.")] = {}


class ClusterScan(PublishedScan, frozen=True, kw_only=True):
    """The scan of a whole cluster. Its workloads are sorted by `_worst_first`."""

    workloads: tuple[ScannedWorkload, ...] = ()
