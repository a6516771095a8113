"""A workload as rules see it, whatever its kind: its templates, replicas, selector and strategy."""

from msgspec import Struct

from webhook.core.api.types import LabelSelector, ObjectMeta, PodTemplate, ResourceRequirements
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.workloads import built_in_objects
from webhook.core.workloads.custom_kinds import CONSTRAINTS
from webhook.core.workloads.kinds import POD, GroupKind, Traits


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

    Shape: ``built_in`` says that kube-apiserver itself validates the templates. ``group`` is
    that of ``api_version``, empty for core. ``selector`` is the object's own
    ``spec.selector``. ``suspended`` objects make no pods at present,
    ``paused`` ones none of a new template. ``late_labels`` are keys of labels that the object
    itself tells its controller to put on some of the pods. ``first_ordinal`` is of StatefulSets: the number in the name
    of the first pod; ``parallel`` that its pods do not wait for one another. ``indexed`` and ``manual_selector`` are of
    Jobs: each pod has a completion index; no labels are generated.
    ``grouped`` Jobs are scheduled as one PodGroup. ``traits`` are what follows of its kind, read once
    since some ten rules ask for them in every review. ``whole`` says that the templates are the pods as their
    controller makes them; else only the constraints are, and labels as far as they are known.
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
