"""What a pod template gets of the plan that the controller stored for its group, and when it gets nothing.

What an earlier delivery put into the template is recorded there, and gives way to a later one; what its author wrote
does not: where it contradicts the plan, nothing is delivered and the author is told.
"""

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from webhook.core.api.label_syntax import value_faults
from webhook.core.api.spread_group import CANNOT_GET_STUCK, FITS, PLANNED, GroupStatus, PlannedWorkload
from webhook.core.api.types import (
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodTemplate,
    SpreadConstraint,
)
from webhook.core.api.version import KubernetesVersion
from webhook.core.apiserver.validation import validate_constraints
from webhook.core.budget import Reason
from webhook.core.groups.affinity import NO_TERM, apart_terms, node_terms, with_apart_terms, with_node_terms, without
from webhook.core.groups.fields import has_fields, is_ours, missing_terms, ours, pin_of, with_plan
from webhook.core.groups.group import Fields, Group, Shard, ShardPlan
from webhook.core.groups.reading import Membership
from webhook.core.text import one_line, segment_of

NO_PLAN = ShardPlan()
_NOT_YET = "its plan is not made yet"


def stored_plan(
    of: Membership, template: PodTemplate, before: ShardPlan, title: tuple[str, str], version: KubernetesVersion
) -> ShardPlan | Reason:
    """What the stored plan adds to this workload, or in a few words why there is nothing.

    ``before`` is what an earlier plan added to the template, ``title`` the workload's kind and name.
    """
    group, status = of.group, of.written.status or GroupStatus()
    if why := _unplanned(status, of.written.generation):
        return Reason(why)
    shard = template.labels.get(group.shard_label)
    if shard is None:
        return Reason(f"the template has no label {group.shard_label}, which tells the shards apart")
    planned = _planned(status.workloads, shard, title)
    if planned is None:
        return Reason(f"its plan has no shard {shard}")
    constraints = ours(group, planned.topology_spread_constraints)
    if validate_constraints(constraints, template.labels, "", version) or any(map(value_faults, planned.zones)):
        return Reason("kube-apiserver would refuse its fields")
    own = Shard(name=group.name, value=shard, pod=_pod(group, _without(template, before)))
    return ShardPlan(constraints, pin_of(group, planned.zones), missing_terms(group, own))


def has_stored_plan(of: Membership, template: PodTemplate, title: tuple[str, str]) -> bool:
    """Whether the template has what is stored for its shard. ``title`` is the workload's kind and name."""
    group, status = of.group, of.written.status or GroupStatus()
    shard = template.labels.get(group.shard_label)
    if shard is None or status.observed_generation != of.written.generation:
        return False
    planned = _planned(status.workloads, shard, title)
    own = Shard(name=group.name, value=shard, pod=_pod(group, template))
    return planned is not None and has_fields(
        group, own, ours(group, planned.topology_spread_constraints), planned.zones
    )


def _unplanned(status: GroupStatus, generation: int) -> str:
    """Why no plan can be delivered. Empty if one can."""
    reason = status.reason(PLANNED)
    if status.observed_generation != generation or not (reason or status.holds(PLANNED)):
        return _NOT_YET
    if not status.holds(PLANNED):
        return f"it cannot be planned ({one_line(reason, 40)})"
    return "" if status.holds(FITS, CANNOT_GET_STUCK) else "no plan of it is proven to place all pods"


def with_shard_plan(group: Group, template: PodTemplate, plan: ShardPlan, before: ShardPlan) -> Fields | Reason:
    """The fields of the template with the plan in place of the one ``before``, or what in it contradicts the plan."""
    own = _without(template, before)
    contradicts = _own_constraint(group, own, plan.constraints) or _own_domains(own, plan.pin)
    return Reason(contradicts) if contradicts else with_plan(group, _pod(group, own), plan)


def _pod(group: Group, template: PodTemplate) -> Pod:
    return Pod(metadata=replace(template.meta, namespace=group.namespace), spec=template.pod_spec)


def _planned(workloads: Sequence[PlannedWorkload], shard: str, title: tuple[str, str]) -> PlannedWorkload | None:
    """The shard's entry, preferably of this workload."""
    found = [each for each in workloads if each.shard == shard]
    return next((each for each in found if (each.kind, each.name) == title), found[0] if found else None)


def _without(template: PodTemplate, before: ShardPlan) -> PodTemplate:
    """The template as its author wrote it."""
    spec = template.pod_spec
    kept = tuple(each for each in spec.constraints if each not in before.constraints)
    affinity, own = spec.affinity, apart_terms(spec.affinity)
    if affinity is not None and own:
        affinity = with_apart_terms(affinity, (each for each in own if each not in before.apart))
    if affinity is not None and before.pin is not None and (terms := node_terms(affinity)):
        left = [(each, without(each, lambda one: one == before.pin)) for each in terms]
        # A term without conditions matches no node; one that was nothing but the pin goes with it.
        affinity = with_node_terms(affinity, (bare for each, bare in left if bare != NO_TERM or each == bare))
    return replace(template, spec=replace(spec, topology_spread_constraints=kept or None, affinity=affinity))


def _own_constraint(group: Group, template: PodTemplate, planned: Collection[SpreadConstraint]) -> str:
    """How the template contradicts the plan's constraints. Empty if it does not."""
    own = [each for each in template.pod_spec.constraints if is_ours(group, each) and each not in planned]
    if not own:
        return ""
    return f"the template has a hard constraint of its own over {segment_of(own[0].topology_key or '')}"


def _own_domains(template: PodTemplate, pin: NodeSelectorRequirement | None) -> str:
    """How the template rejects nodes in one of the pin's domains. Empty if it does not."""
    if pin is None:
        return ""
    spec, key = template.pod_spec, pin.key
    terms, wanted = node_terms(spec.affinity), (spec.node_selector or {}).get(key)
    for value in pin.values or ():
        if wanted not in {None, value} or (terms and not any(_admits(each, key, value) for each in terms)):
            return f"the template itself keeps its pods out of {segment_of(key)} {value}"
    return ""


def _admits(term: NodeSelectorTerm, key: str, value: str) -> bool:
    """Whether nothing in the term is against nodes with this label.

    Source: k8s.io/component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go ``isEmptyNodeSelectorTerm``.
    """
    return term != NO_TERM and all(_meets(each, value) for each in term.match_expressions or () if each.key == key)


def _meets(requirement: NodeSelectorRequirement, value: str) -> bool:
    match requirement.operator:
        case "In":
            return value in (requirement.values or ())
        case "NotIn":
            return value not in (requirement.values or ())
        case operator:
            return operator != "DoesNotExist"
