"""The fields of a shard's pods: those of a rule of thumb, and those that keep the caps.

What a template has besides stays: soft constraints, constraints over other keys, every affinity.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from webhook.core.api.selectors import valid_selector
from webhook.core.api.types import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    Affinity,
    LabelSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    SpreadConstraint,
)
from webhook.core.api.well_known import HOSTNAME
from webhook.core.groups.affinity import (
    NO_AFFINITY,
    NO_TERM,
    apart_terms,
    node_terms,
    pinned,
    sorted_values,
    with_apart_terms,
    with_node_terms,
    without,
)
from webhook.core.groups.caps import MAX_SKEW_OF_A_LABEL, MIN_DOMAINS_OF_A_CAP
from webhook.core.groups.group import Fields, Group, Shard, ShardPlan

Json = Any


def max_skew(group: Group, key: str, skew: int) -> SpreadConstraint:
    """A constraint over the pods of the group."""
    return SpreadConstraint(
        max_skew=skew, topology_key=key, when_unsatisfiable=DO_NOT_SCHEDULE, label_selector=group.selector
    )


def exact_cap(group: Group, key: str, most: int) -> SpreadConstraint:
    """A constraint that admits at most so many pods of the group to a domain."""
    return replace(max_skew(group, key, most), min_domains=MIN_DOMAINS_OF_A_CAP)


def only_labelled(group: Group, key: str) -> SpreadConstraint:
    """A constraint that keeps the pods of the group from nodes without the label, and from no other node."""
    return max_skew(group, key, MAX_SKEW_OF_A_LABEL)


def naive(group: Group, shard: Shard) -> Fields:
    """What the template says; of one without hard constraints over the keys, the caps taken for maxSkew."""
    if any(is_ours(group, each) for each in shard.pod.pod_spec.constraints):
        return Fields(shard.pod.pod_spec.constraints, shard.pod.pod_spec.affinity)
    keys = dict.fromkeys(each.topology_key for each in group.caps if each.enforced)
    skews = [max_skew(group, key, max(1, group.most(key) or 0)) for key in keys]
    return derived(group, shard, skews)


def derived(group: Group, shard: Shard, constraints: Iterable[SpreadConstraint], zones: Sequence[str] = ()) -> Fields:
    """The fields of a shard with these hard constraints. With ``zones``, its pods are pinned to them.

    Domains that the template requires count as those of an earlier plan, and give way.
    """
    plan = ShardPlan(tuple(constraints), pin_of(group, zones), missing_terms(group, shard))
    return with_plan(group, shard.pod, plan, instead=True)


def with_plan(group: Group, pod: Pod, plan: ShardPlan, *, instead: bool = False) -> Fields:
    """The pod's fields with the plan: in place of hard constraints over the keys of the group, else beside its own.

    Args:
        group: The group.
        pod: The pod.
        plan: What the plan adds.
        instead: Whether a pin replaces the domains that the pod requires by now.
    """
    spec = pod.pod_spec
    kept = [each for each in spec.constraints if not is_ours(group, each)]
    kept += _even(group, kept, plan.constraints)
    affinity, own = spec.affinity or NO_AFFINITY, apart_terms(spec.affinity)
    if new := [each for each in plan.apart if each not in own]:
        affinity = with_apart_terms(affinity, (*own, *new))
    if plan.pin is not None:
        affinity = pinned(affinity, plan.pin, instead=instead)
    return Fields((*plan.constraints, *kept), None if affinity == NO_AFFINITY else affinity)


def _even(
    group: Group, kept: Iterable[SpreadConstraint], planned: Iterable[SpreadConstraint]
) -> Iterator[SpreadConstraint]:
    """For an even group: a soft constraint over each key for which the template has none.

    A planned constraint with maxSkew 1 leaves only the domains with the fewest pods: a soft one adds nothing to it.
    """
    own = {each.topology_key for each in kept if not each.hard}
    own |= {each.topology_key for each in planned if each.max_skew == 1}
    for key in (HOSTNAME, group.zone_key) if group.names_zones else (HOSTNAME,):
        if group.even and key not in own:
            yield replace(max_skew(group, key, 1), when_unsatisfiable=SCHEDULE_ANYWAY)


def pin_of(group: Group, zones: Sequence[str]) -> NodeSelectorRequirement | None:
    """What is asked of nodes: these zones, else the only domains that the group may use."""
    if zones:
        return NodeSelectorRequirement(key=group.zone_key, operator="In", values=tuple(zones))
    if group.domains is not None:
        return NodeSelectorRequirement(key=group.domains_key, operator="In", values=group.domains)
    return None


def with_fields(pod: Pod, fields: Fields) -> Pod:
    """The pod with these fields in place of its own."""
    spec = replace(pod.pod_spec, topology_spread_constraints=fields.constraints or None, affinity=fields.affinity)
    return replace(pod, spec=spec)


def with_value(written: Json, label: str, old: str, new: str) -> Json:
    """An object as it is written, with another value of a label: in labels, and in selectors of this value alone."""

    def other(each: Json, field: str) -> Json:
        if isinstance(each, list):
            return [other(one, field) for one in each]
        if not isinstance(each, Mapping) or field == "nodeAffinity":  # the labels of nodes are their own
            return each
        if field in {"labels", "matchLabels"}:
            return {key: new if (key, one) == (label, old) else one for key, one in each.items()}
        if field == "matchExpressions" and each.get("key") == label and each.get("values") == [old]:
            return {**each, "values": [new]}
        return {key: other(one, key) for key, one in each.items()}

    return other(written, "")


def alone(group: Group, pod: Pod, constraints: Iterable[SpreadConstraint]) -> Pod:
    """The pod without what keeps it from others of its shard, and with these constraints only."""
    own = pod.pod_spec.affinity or NO_AFFINITY
    affinity = with_apart_terms(own, (each for each in apart_terms(own) if not _meets_itself(each, pod)))
    if (pin := pin_of(group, ())) is not None:
        affinity = pinned(affinity, pin, instead=True)
    return with_fields(pod, Fields(tuple(constraints), affinity))


def ours(group: Group, constraints: Iterable[SpreadConstraint]) -> tuple[SpreadConstraint, ...]:
    """Of some constraints those that a plan writes: hard ones over the keys of the group."""
    return tuple(each for each in constraints if is_ours(group, each))


def has_fields(group: Group, shard: Shard, constraints: Iterable[SpreadConstraint], zones: Sequence[str]) -> bool:
    """Whether the shard's pod has these fields already, in whatever order they are written."""
    spec = shard.pod.pod_spec
    plan = ShardPlan(tuple(constraints), pin_of(group, zones), missing_terms(group, shard))
    wanted = with_plan(group, shard.pod, plan)
    return _unordered(spec.constraints) == _unordered(wanted.constraints) and _plain(spec.affinity) == _plain(
        wanted.affinity
    )


def unpinned(group: Group, pod: Pod) -> tuple[Pod, tuple[str, ...]]:
    """The pod without its pin, and the zones of that: as many as a shard has pods, so that each of them is needed.

    Returns:
        The pod as it is and no zones, if it may use more zones or fewer. Requirements with more zones stay.
    """
    terms = node_terms(pod.pod_spec.affinity)
    pins = {_pin(group, each) for each in terms}
    zones = next(iter(pins), ())
    if not group.keeps_zones_apart or len(pins) != 1 or not zones:
        return pod, ()
    left = [without(each, partial(_is_pin, group)) for each in terms]
    if any(each == NO_TERM for each in left):
        if any(each != NO_TERM for each in left):
            return pod, ()  # one alternative without a condition would allow no node
        left = []
    affinity = with_node_terms(pod.pod_spec.affinity or NO_AFFINITY, left)
    return with_fields(pod, Fields(pod.pod_spec.constraints, None if affinity == NO_AFFINITY else affinity)), zones


def _pin(group: Group, term: NodeSelectorTerm) -> tuple[str, ...]:
    found = [each.values or () for each in term.match_expressions or () if _is_pin(group, each)]
    return tuple(sorted(found[0])) if len(found) == 1 else ()


def _is_pin(group: Group, each: NodeSelectorRequirement) -> bool:
    return (each.key, each.operator) == (group.zone_key, "In") and len(each.values or ()) == group.pods_per_shard


def _unordered(constraints: Iterable[SpreadConstraint]) -> list[bytes]:
    return sorted(msgspec.json.encode(each, order="deterministic") for each in constraints)


def _plain(affinity: Affinity | None) -> Affinity:
    """The affinity with the requirements of each term in order."""
    terms = (
        replace(term, match_expressions=tuple(sorted(map(sorted_values, own), key=_order)) or None)
        for term in node_terms(affinity)
        for own in (term.match_expressions or (),)
    )
    return with_node_terms(affinity or NO_AFFINITY, terms)


def _order(each: NodeSelectorRequirement) -> tuple[str, str, tuple[str, ...]]:
    return each.key, each.operator, each.values or ()


def is_ours(group: Group, constraint: SpreadConstraint) -> bool:
    """Whether the constraint is of those that the plan replaces: hard, over nodes or zones."""
    return constraint.hard and constraint.topology_key in {HOSTNAME, group.zone_key}


def missing_terms(group: Group, shard: Shard) -> tuple[PodAffinityTerm, ...]:
    """A term for each key that pods of the shard never share, where its pod has none."""
    terms = apart_terms(shard.pod.pod_spec.affinity)
    own = {key for key in group.never_share for each in terms if each.topology_key == key}
    kept = {key for key in own if any(each.topology_key == key and _meets_itself(each, shard.pod) for each in terms)}
    labels = {**(group.selector.match_labels or {}), group.shard_label: shard.value}
    return tuple(
        PodAffinityTerm(topology_key=key, label_selector=LabelSelector(match_labels=labels))
        for key in group.never_share
        if key not in kept
    )


def _meets_itself(term: PodAffinityTerm, pod: Pod) -> bool:
    """Whether a term of anti-affinity matches its own pod."""
    elsewhere = term.namespaces is not None and pod.meta.namespace not in term.namespaces
    selector = valid_selector(term.label_selector)  # invalid in an object that kube-apiserver refuses afterwards
    return not elsewhere and selector is not None and selector.matches(pod.labels)
