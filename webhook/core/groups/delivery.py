"""Deliver the stored plan of a group to the pod template of one shard.

An annotation records the delivered fields, so a later delivery can replace them. The author's own fields stay. If they
contradict the plan, nothing is delivered. The reason names the contradiction.
"""

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from webhook.core.api.label_syntax import value_faults
from webhook.core.api.spread_group import CANNOT_GET_STUCK, FITS, PLANNED, IndexedGroupStatus, PlannedWorkload
from webhook.core.api.types import NodeSelectorRequirement, NodeSelectorTerm, Pod, PodTemplate, SpreadConstraint
from webhook.core.api.version import KubernetesVersion
from webhook.core.apiserver.validation import validate_constraints
from webhook.core.budget import Reason
from webhook.core.groups.affinity import (
    NO_TERM,
    apart_terms,
    node_terms,
    with_apart_terms,
    with_node_terms,
    without_requirements,
)
from webhook.core.groups.fields import has_fields, missing_apart_terms, with_plan
from webhook.core.groups.group import Fields, Group, Shard, ShardPlan
from webhook.core.groups.group_constraints import replaced_constraints
from webhook.core.groups.reading import Membership
from webhook.core.groups.zone_pin import pin_requirement
from webhook.core.text import one_line, segment_of

NO_PLAN = ShardPlan()
_NOT_YET = "its plan is not ready yet"


def stored_shard_plan(
    membership: Membership, template: PodTemplate, before: ShardPlan, title: tuple[str, str], version: KubernetesVersion
) -> ShardPlan | Reason:
    """Return the fields to add to this workload from the stored plan, or the reason for adding none.

    Args:
        membership: The workload's group.
        template: The workload's pod template.
        before: The fields added to the template by an earlier plan.
        title: The kind and name of the workload.
        version: The cluster's release.
    """
    group, status = membership.group, membership.written.status or IndexedGroupStatus()
    if why := _unplanned(status, membership.written.generation):
        return Reason(why)
    shard = template.labels.get(group.shard_label)
    if shard is None:
        return Reason(f"the template lacks the label {group.shard_label}, which names the shard")
    planned = _planned(status.workloads, shard, title)
    if planned is None:
        return Reason(f"the plan has no shard {shard}")
    constraints = replaced_constraints(group, planned.topology_spread_constraints)
    if validate_constraints(constraints, template.labels, "", version) or any(map(value_faults, planned.zones)):
        return Reason("kube-apiserver would refuse the plan's fields")
    own = Shard(name=group.name, value=shard, pod=_pod(group, _without(template, before)))
    return ShardPlan(constraints, pin_requirement(group, planned.zones), missing_apart_terms(group, own))


def has_stored_plan(membership: Membership, template: PodTemplate, title: tuple[str, str]) -> bool:
    """Whether the template has the stored fields of its shard. ``title`` is the workload's kind and name."""
    group, status = membership.group, membership.written.status or IndexedGroupStatus()
    shard = template.labels.get(group.shard_label)
    if shard is None or status.observed_generation != membership.written.generation:
        return False
    planned = _planned(status.workloads, shard, title)
    own = Shard(name=group.name, value=shard, pod=_pod(group, template))
    return planned is not None and has_fields(
        group, own, replaced_constraints(group, planned.topology_spread_constraints), planned.zones
    )


def _unplanned(status: IndexedGroupStatus, generation: int) -> str:
    """Return why the stored plan cannot be added to a pod template. Empty if it can."""
    reason = status.reason(PLANNED)
    if status.observed_generation != generation or not (reason or status.holds(PLANNED)):
        return _NOT_YET
    if not status.holds(PLANNED):
        return f"it cannot be planned ({one_line(reason, 40)})"
    return "" if status.holds(FITS, CANNOT_GET_STUCK) else "its plan is not proven to place all pods"


def with_shard_plan(group: Group, template: PodTemplate, plan: ShardPlan, before: ShardPlan) -> Fields | Reason:
    """Replace the fields of the plan ``before`` in the template by those of ``plan``.

    Return a reason if the template's own constraint, node selector or node affinity contradicts ``plan``.
    """
    own = _without(template, before)
    contradicts = _own_constraint(group, own, plan.constraints) or _own_domains(own, plan.pin)
    return Reason(contradicts) if contradicts else with_plan(group, _pod(group, own), plan)


def _pod(group: Group, template: PodTemplate) -> Pod:
    return Pod(metadata=replace(template.meta, namespace=group.namespace), spec=template.pod_spec)


def _planned(workloads: Sequence[PlannedWorkload], shard: str, title: tuple[str, str]) -> PlannedWorkload | None:
    """Return the entry of the shard in the status, preferably the entry with the workload's kind and name."""
    entries = [workload for workload in workloads if workload.shard == shard]
    return next((entry for entry in entries if (entry.kind, entry.name) == title), entries[0] if entries else None)


def _without(template: PodTemplate, before: ShardPlan) -> PodTemplate:
    spec = template.pod_spec
    kept = tuple(constraint for constraint in spec.constraints if constraint not in before.constraints)
    affinity, own = spec.affinity, apart_terms(spec.affinity)
    if affinity is not None and own:
        affinity = with_apart_terms(affinity, (term for term in own if term not in before.apart))
    if affinity is not None and before.pin is not None and (terms := node_terms(affinity)):
        left = [(term, without_requirements(term, lambda requirement: requirement == before.pin)) for term in terms]
        # An empty term matches no node, so a term with nothing but the pin is removed as a whole.
        affinity = with_node_terms(affinity, (bare for term, bare in left if bare != NO_TERM or term == bare))
    return replace(template, spec=replace(spec, topology_spread_constraints=kept or None, affinity=affinity))


def _own_constraint(group: Group, template: PodTemplate, planned: Collection[SpreadConstraint]) -> str:
    """Return the reason if the template has its own hard constraint over a key of the plan. Empty otherwise."""
    hard = replaced_constraints(group, template.pod_spec.constraints)
    own = [constraint for constraint in hard if constraint not in planned]
    return f"the template has its own hard {segment_of(own[0].topology_key or '')} constraint" if own else ""


def _own_domains(template: PodTemplate, pin: NodeSelectorRequirement | None) -> str:
    """Return the reason if the template's own node selector or affinity rejects a pinned domain. Empty otherwise."""
    if pin is None:
        return ""
    spec, key = template.pod_spec, pin.key
    terms, wanted = node_terms(spec.affinity), (spec.node_selector or {}).get(key)
    for value in pin.values or ():
        if wanted not in {None, value} or (terms and not any(_admits(term, key, value) for term in terms)):
            return f"the template's node selector or affinity excludes {segment_of(key)} {value}"
    return ""


def _admits(term: NodeSelectorTerm, key: str, value: str) -> bool:
    """Whether the term's requirements on the key admit a node with this value.

    Source: k8s.io/component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go ``isEmptyNodeSelectorTerm``.
    """
    requirements = (requirement for requirement in term.match_expressions or () if requirement.key == key)
    return term != NO_TERM and all(_meets(requirement, value) for requirement in requirements)


def _meets(requirement: NodeSelectorRequirement, value: str) -> bool:
    match requirement.operator:
        case "In":
            return value in (requirement.values or ())
        case "NotIn":
            return value not in (requirement.values or ())
        case operator:
            return operator != "DoesNotExist"
