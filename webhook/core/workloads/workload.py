"""A workload of any kind: templates, replicas, update strategy and selector."""

from msgspec import Struct

from webhook.core.api.selectors import Selector, selector_from_labels, valid_selector
from webhook.core.api.types import LabelSelector, ObjectMeta, PodTemplate, ResourceRequirements
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.workloads import built_in_objects
from webhook.core.workloads.custom_kinds import CONSTRAINTS
from webhook.core.workloads.kinds import POD, REPLICATION_CONTROLLER, GroupKind, Traits


class Template(Struct, frozen=True, kw_only=True):
    """A pod template of an object, or a Pod itself.

    Attributes:
        path: The prefix of ``spec`` and ``metadata`` in paths: "" for a Pod, ``spec.template.`` for a Deployment.
        pod: The labels and the spec of its pods, or the Pod itself.
        replicas: The number of pods from this template. None if the object has no number.
        bare_path: The path of constraints outside any pod template.
    """

    path: str
    pod: PodTemplate
    replicas: int | None = None
    bare_path: str = ""

    @property
    def constraints_path(self) -> str:
        """The path of the template's constraints."""
        return self.bare_path or f"{self.path}spec.{CONSTRAINTS}"


class Strategy(Struct, frozen=True, kw_only=True):
    """An object's update strategy as written. Absent fields are None, without defaults."""

    type: str | None = None
    max_surge: built_in_objects.IntOrText | None = None
    max_unavailable: built_in_objects.IntOrText | None = None
    partition: built_in_objects.IntOrText | None = None


class ClaimTemplates(Struct, frozen=True):
    """A StatefulSet's claim templates. For each name, the pod ``web-0`` has a claim ``<name>-web-0``.

    Attributes:
        classes: The storage class of each claim. "" for a claim without a class.
        requests: The requests of each claim.
    """

    names: tuple[str, ...]
    classes: tuple[str, ...] = ()
    requests: tuple[ResourceRequirements | None, ...] = ()


class Workload(Struct, frozen=True, kw_only=True):
    """A pod, or an object with pod templates.

    Attributes:
        traits: The properties of the object's kind.
        selector: The object's ``spec.selector``.
        built_in: Whether kube-apiserver validates the templates.
        suspended: Whether the object creates no pods at present.
        paused: Whether the object creates no pods of a new template.
        group: The group of ``api_version``. Empty for the core group.
        late_labels: Keys of labels that the controller adds to some pods. The object lists these labels.
        first_ordinal: For a StatefulSet, the number in the first pod's name.
        parallel: Whether the pods of a StatefulSet do not wait for each other.
        indexed: Whether each pod of a Job has a completion index.
        manual_selector: Whether kube-apiserver generates no labels for the Job.
        grouped: Whether the pods of a Job form a PodGroup.
        whole: Whether the templates are complete pods. Otherwise only constraints and some labels are known.
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
        """The group and name of its kind, without the version."""
        return self.group, self.kind

    @property
    def namespace(self) -> str:
        """Its namespace, else kubectl's default."""
        return namespace_of(self.meta.namespace)

    @property
    def recreates(self) -> bool:
        """Whether the controller deletes all old pods before it creates new pods."""
        return self.strategy is not None and self.strategy.type == "Recreate"

    def ordinals(self, pods: int) -> range:
        """Return the numbers in the names of a StatefulSet's first pods."""
        return range(self.first_ordinal, self.first_ordinal + pods)

    @property
    def is_pod(self) -> bool:
        """Whether the object is a Pod."""
        return self.kind == POD[1] and self.group == POD[0]


def namespace_of(stated: str, otherwise: str = "") -> str:
    """Return the object's own namespace, else the caller's ``otherwise``, else kubectl's default."""
    return stated or otherwise or DEFAULT_NAMESPACE


def selector_of(workload: Workload) -> Selector | None:
    """Compile the workload's selector. None if absent or invalid."""
    written = workload.selector
    if written is None and workload.group_kind == REPLICATION_CONTROLLER and workload.templates:
        return selector_from_labels(workload.templates[0].pod.labels)
    return compiled(written)


def compiled(written: LabelSelector | None) -> Selector | None:
    """Compile a workload's selector. None if empty or invalid."""
    selector = valid_selector(written)
    return selector if selector is not None and selector.requirements else None
