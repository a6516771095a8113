"""A workload of any kind: templates, replicas, strategy, rollout and selector."""

from msgspec import Struct

from webhook.core.api.selectors import Selector, selector_from_labels, valid_selector
from webhook.core.api.types import LabelSelector, ObjectMeta, PodTemplate, ResourceRequirements
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.workloads import built_in_objects
from webhook.core.workloads.built_in_objects import IntOrText
from webhook.core.workloads.custom_kinds import CONSTRAINTS
from webhook.core.workloads.kinds import POD, REPLICATION_CONTROLLER, GroupKind, Traits


class Template(Struct, frozen=True, kw_only=True):
    """One pod template of an object, or a Pod itself.

    Attributes:
        path: The prefix of ``spec`` and ``metadata`` in paths: "" for a Pod, ``spec.template.`` for a Deployment.
        replicas: Pods from this template, None if the object has no number.
        bare_path: The path of constraints outside any pod template.
    """

    path: str
    template: PodTemplate
    replicas: int | None = None
    bare_path: str = ""

    @property
    def constraints_path(self) -> str:
        """The path of its constraints."""
        return self.bare_path or f"{self.path}spec.{CONSTRAINTS}"


class Strategy(Struct, frozen=True, kw_only=True):
    """An object's update strategy as written. Absent fields are None, not defaults."""

    type: str | None = None
    max_surge: built_in_objects.IntOrText | None = None
    max_unavailable: built_in_objects.IntOrText | None = None
    partition: built_in_objects.IntOrText | None = None


class ClaimTemplates(Struct, frozen=True):
    """A StatefulSet's claims. The pod ``web-0`` has a claim ``<name>-web-0`` for each.

    Attributes:
        classes: The storage class of each claim, or "".
        requests: The requests of each claim.
    """

    names: tuple[str, ...]
    classes: tuple[str, ...] = ()
    requests: tuple[ResourceRequirements | None, ...] = ()


class Workload(Struct, frozen=True, kw_only=True):
    """A pod, or an object with pod templates.

    Attributes:
        traits: The properties of its kind, looked up once: about ten rules use them in every review.
        selector: The object's ``spec.selector``.
        built_in: kube-apiserver validates the templates.
        suspended: It creates no pods at present.
        paused: It creates no pods of a new template.
        group: The group of ``api_version``, empty for core.
        late_labels: Label keys added to some pods by the controller, as written in the object.
        first_ordinal: Of a StatefulSet: the number in the first pod's name.
        parallel: The pods of a StatefulSet do not wait for one another.
        indexed: Each pod of a Job has a completion index.
        manual_selector: kube-apiserver generates no labels for the Job.
        grouped: The pods of a Job form one PodGroup.
        whole: The templates are complete pods. Otherwise only constraints and some labels are known.
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
        """Its kind without the version."""
        return self.group, self.kind

    @property
    def recreates(self) -> bool:
        """Whether the controller deletes all old pods before it creates new pods."""
        return self.strategy is not None and self.strategy.type == "Recreate"

    @property
    def is_pod(self) -> bool:
        """Whether it is a pod itself."""
        return self.kind == POD[1] and self.group == POD[0]


def namespace_of(stated: str, otherwise: str = "") -> str:
    """Return the namespace of an object: its own, the caller's, or kubectl's."""
    return stated or otherwise or DEFAULT_NAMESPACE


def selector_of(workload: Workload) -> Selector | None:
    """Compile the workload's selector, with None if absent or invalid."""
    written = workload.selector
    if written is None and workload.group_kind == REPLICATION_CONTROLLER and workload.templates:
        return selector_from_labels(workload.templates[0].template.labels)
    return compiled(written)


def compiled(written: LabelSelector | None) -> Selector | None:
    """Compile a workload's selector, with None if empty or invalid."""
    selector = valid_selector(written)
    return selector if selector is not None and selector.requirements else None


# kube-apiserver's defaults for a Deployment.
DEFAULT_SURGE: IntOrText = "25%"
_MAX_DIGITS = 5  # of a percentage
_DEFAULT = "25%"  # also for maxUnavailable


def surge_of(strategy: Strategy | None, replicas: int) -> int:
    """Return the pods above ``replicas`` during a rolling update.

    A percentage rounds up. Recreate and invalid text count as 0.

    Source: deployment/util/deployment_util.go ``ResolveFenceposts``: a percentage of maxSurge rounds up.
    """
    if strategy is not None and strategy.type == "Recreate":
        return 0
    hundredths = _hundredths(None if strategy is None else strategy.max_surge, replicas)
    return -(-hundredths // 100)


def unavailable_of(strategy: Strategy | None, replicas: int) -> int:
    """Return the pods that may be missing during a rolling update.

    A percentage rounds down. With maxSurge and maxUnavailable of 0, one pod may be missing. With Recreate, all may.

    Source: deployment/util/deployment_util.go ``ResolveFenceposts``: a percentage of maxUnavailable rounds down, and is
    1 where both are 0.
    """
    if strategy is not None and strategy.type == "Recreate":
        return replicas
    allowed = _hundredths(None if strategy is None else strategy.max_unavailable, replicas) // 100
    return allowed or int(not surge_of(strategy, replicas))


def unavailable_ordinals(strategy: Strategy | None, replicas: int) -> int:
    """Return a StatefulSet's pods that may be missing during an update, at least 1.

    Source: statefulset/stateful_set_utils.go ``getStatefulSetMaxUnavailable``.
    """
    written = None if strategy is None else strategy.max_unavailable
    return 1 if written is None else max(1, _hundredths(written, replicas) // 100)


def _hundredths(written: IntOrText | None, replicas: int) -> int:
    """Convert pods or a percentage to hundredths of a pod, other text to 0."""
    if isinstance(written, int):
        return max(written, 0) * 100
    percent = (written or _DEFAULT).removesuffix("%")
    # kube-apiserver rejects longer numbers, and int() is slow for them.
    return replicas * int(percent) if percent.isdecimal() and percent.isascii() and len(percent) <= _MAX_DIGITS else 0


def worst_final_skew(domains: int, replicas: int, surge: int, max_skew: int) -> int:
    """Return the largest skew in pods that a rolling update can leave behind.

    Every placement obeys maxSkew over old and new pods together. The update may delete any old pod next. Old pods may
    start in any arrangement within maxSkew. ``surge`` is at least 1.
    """
    if domains < 2:
        return 0
    # The worst order ends with most pods in one domain and fewest in another.
    others = domains - 1
    old = min((replicas + others * max_skew) // domains, replicas)
    apart = max_skew + min(surge, old)
    most = min((replicas + surge + others * max_skew) // domains, (replicas + others * apart) // domains, replicas)
    return most - max(replicas - others * most, most - apart, 0)
