"""Build the spread constraints and the affinity of a shard's pods.

The hard constraints come from a plan, or are one constraint for each cap of the group. The template's own soft
constraints, constraints over other keys, and affinity are kept.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from webhook.core.api.selectors import valid_selector
from webhook.core.api.types import (
    SCHEDULE_ANYWAY,
    Affinity,
    LabelSelector,
    NodeSelectorRequirement,
    Pod,
    PodAffinityTerm,
    SpreadConstraint,
)
from webhook.core.api.well_known import HOSTNAME
from webhook.core.groups.affinity import NO_AFFINITY, apart_terms, node_terms, with_apart_terms, with_node_terms
from webhook.core.groups.group import Fields, Group, Shard, ShardPlan
from webhook.core.groups.group_constraints import group_constraint, is_replaced
from webhook.core.groups.zone_pin import pin_requirement, pinned, sorted_values


def naive_fields(group: Group, shard: Shard) -> Fields:
    """Return the template's own fields. If they lack hard constraints over the group's keys, add one for each cap."""
    if any(is_replaced(group, constraint) for constraint in shard.pod.pod_spec.constraints):
        return Fields(shard.pod.pod_spec.constraints, shard.pod.pod_spec.affinity)
    keys = dict.fromkeys(cap.topology_key for cap in group.caps if cap.enforced)
    skews = [group_constraint(group, key, max(1, group.most(key) or 0)) for key in keys]
    return shard_fields(group, shard, skews)


def shard_fields(
    group: Group, shard: Shard, constraints: Iterable[SpreadConstraint], zones: Sequence[str] = ()
) -> Fields:
    """Build a shard's fields with these hard constraints.

    Pin the shard's pods to ``zones``, if given. A new pin replaces all zones required by the template, because they can
    be the pin of an earlier plan.
    """
    plan = ShardPlan(tuple(constraints), pin_requirement(group, zones), missing_apart_terms(group, shard))
    return with_plan(group, shard.pod, plan, instead=True)


def with_plan(group: Group, pod: Pod, plan: ShardPlan, *, instead: bool = False) -> Fields:
    """Return the pod's constraints and affinity with the plan added.

    The plan's constraints replace the pod's hard constraints over the group's keys.

    Args:
        group: The group.
        pod: The pod.
        plan: The fields to add.
        instead: Whether the plan's zone pin replaces the zones required by the pod's affinity.
    """
    spec = pod.pod_spec
    kept = [constraint for constraint in spec.constraints if not is_replaced(group, constraint)]
    kept += _even(group, kept, plan.constraints)
    affinity, own = spec.affinity or NO_AFFINITY, apart_terms(spec.affinity)
    if new := [term for term in plan.apart if term not in own]:
        affinity = with_apart_terms(affinity, (*own, *new))
    if plan.pin is not None:
        affinity = pinned(affinity, plan.pin, instead=instead)
    return Fields((*plan.constraints, *kept), None if affinity == NO_AFFINITY else affinity)


def _even(
    group: Group, kept: Iterable[SpreadConstraint], planned: Iterable[SpreadConstraint]
) -> Iterator[SpreadConstraint]:
    """Yield the soft constraints to add: for an even group, one over each key without a soft constraint.

    Skip a key with a planned maxSkew 1, because the plan then admits only the domains with the fewest pods.
    """
    covered = {constraint.topology_key for constraint in kept if not constraint.hard}
    covered |= {constraint.topology_key for constraint in planned if constraint.max_skew == 1}
    for key in (HOSTNAME, group.zone_key) if group.names_zones else (HOSTNAME,):
        if group.even and key not in covered:
            yield replace(group_constraint(group, key, 1), when_unsatisfiable=SCHEDULE_ANYWAY)


def has_fields(group: Group, shard: Shard, constraints: Iterable[SpreadConstraint], zones: Sequence[str]) -> bool:
    """Whether the shard's pod already has these fields. Their order does not matter."""
    spec = shard.pod.pod_spec
    plan = ShardPlan(tuple(constraints), pin_requirement(group, zones), missing_apart_terms(group, shard))
    wanted = with_plan(group, shard.pod, plan)
    return _unordered(spec.constraints) == _unordered(wanted.constraints) and _normalized(spec.affinity) == _normalized(
        wanted.affinity
    )


def _unordered(constraints: Iterable[SpreadConstraint]) -> list[bytes]:
    return sorted(msgspec.json.encode(constraint, order="deterministic") for constraint in constraints)


def _normalized(affinity: Affinity | None) -> Affinity:
    terms = (
        replace(term, match_expressions=tuple(sorted(map(sorted_values, own), key=_sort_key)) or None)
        for term in node_terms(affinity)
        for own in (term.match_expressions or (),)
    )
    return with_node_terms(affinity or NO_AFFINITY, terms)


def _sort_key(requirement: NodeSelectorRequirement) -> tuple[str, str, tuple[str, ...]]:
    return requirement.key, requirement.operator, requirement.values or ()


def missing_apart_terms(group: Group, shard: Shard) -> tuple[PodAffinityTerm, ...]:
    """Build the missing anti-affinity terms of the shard's ``never_share`` keys."""
    terms = apart_terms(shard.pod.pod_spec.affinity)
    kept = {term.topology_key for term in terms if matches_own_pod(term, shard.pod)}
    labels = {**(group.selector.match_labels or {}), group.shard_label: shard.value}
    return tuple(
        PodAffinityTerm(topology_key=key, label_selector=LabelSelector(match_labels=labels))
        for key in group.never_share
        if key not in kept
    )


def matches_own_pod(term: PodAffinityTerm, pod: Pod) -> bool:
    """Whether an anti-affinity term of the pod matches the pod itself. An invalid selector matches nothing."""
    elsewhere = term.namespaces is not None and pod.meta.namespace not in term.namespaces
    selector = valid_selector(term.label_selector)
    return not elsewhere and selector is not None and selector.matches(pod.labels)


def replace_label_value(value: Mapping[str, object], label: str, old: str, new: str) -> dict[str, object]:
    """Replace the old value of a label by a new value, in labels and selectors.

    Args:
        value: An object as JSON or YAML values.
        label: The label's key.
        old: The value to replace. Other values stay.
        new: The new value.
    """

    def replaced(value: object, field: str) -> object:
        if isinstance(value, list):
            return [replaced(item, field) for item in value]
        if not isinstance(value, Mapping) or field == "nodeAffinity":  # Node affinity selects labels of nodes.
            return value
        if field in {"labels", "matchLabels"}:
            return {key: new if (key, text) == (label, old) else text for key, text in value.items()}
        if field == "matchExpressions" and value.get("key") == label and value.get("values") == [old]:
            return {**value, "values": [new]}
        return {key: replaced(item, key) for key, item in value.items()}

    return {key: replaced(item, key) for key, item in value.items()}
