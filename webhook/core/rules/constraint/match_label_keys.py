"""Rules about matchLabelKeys, the keys of labels for counting a single revision.

Without a revision label, the selector counts old and new pods together during a rolling update. The old pods leave in
any order, and the new pods can end uneven. D is the number of domains. The fullest domain has a new pods, and the
emptiest has x new pods:

    bounds of a:           D * a - (D - 1) * maxSkew <= replicas + surge, and
                           a - x <= maxSkew + min(surge, most old pods in a domain)
    worst final skew:      a - x, where the other domains have the remaining pods

A scheduler that sees deletions late can exceed the bound. `SEEN` has the rollouts measured on a real cluster.

Source: kubernetes/kubernetes #98215, #105661; a test compares the closed form with an exhaustive search.
"""

from collections.abc import Iterator, Mapping
from functools import partial

from webhook.core.api.well_known import POD_TEMPLATE_HASH, ROLLOUTS_POD_TEMPLATE_HASH, ZONE
from webhook.core.api.written_selector import has_conditions, selected_keys
from webhook.core.budget import Reason
from webhook.core.json_edits import Edit
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.fixes import Fix, changes
from webhook.core.rules.frame.own_pods import counts_own_pods_only
from webhook.core.rules.frame.rule import (
    Finding,
    NotEvaluated,
    Reevaluated,
    Rule,
    RuleAnswer,
    Severity,
    guarded,
    short_enough,
)
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.rules.frame.usable_nodes import UsableNodes
from webhook.core.spelling import with_article
from webhook.core.text import plural, quoted
from webhook.core.workloads.controller_labels import may_be_added
from webhook.core.workloads.kinds import DEPLOYMENT, REVISION_LABELS
from webhook.core.workloads.rollouts import DEFAULT_SURGE, surge_of, worst_final_skew
from webhook.core.workloads.workload import Workload

# Without a cluster the rule speaks only if it would in each of these numbers of zones.
_USUAL_ZONES = (2, 3)

# By replicas and zones: rollouts of 20 that ended beyond maxSkew 1, and the largest difference.
# Source: tests/e2e/rollouts.py, Kubernetes 1.37.1, 22 November 2026; docs/rules/rollouts.md.
SEEN: Mapping[int, Mapping[int, tuple[int, int]]] = {
    3: {2: (0, 1), 3: (16, 2), 4: (1, 2)},
    4: {2: (6, 2), 3: (7, 2), 4: (19, 2)},
    5: {2: (2, 3), 3: (9, 3), 4: (11, 2)},
    6: {2: (6, 4), 3: (14, 3), 4: (3, 2)},
    7: {2: (2, 3), 3: (5, 2), 4: (13, 3)},
    8: {2: (6, 2), 3: (10, 3), 4: (19, 3)},
    9: {2: (4, 3), 3: (15, 4), 4: (8, 3)},
    10: {2: (8, 4), 3: (8, 4), 4: (9, 4)},
    11: {2: (5, 3), 3: (7, 3), 4: (17, 3)},
    12: {2: (13, 4), 3: (13, 3), 4: (20, 3)},
}
ROLLOUTS_TRIED = 20  # so that what happens in one rollout of ten is seen with a probability of 88 %
# Below one rollout in ten it is an audit note, not a warning.
_NOTICED = 10


# Also the texts of admission policies.
ABSENT_SUMMARY = "{name}.matchLabelKeys: the pods have no label {key}, so Kubernetes ignores this key"
ABSENT_REMEDY = "remove it or label the pods"
_ABSENT_SAID = "{name}: the pods have no label {key}, so this key is ignored"
ABSENT_LINES = (f"{_ABSENT_SAID}; {ABSENT_REMEDY}", f"{_ABSENT_SAID}; remove it")
WRONG_KIND_SUMMARY = "{name}.matchLabelKeys: pods of {kind} never have the label {key}"
_WRONG_KIND_SAID = "{name}: {kind} pods never have {key}"
WRONG_KIND_LINES = (f"{_WRONG_KIND_SAID}; {{remedy}}", _WRONG_KIND_SAID)
OFFERED = frozenset({POD_TEMPLATE_HASH, ROLLOUTS_POD_TEMPLATE_HASH})

_SCALED = Reason("replicas (an autoscaler sets them)")
_OTHER_KIND = Reason("rollouts of kinds other than Deployment")


def evaluate(subject: Subject) -> Iterator[RuleAnswer]:
    """Evaluate match-label-key-absent, match-label-key-wrong-kind and revision-mixed for each constraint."""
    for placed in subject.placed:
        keys = placed.constraint.match_label_keys
        if keys and (len(keys) > 1 or keys[0] != subject.workload.traits.revision):
            yield from guarded((ABSENT, WRONG_KIND), _keys, placed, keys, subject.workload)
        if subject.workload.traits.rolls and placed.constraint.hard and not _tells_revisions(placed):
            yield from guarded((MIXED,), _mixed, placed, subject)


_rule = partial(Rule, severity=Severity.MEDIUM, evaluate=evaluate, reevaluated=Reevaluated.AFTER_FIXES)
ABSENT = _rule(
    id="match-label-key-absent",
    title="the pods lack a label named in matchLabelKeys",
    mode=Mode.WARN,
    why=(
        "If the new pod lacks a label named in matchLabelKeys, Kubernetes ignores the key silently. The constraint "
        "then counts more pods than you intended."
    ),
    of_a_part=True,
)
WRONG_KIND = _rule(
    id="match-label-key-wrong-kind",
    title="matchLabelKeys names the revision label of another kind",
    mode=Mode.WARN,
    why=(
        "Each controller sets its own revision label: `pod-template-hash` for a Deployment, `controller-revision-hash` "
        "for a StatefulSet or DaemonSet, `rollouts-pod-template-hash` for an Argo Rollout. Your pods never get the "
        "label of another kind, and Kubernetes ignores the key silently."
    ),
    of_a_part=True,
)
MIXED = _rule(
    id="revision-mixed",
    title="a rolling update can leave a skew above maxSkew",
    mode=Mode.AUDIT,
    why=(
        "During a rollout, the scheduler counts old and new pods together. After the old pods are gone, the skew "
        "of your new pods can exceed maxSkew, and Kubernetes never moves them. On a real control plane, 276 of 600 "
        "rollouts ended beyond maxSkew ([measurements](rollouts.md)). With pod-template-hash in matchLabelKeys, "
        "the scheduler counts each revision alone. Then 0 of 90 rollouts ended beyond maxSkew.\n\n"
        "The rule warns if all of these hold, and otherwise audits:\n\n"
        "- the constraint is over zones, with maxSkew 1,\n"
        "- the Deployment has the default strategy,\n"
        "- in our measurements with as many replicas and zones, at least one in ten rollouts ended beyond maxSkew."
    ),
)


def _keys(placed: Placed, keys: tuple[str, ...], workload: Workload) -> Iterator[Finding]:
    labels = placed.template.pod.labels
    revision = workload.traits.revision
    for number, key in enumerate(keys):
        if key in labels or not key or key == revision:
            continue
        field = f"matchLabelKeys[{number}]"
        if key in REVISION_LABELS and revision is not None:
            yield _wrong_kind(placed, field, key, workload.kind, revision)
        elif not may_be_added(workload, key, in_template=False):
            name, edit = quoted(key, 80), Edit(f"{placed.path}.{field}")
            lines = (line.format(name=placed.name, key=name) for line in ABSENT_LINES)
            yield ABSENT.finding(
                placed,
                field,
                Fix(f"remove {quoted(key)} from matchLabelKeys, or label the pods with it", (edit,)),
                summary=ABSENT_SUMMARY.format(name=placed.name, key=name),
                remedy=ABSENT_REMEDY,
                warning=short_enough(ABSENT.id, *lines),
                detail=f"the pods have no label {quoted(key)}, so Kubernetes leaves the key out of the selector",
                key=f"{placed.key} {key}",
            )


def _tells_revisions(placed: Placed) -> bool:
    """Whether the constraint may count revisions separately: it uses a revision label or a template label."""
    keys = placed.constraint.match_label_keys or ()
    named = {*keys, *selected_keys(placed.constraint.selector)}
    return not REVISION_LABELS.isdisjoint(named) or not placed.template.pod.labels.keys().isdisjoint(keys)


def _wrong_kind(placed: Placed, field: str, key: str, kind: str, right: str) -> Finding:
    # A StatefulSet replaces pods in place, so a revision counted alone may crowd an occupied domain.
    # kube-apiserver refuses pods with the key in the selector too.
    there = {*(placed.constraint.match_label_keys or ()), *selected_keys(placed.constraint.selector)}
    offered = right if right in OFFERED and right not in there else None
    remedy = f"use {offered}" if offered else "remove it"
    lines = (line.format(name=placed.name, kind=kind, key=key, remedy=remedy) for line in WRONG_KIND_LINES)
    fix = Fix(offered or f"remove {key} from matchLabelKeys", (Edit(f"{placed.path}.{field}", offered),))
    return WRONG_KIND.finding(
        placed,
        field,
        fix,
        summary=WRONG_KIND_SUMMARY.format(name=placed.name, kind=with_article(kind), key=key),
        remedy=remedy,
        warning=short_enough(WRONG_KIND.id, *lines),
        detail=f"pods of {with_article(kind)} never have {key}, so Kubernetes leaves the key out of the selector",
        key=f"{placed.key} {key}",
    )


def _mixed(placed: Placed, subject: Subject) -> Iterator[RuleAnswer]:
    workload, constraint = subject.workload, placed.constraint
    max_skew, scaler = constraint.max_skew or 0, subject.scaler if workload.replicas is None else None
    replicas = workload.replicas if workload.replicas is not None else scaler.spec.max_replicas if scaler else 1
    # So few replicas cannot differ by more than maxSkew.
    may_differ = 1 <= max_skew < replicas and has_conditions(constraint.selector)
    if not may_differ or not placed.template.pod.labels:
        return
    if workload.group_kind != DEPLOYMENT:
        if workload.traits.surges is None:
            yield NotEvaluated(MIXED.id, _OTHER_KIND)
    elif (surge := surge_of(workload.strategy, replicas)) > 0 and scaler is None:
        yield from _beyond(placed, subject, replicas=replicas, surge=surge)
    elif surge > 0:
        yield NotEvaluated(MIXED.id, _SCALED)


def _beyond(placed: Placed, subject: Subject, *, replicas: int, surge: int) -> Iterator[RuleAnswer]:
    constraint, max_skew = placed.constraint, placed.constraint.max_skew or 0
    choices = _domains(placed, subject)
    if choices is None:
        yield NotEvaluated(MIXED.id, subject.lacks("nodes") or Reason("no nodes known"))
        return
    # With fewer domains than minDomains the minimum is 0: maxSkew is a cap, and no two can be further apart.
    enough = [domains for domains in choices if domains >= (constraint.min_domains or 1)]
    worst = {domains: worst_final_skew(domains, replicas, surge, max_skew) for domains in enough}
    if worst and min(worst.values()) > max_skew:
        yield _rolled_out(placed, subject, replicas, worst)


def _rolled_out(placed: Placed, subject: Subject, replicas: int, worst: Mapping[int, int]) -> Finding:
    """Return the finding about the skew after a rolling update, possible and measured.

    ``worst`` maps the number of domains to the largest possible skew.
    """
    constraint, max_skew = placed.constraint, placed.constraint.max_skew or 0
    what = f"{placed.noun}s"
    seen = {domains: SEEN[replicas][domains] for domains in worst} if _is_counted(placed, subject) else {}
    apart = max((apart for _, apart in seen.values()), default=0)
    # A measured number convinces more than a possible number.
    if apart > max_skew:
        said = f"can differ by {apart}"
    elif _is_bound(placed, subject.workload):
        said = f"may differ by {max(worst.values())}"
    else:
        said = f"may differ by more than {max_skew}"
    often = ", ".join(
        f"{ends} of {ROLLOUTS_TRIED} over {plural(domains, 'zone')}" for domains, (ends, _) in seen.items()
    )
    fix = changes(placed, matchLabelKeys=(*(constraint.match_label_keys or ()), POD_TEMPLATE_HASH))
    return MIXED.finding(
        placed,
        "matchLabelKeys",
        fix,
        summary=f"after a rollout of {plural(replicas, 'replica')} the {what} {said},"
        " because old and new pods are counted together",
        remedy=f"add matchLabelKeys: [{POD_TEMPLATE_HASH}]",
        warning=f"after a rollout of {replicas}, {what} {said}; add matchLabelKeys: [{POD_TEMPLATE_HASH}]",
        detail=f"maxSkew {max_skew} covers old and new pods together, and nothing moves the new pods after the old ones"
        f" are gone{often and f'; measured rollouts that ended beyond maxSkew: {often}'}",
        warns=(bool(seen) and all(ends * _NOTICED >= ROLLOUTS_TRIED for ends, _ in seen.values())) or None,
    )


def _is_bound(placed: Placed, workload: Workload) -> bool:
    """Whether only the workload's own pods count, and no other constraint is hard.

    The closed formula for the skew after rollouts then applies.
    """
    hard = sum(each.hard for each in placed.template.pod.pod_spec.constraints)
    return hard == 1 and counts_own_pods_only(placed.constraint.selector, workload.selector)


def _is_counted(placed: Placed, subject: Subject) -> bool:
    constraint, workload, strategy = placed.constraint, subject.workload, subject.workload.strategy
    replicas = workload.replicas or 0
    if constraint.topology_key != ZONE or constraint.max_skew != 1 or not _is_bound(placed, workload):
        return False
    choices = _domains(placed, subject) or ()
    default = strategy is None or {strategy.max_surge, strategy.max_unavailable} <= {None, DEFAULT_SURGE}
    return default and SEEN.get(replicas, {}).keys() >= {*choices}


def _domains(placed: Placed, subject: Subject) -> tuple[int, ...] | None:
    """Return the possible numbers of the constraint's eligible domains.

    None if unknown. The number comes from the cluster. Without a cluster, it is the usual number of zones. The result
    is empty if no node of some domain accepts the pods, because that domain limits the others.
    """
    key = placed.constraint.topology_key or ""
    if subject.index is None or subject.index.lacks("nodes"):
        return _USUAL_ZONES if key == ZONE else None
    ground = UsableNodes(subject, placed.template)
    domains = ground.domains(placed)
    open_ = ground.view.column(key).domain_count(ground.open & ground.with_hard_keys)
    return (domains,) if domains == open_ else ()
