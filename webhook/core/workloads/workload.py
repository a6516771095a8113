"""A workload of any kind: templates, replicas, strategy, rollout, and the selector of its pods."""

from msgspec import Struct

from webhook.core.api.selectors import Selector, selector_from_labels, valid_selector
from webhook.core.api.types import LabelSelector, ObjectMeta, PodTemplate, ResourceRequirements
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.workloads import built_in_objects
from webhook.core.workloads.built_in_objects import IntOrText
from webhook.core.workloads.custom_kinds import CONSTRAINTS
from webhook.core.workloads.kinds import POD, REPLICATION_CONTROLLER, GroupKind, Traits


class Template(Struct, frozen=True, kw_only=True):
    """One pod template of an object; for a Pod the object itself.

    Shape: ``path`` is the prefix that stands before ``spec.topologySpreadConstraints[0]`` and ``metadata.labels``:
    empty for a Pod, ``spec.template.`` for a Deployment.
    ``alone`` is the path of constraints that stand outside of any pod template.
    Unit: ``replicas`` are pods made from this template; None where the object does not say.
    """

    path: str
    template: PodTemplate
    replicas: int | None = None
    alone: str = ""

    @property
    def constraints_path(self) -> str:
        """Where its constraints stand."""
        return self.alone or f"{self.path}spec.{CONSTRAINTS}"


class Strategy(Struct, frozen=True, kw_only=True):
    """How an object replaces its pods, as written; absent fields are None, not their defaults."""

    type: str | None = None
    max_surge: built_in_objects.IntOrText | None = None
    max_unavailable: built_in_objects.IntOrText | None = None
    partition: built_in_objects.IntOrText | None = None


class ClaimTemplates(Struct, frozen=True):
    """A StatefulSet's claims: the pod ``web-0`` has one named ``<name>-web-0`` for each of the names.

    Shape: ``classes`` has the storage class of each claim, "" where none is named; ``requests`` what each asks for.
    """

    names: tuple[str, ...]
    classes: tuple[str, ...] = ()
    requests: tuple[ResourceRequirements | None, ...] = ()


class Workload(Struct, frozen=True, kw_only=True):
    """An object that is a pod or makes pods.

    Attributes:
        traits: Those of its kind, read once, since some ten rules use them in every review.
        selector: Its own ``spec.selector``.
        built_in: Whether kube-apiserver validates the templates.
        suspended: It makes no pods at present.
        paused: It makes no pods of a new template.
        group: That of ``api_version``, empty for core.
        late_labels: Keys of labels that its controller puts on some pods, as the object states.
        first_ordinal: Of a StatefulSet: the number in the first pod's name.
        parallel: The pods of a StatefulSet do not wait for one another.
        indexed: Each pod of a Job has a completion index.
        manual_selector: The API server generates no labels for the Job.
        grouped: The pods of a Job are scheduled as one PodGroup.
        whole: The templates are the pods as created. Otherwise only constraints are known, and some labels.
    """

    api_version: str
    kind: str
    meta: ObjectMeta
    traits: Traits
    templates: tuple[Template, ...]
    replicas: int | None = None
    selector: LabelSelector | None = None
    built_in: bool = False
    strategy: Strategy | None = None
    suspended: bool = False
    paused: bool = False
    group: str = ""
    late_labels: tuple[str, ...] = ()
    claims: ClaimTemplates | None = None
    first_ordinal: int = 0
    parallel: bool = False
    indexed: bool = False
    manual_selector: bool = False
    grouped: bool = False
    whole: bool = True

    @property
    def group_kind(self) -> GroupKind:
        """Its kind, whatever the version."""
        return self.group, self.kind

    @property
    def recreates(self) -> bool:
        """Whether all old pods go before a new one is made, where its controller replaces them by itself."""
        return self.strategy is not None and self.strategy.type == "Recreate"

    @property
    def is_pod(self) -> bool:
        """Whether it is a pod itself, and makes none."""
        return self.kind == POD[1] and self.group == POD[0]


def namespace_of(stated: str, otherwise: str = "") -> str:
    """Where an object and its pods will be created: as the object says, else the caller, else kubectl."""
    return stated or otherwise or DEFAULT_NAMESPACE


def selector_of(workload: Workload) -> Selector | None:
    """The selector of the workload's pods; None if the kind has none, or if it is invalid."""
    written = workload.selector
    if written is None and workload.group_kind == REPLICATION_CONTROLLER and workload.templates:
        return selector_from_labels(workload.templates[0].template.labels)
    return compiled(written)


def compiled(written: LabelSelector | None) -> Selector | None:
    """A workload's selector, compiled; None for an empty or invalid one."""
    selector = valid_selector(written)
    return selector if selector is not None and selector.requirements else None


# The API server's defaults for a Deployment that says nothing.
DEFAULT_SURGE: IntOrText = "25%"
_DEFAULT = "25%"  # of maxUnavailable too


def surge_of(strategy: Strategy | None, replicas: int) -> int:
    """Pods above ``replicas`` during a rolling update; 0 for Recreate, and where the text is no percentage.

    Source: deployment/util/deployment_util.go ``ResolveFenceposts``: a percentage of maxSurge rounds up.
    """
    if strategy is not None and strategy.type == "Recreate":
        return 0
    hundredths = _hundredths(None if strategy is None else strategy.max_surge, replicas)
    return -(-hundredths // 100)


def unavailable_of(strategy: Strategy | None, replicas: int) -> int:
    """Pods that may be missing during a rolling update; all of them for Recreate.

    Source: deployment/util/deployment_util.go ``ResolveFenceposts``: a percentage of maxUnavailable rounds down, and is
    1 where both are 0.
    """
    if strategy is not None and strategy.type == "Recreate":
        return replicas
    allowed = _hundredths(None if strategy is None else strategy.max_unavailable, replicas) // 100
    return allowed or int(not surge_of(strategy, replicas))


def unavailable_ordinals(strategy: Strategy | None, replicas: int) -> int:
    """Pods of a StatefulSet that may be missing during a rolling update, at least 1.

    Source: statefulset/stateful_set_utils.go ``getStatefulSetMaxUnavailable``.
    """
    written = None if strategy is None else strategy.max_unavailable
    return 1 if written is None else max(1, _hundredths(written, replicas) // 100)


def _hundredths(written: IntOrText | None, replicas: int) -> int:
    """A number of pods or a percentage of the replicas, in hundredths of a pod; 0 for any other text."""
    if isinstance(written, int):
        return max(written, 0) * 100
    percent = (written or _DEFAULT).removesuffix("%")
    # Longer numbers are refused by the API server, and int() would take its time over them.
    return replicas * int(percent) if percent.isdecimal() and percent.isascii() and len(percent) < 6 else 0


def worst_final_skew(domains: int, replicas: int, surge: int, max_skew: int) -> int:
    """Largest difference between two domains that some order of a rolling update leaves behind.

    Shape: ``surge`` is at least 1. Every placement keeps the scheduler's rule over old and new pods together; any old
    pod may be deleted next; the old pods may start in any arrangement that maxSkew allows.
    Unit: pods.
    """
    if domains < 2:
        return 0
    # The worst order: the update ends with as many pods as possible in one domain and as few as possible in another.
    others = domains - 1
    old = min((replicas + others * max_skew) // domains, replicas)
    apart = max_skew + min(surge, old)
    most = min((replicas + surge + others * max_skew) // domains, (replicas + others * apart) // domains, replicas)
    return most - max(replicas - others * most, most - apart, 0)
