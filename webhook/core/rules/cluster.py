"""Rules that need the cluster: its nodes, the other pods, or a dry run.

They are listed with the objects of which they could speak, so that a clean result never looks like approval by a
rule that could not look.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from webhook.core.kinds import Template
from webhook.core.model import HOSTNAME, IGNORE, ZONE
from webhook.core.policy import Mode
from webhook.core.rules.distribution import NO_REPLICAS, NOT_REPLICATED
from webhook.core.rules.finding import NO_CLUSTER, NotEvaluated, Rule, Severity, Subject

NOT_SUPPORTED = "not supported yet"


def _rule(id_: str, title: str, severity: Severity, mode: Mode, why: str) -> Rule:
    silent = "without a cluster, and in this release with one too: the rule is listed as not evaluated."
    return Rule(id=id_, title=title, severity=severity, mode=mode, why=why, silent=silent)


TAINTED = _rule(
    "tainted-nodes-counted",
    "a domain of tainted nodes holds the minimum down",
    Severity.MEDIUM,
    Mode.AUDIT,
    "With nodeTaintsPolicy Ignore, the default, a domain whose nodes the pod does not tolerate counts with 0 pods, and "
    "no other domain may hold more than maxSkew.",
)
CEILING = _rule(
    "zone-host-ceiling",
    "a zone and a host constraint together cap the replicas",
    Severity.MEDIUM,
    Mode.AUDIT,
    "The zone with the fewest nodes caps all zones when no node may hold a second pod.",
)
CONFLICTS = _rule(
    "spread-conflicts-affinity",
    "affinity or volumes leave fewer places than replicas",
    Severity.HIGH,
    Mode.WARN,
    "A node selector, pod affinity or a volume's zone can leave no place that the constraint admits.",
)
ZONE_LOSS = _rule(
    "zone-loss-strands-pods",
    "replacements stay Pending if one zone is lost",
    Severity.MEDIUM,
    Mode.AUDIT,
    "Nodes of a lost zone stay for a while and count with 0 pods: the other zones may not take the replacements.",
)
STUCK = _rule(
    "replicas-can-get-stuck",
    "some orders of placing the replicas leave pods Pending",
    Severity.HIGH,
    Mode.WARN,
    "The scheduler places one pod at a time and never moves one: two constraints can exclude each other on the way.",
)
ROLLOUT_STUCK = _rule(
    "rollout-can-get-stuck",
    "some orders of a rolling update leave pods Pending",
    Severity.HIGH,
    Mode.WARN,
    "Old pods count until they are gone; a rollout can wait for a place that only its own progress would free.",
)
GROUP_CAP = _rule(
    "group-cap",
    "a cap of a SpreadGroup is or would be broken",
    Severity.HIGH,
    Mode.WARN,
    "A SpreadGroup says how much of a group one zone or node may hold.",
)


# They say whether there is room at this moment, not whether the object is right.
FEASIBILITY = (CONFLICTS, ZONE_LOSS, STUCK, ROLLOUT_STUCK)


class Shape(NamedTuple):
    """What of an object decides which of these rules could speak of it."""

    declares: bool
    hard: bool
    counts_tainted: bool
    zone_and_host: bool
    pinned: bool
    replicated: bool
    rolls: bool


_NEEDS: tuple[tuple[Rule, Callable[[Shape], bool]], ...] = (
    (TAINTED, lambda shape: shape.counts_tainted),
    (CEILING, lambda shape: shape.zone_and_host),
    (CONFLICTS, lambda shape: shape.hard and shape.pinned),
    (ZONE_LOSS, lambda shape: shape.hard and shape.replicated),
    (STUCK, lambda shape: shape.hard and shape.replicated),
    (ROLLOUT_STUCK, lambda shape: shape.hard and shape.rolls),
    (GROUP_CAP, lambda shape: shape.replicated),
)
NEED_CLUSTER = frozenset(rule.id for rule, _ in _NEEDS)

_IGNORES = frozenset({None, IGNORE})
_ROLLS = frozenset({"Deployment", "StatefulSet", "Rollout", "CloneSet"})


def evaluate(subject: Subject) -> tuple[NotEvaluated, ...]:
    """The rules that could have spoken of this object."""
    return _missing(_shape(subject), NO_CLUSTER if subject.index is None else NOT_SUPPORTED)


@cache  # at most 2 ** len(Shape) answers for each of the two reasons
def _missing(shape: Shape, reason: str) -> tuple[NotEvaluated, ...]:
    return tuple(NotEvaluated(rule.id, reason) for rule, could_speak in _NEEDS if could_speak(shape))


def _shape(subject: Subject) -> Shape:
    workload = subject.workload
    hard = counts_tainted = zone = host = False
    for placed in subject.placed:
        constraint = placed.constraint
        if constraint.hard:
            hard = True
            counts_tainted = counts_tainted or constraint.node_taints_policy in _IGNORES
            zone = zone or constraint.topology_key == ZONE
            host = host or constraint.topology_key == HOSTNAME
    return Shape(
        declares=bool(subject.placed),
        hard=hard,
        counts_tainted=counts_tainted,
        zone_and_host=zone and host,
        pinned=hard and any(_is_pinned(template) for template in workload.templates),
        replicated=workload.kind not in NOT_REPLICATED and workload.replicas not in NO_REPLICAS,
        rolls=workload.kind in _ROLLS,
    )


def _is_pinned(template: Template) -> bool:
    spec = template.template.pod_spec
    claims = any(volume.persistent_volume_claim for volume in spec.volumes or ())
    return claims or bool(spec.node_selector or spec.affinity)
