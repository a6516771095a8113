"""Find workloads whose fewest replicas leave zones empty."""

from collections.abc import Iterator
from typing import NamedTuple

from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.index.key_suggestions import intended
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.counted_pods import counts_itself, counts_own_pods_only
from webhook.core.rules.frame.fixes import Fix
from webhook.core.rules.frame.rule import Finding, Need, NotEvaluated, Rule, RuleAnswer, Severity
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.rules.frame.usable_nodes import CAPPING_MIN_DOMAINS, UsableNodes
from webhook.core.text import plural

# No region of a cloud has more zones. With more, the zones are racks or rooms, and empty zones are normal.
_MOST_ZONES = 6


class _Replicas(NamedTuple):
    """The workload's range of replicas. Both numbers are equal without an autoscaler."""

    fewest: int
    most: int
    scaled: bool


def evaluate(subject: Subject) -> Iterator[RuleAnswer]:
    """Evaluate minimum-below-domains for the first constraint with a finding."""
    own, replicas = _own_constraints(subject), _replicas(subject)
    if not own or replicas is None:
        return
    missing = subject.lacks("nodes", *(() if replicas.scaled else ("horizontalpodautoscalers",)))
    nodes = None if missing else UsableNodes(subject, own[0].template)
    # If autoscalers are unknown, so is the minimum.
    below = [] if missing and not replicas.scaled else [_below(each, replicas, nodes) for each in own]
    if finding := next(filter(None, below), None):
        yield finding
    elif missing:
        yield NotEvaluated(MINIMUM.id, missing)


MINIMUM = Rule(
    id="minimum-below-domains",
    title="the fewest replicas are below minDomains or the number of zones",
    severity=Severity.LOW,
    mode=Mode.AUDIT,
    only_audits=True,
    ask=evaluate,
    needs=(Need.NODES, Need.WORKLOADS),
    highest_on_pods=Mode.WARN,
    why=(
        "With fewer pods than zones, some zones have no pod. If you have an autoscaler, its minimum counts, not your "
        "current replicas."
    ),
)


def _own_constraints(subject: Subject) -> list[Placed]:
    """Return the constraints that count the workload's pods and no others, without those over hostnames.

    Empty for objects without lasting replicas of their own, such as Jobs, Pods and a Deployment's ReplicaSets.
    """
    workload = subject.workload
    if not workload.traits.serves or workload.meta.controller is not None or len(workload.templates) != 1:
        return []
    labels = workload.templates[0].template.labels
    return [
        each
        for each in subject.placed
        if each.constraint.topology_key not in {None, "", HOSTNAME}
        and (each.constraint.max_skew or 0) > 0
        and counts_own_pods_only(each.constraint.selector, workload.selector)
        and counts_itself(each.constraint, labels)
    ]


def _replicas(subject: Subject) -> _Replicas | None:
    """Return the range of replicas. None for a single replica or unknown replicas."""
    stated = subject.workload.templates[0].replicas
    if subject.scaler is None or stated == 0:  # Kubernetes scales no workload with 0 replicas.
        return _Replicas(stated, stated, scaled=False) if stated is not None and stated > 1 else None
    spec = subject.scaler.spec
    return _Replicas(spec.least, spec.max_replicas, scaled=True) if spec.max_replicas > 1 else None


def _usable_domains(placed: Placed, nodes: UsableNodes) -> int:
    """The number of eligible domains with nodes for the pods."""
    used = nodes.counting(placed) & nodes.usable & nodes.tolerated_later
    return nodes.view.column(placed.constraint.topology_key or "").domain_count(used)


def _below(placed: Placed, replicas: _Replicas, nodes: UsableNodes | None) -> Finding | None:
    """Return a finding if the fewest replicas are below minDomains or the number of zones."""
    constraint, zones = placed.constraint, 0
    if nodes is not None and intended(constraint.topology_key or "") == ZONE:
        zones = _usable_domains(placed, nodes)
    least = constraint.min_domains or 1 if constraint.hard else 1
    wanted = max(least if least < CAPPING_MIN_DOMAINS else 1, zones if zones <= _MOST_ZONES else 0)
    # A minimum of 0 is deliberate.
    if not 0 < replicas.fewest < wanted:
        return None
    fewest, noun = plural(replicas.fewest, "replica"), placed.noun
    minimum = f"the autoscaler's minimum of {fewest}" if replicas.scaled else fewest
    field = "minReplicas" if replicas.scaled else "replicas"
    if wanted == zones:
        leaves = "leaves" if replicas.scaled else "leave"
        said = f"{placed.name}: {minimum} {leaves} {wanted - replicas.fewest} of {plural(wanted, noun)} empty"
    else:
        said = f"{placed.name}: {minimum} {'is' if replicas.scaled else 'are'} below minDomains {wanted}"
    also = " and maxReplicas" if replicas.scaled and replicas.most < wanted else ""
    return MINIMUM.finding(
        placed,
        "topologyKey" if wanted == zones else "minDomains",
        Fix(f"set {field}{also}: {wanted}{' in the autoscaler' * replicas.scaled}"),
        summary=said,
        remedy=f"use {field}{also}: {wanted}",
        detail=f"{plural(replicas.fewest, 'pod')} cannot be in {plural(wanted, noun)}, so losing one {noun} can take"
        f" down {'the only pod' if replicas.fewest == 1 else f'at least 1 of {replicas.fewest} pods'}",
    )
