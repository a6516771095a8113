"""Find replicas that leave zones empty or uneven: at the minimum, or after a scale-in."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

from webhook.core.api.well_known import HOSTNAME, SCALE_IN_ANNOTATION, ZONE
from webhook.core.index.key_suggestions import intended
from webhook.core.policy.lookup import scale_in_for
from webhook.core.policy.options import ScaleIn
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.fixes import Fix
from webhook.core.rules.frame.own_pods import counts_itself, counts_own_pods_only
from webhook.core.rules.frame.rule import Finding, Need, NotEvaluated, Rule, RuleAnswer, Severity
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.rules.frame.usable_nodes import CAPPING_MIN_DOMAINS, UsableNodes
from webhook.core.text import plural
from webhook.core.workloads.kinds import are_removed_by_replica_sets

# No region of a cloud has more zones. With more, the zones are racks or rooms, and empty zones are normal.
_MOST_ZONES = 6
_GUARD = f"{SCALE_IN_ANNOTATION}: {ScaleIn.GUARD}"


def worst_scale_in(domains: int, most: int, fewest: int) -> tuple[int, ...]:
    """Return the pods of each domain with the largest skew after a scale-in, most first.

    The scale-in removes any of the ``most`` evenly distributed pods, down to any number of at least ``fewest``.
    ``domains`` is at least 2.
    """
    low, fuller = divmod(most, domains)
    before = [low + 1] * fuller + [low] * (domains - fuller)
    # With fewer pods than this, the fullest domain would lose pods too.
    kept = max(fewest, before[0])
    left = []
    for pods in before:
        left.append(min(pods, kept))
        kept -= left[-1]
    return tuple(left)


class _Replicas(NamedTuple):
    """The workload's range of replicas. Both numbers are equal without an autoscaler."""

    fewest: int
    most: int
    scaled: bool


def evaluate(subject: Subject) -> Iterable[RuleAnswer]:
    """Evaluate minimum-below-domains and scale-in-skew, each for the first constraint with a finding."""
    workload = subject.workload
    if not workload.traits.serves or not subject.placed:
        return ()
    if subject.index is not None or subject.context.scalers:
        return _evaluated(subject)
    # The usual answer at admission without a cluster, in few steps.
    if (workload.replicas or 0) < 2 or len(workload.templates) != 1 or (missing := subject.lacks()) is None:
        return ()
    if workload.traits.in_replica_sets:
        return (NotEvaluated(MINIMUM.id, missing), NotEvaluated(SCALE_IN.id, missing))
    return (NotEvaluated(MINIMUM.id, missing),)


def _evaluated(subject: Subject) -> Iterator[RuleAnswer]:
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
    # Other controllers may remove pods in a fixed order, and cannot be guarded.
    if not are_removed_by_replica_sets(subject.workload.group_kind) or _is_guarded(subject):
        return
    if missing:
        yield NotEvaluated(SCALE_IN.id, missing)
    elif nodes is not None and replicas.fewest < replicas.most:
        uneven = (_uneven(each, replicas, nodes) for each in own)
        yield from islice(filter(None, uneven), 1)


_note = partial(
    Rule,
    severity=Severity.LOW,
    mode=Mode.AUDIT,
    only_audits=True,
    since="1.1",
    evaluate=evaluate,
    needs=(Need.NODES, Need.WORKLOADS),
    highest_on_pods=Mode.WARN,
)
MINIMUM = _note(
    id="minimum-below-domains",
    title="the fewest replicas are below minDomains or the number of zones",
    why=(
        "With fewer pods than zones, some zones have no pod. If you have an autoscaler, its `minReplicas` counts, not "
        "your current replicas. The message and the fix then name `minReplicas`."
    ),
)
SCALE_IN = _note(
    id="scale-in-skew",
    title="a scale-in can leave the pods uneven beyond maxSkew, or a zone empty",
    why=(
        "When your autoscaler removes replicas, the ReplicaSet controller chooses the pods. It does not read your "
        "constraints, and Kubernetes moves no running pod afterwards. The message has the worst case: it assumes "
        "equal pods and an even start."
    ),
)


def _own_constraints(subject: Subject) -> list[Placed]:
    """Return the constraints that count the workload's pods and no others, without those over hostnames.

    Empty for objects without replicas of their own, such as a Deployment's ReplicaSets.
    """
    workload = subject.workload
    if workload.meta.controller is not None or len(workload.templates) != 1:
        return []
    labels = workload.templates[0].pod.labels
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


def _is_guarded(subject: Subject) -> bool:
    """Whether the controller orders the removal of the pods."""
    workload, index = subject.workload, subject.index
    labels = {} if index is None else index.namespaces.labels(workload.namespace) or {}
    return scale_in_for(subject.policy, workload.namespace, labels, workload.meta.annotations) is ScaleIn.GUARD


def _domains(placed: Placed, nodes: UsableNodes) -> tuple[int, int]:
    """The number of eligible domains, and of those the number with nodes for the pods."""
    column, counting = nodes.view.column(placed.constraint.topology_key or ""), nodes.counting(placed)
    used = counting & nodes.usable & nodes.tolerated_later
    return column.domain_count(counting), column.domain_count(used)


def _below(placed: Placed, replicas: _Replicas, nodes: UsableNodes | None) -> Finding | None:
    """Return a finding if the fewest replicas are below minDomains or the number of zones."""
    constraint, zones = placed.constraint, 0
    if nodes is not None and intended(constraint.topology_key or "") == ZONE:
        _, zones = _domains(placed, nodes)
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


def _uneven(placed: Placed, replicas: _Replicas, nodes: UsableNodes) -> Finding | None:
    """Return a finding if a scale-in within the range can exceed maxSkew, or empty a domain without need."""
    (domains, usable), max_skew = _domains(placed, nodes), placed.constraint.max_skew or 0
    # Below minDomains, the global minimum is 0, and maxSkew caps the pods of each domain.
    if usable < domains or domains < max(2, placed.constraint.min_domains or 1):
        return None
    left = worst_scale_in(domains, replicas.most, replicas.fewest)
    skew, needless = left[0] - left[-1], left[-1] == 0 and replicas.fewest >= domains
    if skew <= max_skew and not needless:
        return None
    noun, counts = placed.noun, "/".join(map(str, left))
    if domains > _MOST_ZONES:
        counts = f"{left[0]} pods in one {noun} and {left[-1]} in another"
    beyond = f"a skew of {skew}, beyond maxSkew {max_skew}" if skew > max_skew else f"an empty {noun}"
    between = f"from {replicas.most:,} to {plural(sum(left), 'replica')}"
    return SCALE_IN.finding(
        placed,
        "maxSkew",
        Fix(f"add the annotation {_GUARD} to the workload, with controller.scaleIn.guard in the chart"),
        summary=f"{placed.name}: {between}, scale-in can leave {counts}",
        remedy="guard the scale-in",
        detail=f"the autoscaler allows {replicas.fewest:,} to {plural(replicas.most, 'replica')}; a scale-in removes"
        f" pods without regard to {noun}s, so even from an even distribution it can leave {beyond}",
    )
