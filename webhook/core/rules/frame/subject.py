"""The input of a rule: an object, its constraints and the review context."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from webhook.core.api.requirements import SelectorError
from webhook.core.api.selectors import Selector
from webhook.core.api.types import ObjectMeta, Pod, SpreadConstraint
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import HOSTNAME
from webhook.core.apiserver.validation import are_clearly_valid
from webhook.core.budget import Missing, Reason
from webhook.core.cached_property import Computing, cached_property
from webhook.core.context import Context
from webhook.core.index.nodes import NodeView
from webhook.core.index.objects import Autoscaler
from webhook.core.index.pod_admission import as_admitted
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.policy import Policy
from webhook.core.rules.object_cost import exceeded_template_limit
from webhook.core.scheduler.plugins.spread_constraints import counting_selector
from webhook.core.text import constraint_name, quoted, segment_of
from webhook.core.workloads.workload import Template, Workload, selector_of

_Item = TypeVar("_Item")
_NO_CLUSTER = Missing.NO_CLUSTER.reason  # once: a review without a cluster asks a dozen times


class Placed(Struct, frozen=True, dict=True):
    """A constraint with its template and its index in the template."""

    template: Template
    index: int
    constraint: SpreadConstraint

    @cached_property
    def selector(self) -> Selector | None:
        """The compiled selector for pods of the template. None if it is invalid."""
        return readable_selector(self.constraint, self.template.pod.labels)

    @property
    def path(self) -> str:
        """The API path: ``spec.template.spec.topologySpreadConstraints[0]``."""
        return f"{self.template.constraints_path}[{self.index}]"

    @property
    def name(self) -> str:
        """The constraint's name in messages: ``zone[0]``."""
        return constraint_name(self.constraint.topology_key or "", self.index)

    @property
    def noun(self) -> str:
        """The word for a domain in messages: ``zone``, or ``node`` for hostname."""
        return noun_of(self.constraint.topology_key or "")

    @property
    def short_name(self) -> str:
        """The name without the index: ``zone`` for ``zone[0]``."""
        return self.name.partition("[")[0]

    @property
    def key(self) -> str:
        """The constraint's identity: template path, topology key and whenUnsatisfiable.

        Inserting another constraint does not change it.
        """
        return f"{self.template.path} {self.constraint.topology_key} {self.constraint.when_unsatisfiable}"


class Subject(Computing, frozen=True, kw_only=True):
    """The input of a rule.

    Attributes:
        workload: The object.
        placed: The constraints of all templates, in order.
        context: The policy, cluster, release and time of the review.
    """

    workload: Workload
    placed: tuple[Placed, ...]
    context: Context

    @property
    def policy(self) -> Policy:
        return self.context.policy

    @property
    def version(self) -> KubernetesVersion:
        """The target release of Kubernetes."""
        return self.context.version

    @cached_property
    def index(self) -> ReadOnlyIndex | None:
        """The cluster. None if it is unknown or rules must not read it (see `lacks`)."""
        context = self.context
        return None if context.index is None or context.budget.unjudged or self._limit else context.index

    @property
    def nodes(self) -> NodeView | None:
        """The nodes of the cluster. None if they are unknown or rules must not read them."""
        return None if self.index is None or self.lacks("nodes") else self.index.nodes.view()

    @cached_property
    def _limit(self) -> Reason | None:
        """The size limit exceeded by the object. None without an exceeded limit.

        Always None offline, because no admission request waits there.
        """
        return None if self.context.offline else exceeded_template_limit(self.workload)

    @property
    def offline(self) -> bool:
        """Whether the object is examined outside of admission, for example by the command line."""
        return self.context.offline

    @cached_property
    def scaler(self) -> Autoscaler | None:
        """The autoscaler of the workload, from the same input or from the cluster. None without one."""
        of = self.workload.api_version, self.workload.kind
        namespace, name = self.workload.meta.namespace, self.workload.meta.name
        own = namespace, self.workload.group_kind, name
        beside = (each for each in self.context.scalers if each.target == own)
        known = None if self.index is None else self.index.owners.autoscaler(*of, namespace, name)
        return next(beside, known)

    @cached_property
    def own_selector(self) -> Selector | None:
        """The selector of the workload's pods in every revision. None without a valid selector."""
        return selector_of(self.workload)

    @cached_property
    def plainly_right(self) -> bool:
        """Whether a quick check shows that kube-apiserver accepts the constraints."""
        return all(are_clearly_valid(each.pod.pod_spec.constraints) for each in self.workload.templates)

    @property
    def pods(self) -> str:
        """The start of a message about the pods: "this pod has" for a Pod, else "the pods have"."""
        return "this pod has" if self.workload.is_pod else "the pods have"

    def lacks(self, *resources: str) -> Reason | None:
        """Why rules cannot read these resources of the cluster. None if they can."""
        context = self.context
        if context.index is None:
            return _NO_CLUSTER
        if context.budget.unjudged is not None:
            return self._limit or context.budget.unjudged.reason
        if self._lacking and (missing := context.index.lacks(*resources, *self._choosing(resources))):
            return Reason(missing)
        return self._unusable or (Missing.NO_TIME.reason if self.out_of_time else None)

    def _choosing(self, resources: Sequence[str]) -> Sequence[str]:
        named = any(each.pod.pod_spec.runtime_class_name for each in self.workload.templates)
        return ("runtimeclasses",) if named and "nodes" in resources else ()

    def admitted(self, template: Template, index: ReadOnlyIndex) -> Pod:
        """A pod of the template after admission, with the additions of its RuntimeClass and LimitRanges."""
        known: dict[str, Pod] = self.__dict__.setdefault("_admitted", {})
        if template.path not in known:
            of, labels = self.workload, template.pod.labels
            labelled = ObjectMeta(name=of.meta.name, namespace=of.namespace, labels=labels)
            known[template.path] = as_admitted(Pod(metadata=labelled, spec=template.pod.spec), index, self.version)
        return known[template.path]

    @cached_property
    def _lacking(self) -> bool:
        index = self.context.index
        return index is not None and bool(index.lacking)

    @cached_property
    def _unusable(self) -> Reason | None:
        """Why no rule can use the cluster for this object. None if rules can.

        The index is too old, or the object exceeds a limit.
        """
        if self.context.age() > self.policy.max_staleness_seconds:
            return Missing.STALE.reason
        # Each selector is counted, and the author of the pod chooses their number.
        return self._limit

    @property
    def out_of_time(self) -> bool:
        """Whether the deadline for cluster lookups has passed."""
        return self.context.budget.is_spent

    def while_time_is_left(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Yield items until the deadline has passed. `rule_evaluation` then reports the rule as not evaluated."""
        for item in items:
            if self.out_of_time:
                return
            yield item


def readable_selector(constraint: SpreadConstraint, labels: Mapping[str, str]) -> Selector | None:
    """Return the constraint's selector for an incoming pod with these labels.

    The labels supply the values of matchLabelKeys. None if the selector is invalid.
    """
    try:
        return counting_selector(constraint, labels)
    except SelectorError:
        return None


def noun_of(key: str) -> str:
    """Return the word for a domain of the key: ``zone``, or ``node`` for hostname."""
    segment = segment_of(key) or "domain"
    return "node" if key == HOSTNAME else quoted(segment, 40)


def placed_constraints(workload: Workload) -> tuple[Placed, ...]:
    """All constraints of an object, in the order of its templates."""
    return tuple(
        Placed(template, index, constraint)
        for template in workload.templates
        for index, constraint in enumerate(template.pod.pod_spec.constraints)
    )
