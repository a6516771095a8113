"""What a scan says of one workload, and of a whole cluster."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from webhook.core.review.judging import Judged
from webhook.core.rules.frame.rule import NotEvaluated


class Origin(StrEnum):
    """Where a constraint comes from."""

    DECLARED = "declared"
    INJECTED = "injected"
    DEFAULT = "scheduler-default"


class PendingCause(StrEnum):
    """Why a pod is Pending; the worst first: what somebody has to change, then what waits by itself."""

    SPREAD = "spread"
    CAPACITY = "capacity"
    OTHER = "other"
    FITS = "fits"
    GATED = "gated"
    FOREIGN = "other scheduler"
    UNKNOWN = "unknown"


class ActualSkew(Struct, frozen=True, kw_only=True):
    """How the pods of one workload stand, by one constraint that its next pod has.

    Shape: ``domains`` has every eligible domain, those without a pod at 0; of very many only those that have pods, and
    ``empty`` is how many more there are. ``outside`` are matching pods on nodes that do not count, by the value that
    those have, "" for none. ``others`` are those of ``domains`` that belong to other workloads, by domain, never 0.
    ``own`` are the workload's running pods by the value of their node, "" for none, counted or not; None where they
    cannot be told from others. ``uncounted`` is how many of these the selector does not match. ``global_minimum`` and
    ``skew`` are None where no domain is eligible. ``path`` is where the constraint stands in the object; empty for one
    that is not written there.
    Unit: pods.
    """

    topology_key: str
    when_unsatisfiable: str
    selector: str
    max_skew: int
    min_domains: int | None
    domains: Mapping[str, int]
    empty: int = 0
    outside: Mapping[str, int] = {}
    others: Mapping[str, int] = {}
    own: Mapping[str, int] | None = None
    uncounted: int = 0
    global_minimum: int | None
    skew: int | None
    origin: Origin
    name: str
    path: str

    @property
    def eligible(self) -> int:
        """How many domains count, listed or not."""
        return len(self.domains) + self.empty

    @property
    def fewest(self) -> int:
        """In one domain; 0 where none counts."""
        return 0 if self.empty else min(self.domains.values(), default=0)

    @property
    def most(self) -> int:
        """In one domain; 0 where none counts."""
        return max(self.domains.values(), default=0)

    @property
    def above(self) -> bool:
        """Whether it is above maxSkew, as after a scale-down, or when a domain came back empty."""
        return self.skew is not None and self.skew > self.max_skew

    @property
    def hard(self) -> bool:
        """Whether the scheduler keeps it when it places a pod."""
        return self.when_unsatisfiable == "DoNotSchedule"


class PendingPod(Struct, frozen=True):
    """One pod that waits for a node; ``since`` is when it was created, an ISO time."""

    name: str
    uid: str
    since: str
    cause: PendingCause


class Stranded(NamedTuple):
    """The fewest and the most pods without a node in the end, over all orders; None where that is not known."""

    fewest: int | None
    most: int | None


class ZoneLoss(Struct, frozen=True, kw_only=True):
    """What the failure of one zone costs a workload, or all of them together.

    Shape: ``wanted`` are all pods that there are to be; pods that wait now are among those that stay Pending. Of all
    workloads together ``fewest`` leaves out those of which it is not known. ``unreachable`` is while the zone's nodes
    are still there, ``gone`` after they were deleted.
    """

    zone: str
    wanted: int
    unreachable: Stranded
    gone: Stranded

    @property
    def costs(self) -> bool:
        """Whether it costs anything, as far as that is known."""
        return (self.unreachable, self.gone) != (_NONE, _NONE)


_NONE = Stranded(0, 0)


class SmallestFix(Struct, frozen=True, kw_only=True):
    """The smallest change of an object that helps it.

    Shape: ``of`` is the rule whose finding it fixes, ``pending`` where it is of pods that wait, ``defaults`` where the
    object could declare what is injected. ``yaml`` is the part of the object as it should be, from its root; empty
    where it cannot be written so.
    """

    of: str
    text: str
    yaml: str = ""


class ScanFailure(Struct, frozen=True):
    """A bug: a part of the scan raised on an object. ``part`` is a rule, or what was asked about the pods."""

    part: str
    error: Exception


class ScannedWorkload(Struct, frozen=True, kw_only=True):
    """What there is to say of one workload.

    Shape: a pod whose controller is in no list stands for all pods of that controller, named by ``stands_for``
    (``ReplicaSet shop/web-1``), else empty. ``wanted`` is None where the kind has no number, ``pods`` where the
    workload's cannot be told from others; terminating ones are not among them. ``zones`` has every zone of the cluster,
    with the pods that run there; none where there are fewer than two. ``pending_pods`` are the oldest.
    ``would_deny`` are the rules that would refuse the object, if it were created now and nothing but ``off`` lowered
    what is configured for them. ``would_inject`` are the constraints that the next pod would get if the configured
    defaults were injected; ``lacking`` are the running pods without any constraint of a workload that would get some.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    stands_for: str = ""
    readable: bool = True
    wanted: int | None = None
    pods: int | None = None
    zones: Mapping[str, int] = {}
    pending: Mapping[PendingCause, int] = {}
    pending_since: str = ""
    pending_pods: tuple[PendingPod, ...] = ()
    findings: tuple[Judged, ...] = ()
    not_evaluated: tuple[NotEvaluated, ...] = ()
    failures: tuple[ScanFailure, ...] = ()
    skews: tuple[ActualSkew, ...] = ()
    losses: tuple[ZoneLoss, ...] = ()
    would_deny: tuple[str, ...] = ()
    would_inject: int = 0
    lacking: int = 0
    fix: SmallestFix | None = None

    @property
    def title(self) -> str:
        """Its name in messages: ``Deployment shop/web``."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def pending_fix(self) -> str:
        """The smallest change that helps its Pending pods; empty where none is known."""
        return self.fix.text if self.fix is not None and self.fix.of == "pending" else ""

    @property
    def oldest_for_spread(self) -> PendingPod | None:
        """The pod that waits longest because of spread; None where no such pod, or no time of one, is known."""
        found = (each for each in self.pending_pods if each.cause is PendingCause.SPREAD and each.since)
        return min(found, key=lambda each: (each.since, each.name), default=None)


class ScanGap(Struct, frozen=True):
    """A rule that was not evaluated, the missing fact, and for how many objects."""

    rule: str
    missing: str
    objects: int


class ClusterScan(Struct, frozen=True, kw_only=True):
    """What there is to say of a cluster.

    Shape: ``started`` and ``ended`` are ISO times, empty where nobody asked the time. ``workloads`` are in the order of
    `worst_first`, ``zones`` has the total of each. ``lacks`` are resources that could not be read, with the reason.
    ``nodes`` and ``pods`` are numbers; pods without a node are among them.
    """

    started: str = ""
    ended: str = ""
    workloads: tuple[ScannedWorkload, ...] = ()
    zones: tuple[ZoneLoss, ...] = ()
    gaps: tuple[ScanGap, ...] = ()
    lacks: Mapping[str, str] = {}
    nodes: int = 0
    pods: int = 0
    pending: Mapping[PendingCause, int] = {}
