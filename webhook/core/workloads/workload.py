"""A workload of any kind: templates, replicas, update strategy and selector."""

from msgspec import Struct

from webhook.core.api.selectors import Selector, selector_from_labels, valid_selector
from webhook.core.api.types import LabelSelector, ObjectMeta, PodTemplate, ResourceRequirements
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.workloads import built_in_objects
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
