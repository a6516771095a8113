"""Rules about matchLabelKeys: which revision of the pods a constraint counts.

During a rolling update the old and the new pods stand side by side, and a selector without a revision label counts
both. The old ones then leave in any order, so that the new ones can end uneven:

    most in one domain, a:    D * a - (D - 1) * maxSkew <= replicas + surge, and
                              a - (least in another, x) <= maxSkew + min(surge, most old pods in a domain)
    worst final skew:         a - x, where the other domains hold the rest

Source: kubernetes/kubernetes #98215, #105661; the closed form is compared with an exhaustive search in the tests.
"""

from collections.abc import Iterator

from webhook.core.kinds import Strategy, Workload
from webhook.core.model import ZONE
from webhook.core.policy import Mode
from webhook.core.rules.added import (
    CONTROLLER_REVISION_HASH,
    POD_TEMPLATE_HASH,
    REVISION_LABELS,
    ROLLOUTS_POD_TEMPLATE_HASH,
    may_be_added,
)
from webhook.core.rules.finding import Answer, Finding, NotEvaluated, Placed, Rule, Severity, Subject, guarded, one_line
from webhook.core.written import IntOrText

ABSENT = Rule(
    id="match-label-key-absent",
    title="a key in matchLabelKeys is on none of these pods",
    severity=Severity.MEDIUM,
    mode=Mode.WARN,
    why=(
        "Kubernetes ignores a key of matchLabelKeys that the incoming pod does not have, without a word. The "
        "constraint then counts more pods than its author meant."
    ),
    silent="if the label may be added after the template was written (see selector-not-self).",
)
WRONG_KIND = Rule(
    id="match-label-key-wrong-kind",
    title="matchLabelKeys names the revision label of another kind",
    severity=Severity.MEDIUM,
    mode=Mode.WARN,
    why=(
        "Each controller has a revision label of its own: Deployment pod-template-hash, StatefulSet and DaemonSet "
        "controller-revision-hash, Argo Rollout rollouts-pod-template-hash. Another one is never on the pods, and "
        "Kubernetes ignores it without a word."
    ),
    silent="if the template itself sets the label.",
)
MIXED = Rule(
    id="revision-mixed",
    title="a rolling update can end further apart than maxSkew",
    severity=Severity.MEDIUM,
    mode=Mode.AUDIT,
    why=(
        "The scheduler counts old and new pods together while both exist. When the old ones are gone the new ones can "
        "be further apart than maxSkew, and nothing moves them. matchLabelKeys with pod-template-hash makes every "
        "revision count alone."
    ),
    silent=(
        "for soft constraints, strategy Recreate and maxSurge 0, if matchLabelKeys names any label that the pods have, "
        "and whenever no order of the update can end further "
        "apart than maxSkew at these replicas. Without a cluster it speaks only of zones, and only if it would "
        "with two of them as well as with three."
    ),
)

# The revision label of each kind; None where its pods have none.
_REVISION: dict[tuple[str, str], str | None] = {
    ("apps", "Deployment"): POD_TEMPLATE_HASH,
    ("apps", "StatefulSet"): CONTROLLER_REVISION_HASH,
    ("apps", "DaemonSet"): CONTROLLER_REVISION_HASH,
    ("argoproj.io", "Rollout"): ROLLOUTS_POD_TEMPLATE_HASH,
    ("batch", "Job"): None,
    ("batch", "CronJob"): None,
}

# The API server's defaults for a Deployment that says nothing.
_DEFAULT_SURGE: IntOrText = "25%"
# Without a cluster the rule speaks only if it would in each of these numbers of zones.
_USUAL_ZONES = (2, 3)


def evaluate(subject: Subject) -> Iterator[Answer]:
    """What the three rules say of each constraint."""
    is_deployment = subject.workload.kind == "Deployment" and subject.workload.group == "apps"
    for placed in subject.placed:
        keys = placed.constraint.match_label_keys
        if keys:
            yield from guarded((ABSENT, WRONG_KIND), _keys, placed, keys, subject.workload)
        if is_deployment and placed.constraint.hard and not _tells_revisions(placed):
            yield from guarded((MIXED,), _mixed, placed, subject)


def _keys(placed: Placed, keys: tuple[str, ...], workload: Workload) -> Iterator[Finding]:
    labels = placed.template.template.labels
    kind = (workload.group, workload.kind)
    for number, key in enumerate(keys):
        if key in labels or not key or key == _REVISION.get(kind):
            continue
        path = f"{placed.path}.matchLabelKeys[{number}]"
        if key in REVISION_LABELS and kind in _REVISION and _REVISION[kind] != key:
            yield _wrong_kind(placed, path, key, workload.kind, _REVISION[kind])
        elif not may_be_added(workload, key, in_template=False):
            yield Finding(
                rule=ABSENT.id,
                path=path,
                summary=f"{placed.name} matches on {one_line(key, 80)}, which no pod here has: it is ignored",
                remedy="remove it or label the pods",
                detail=f"the pods have no label {one_line(key)}: Kubernetes leaves the key out of the selector",
                fix=f"label the pods with {one_line(key)}, or take it out of matchLabelKeys",
                key=f"{placed.key} {key}",
            )


def _tells_revisions(placed: Placed) -> bool:
    """Whether old and new pods may be counted apart; a label of the template may be another one in each revision."""
    labels = placed.template.template.labels
    return any(key == POD_TEMPLATE_HASH or key in labels for key in placed.constraint.match_label_keys or ())


def _wrong_kind(placed: Placed, path: str, key: str, kind: str, right: str | None) -> Finding:
    # A StatefulSet replaces its pods in place: counted alone, a new revision may crowd into an occupied domain.
    offered = right if right in {POD_TEMPLATE_HASH, ROLLOUTS_POD_TEMPLATE_HASH} else None
    return Finding(
        rule=WRONG_KIND.id,
        path=path,
        summary=f"{placed.name} matches on {key}, which pods of a {kind} never have",
        remedy=f"use {offered}" if offered else "remove it",
        detail=f"pods of a {kind} never have {key}: Kubernetes leaves the key out of the selector",
        fix=f"matchLabelKeys: [{offered}]" if offered else f"take {key} out of matchLabelKeys",
        key=f"{placed.key} {key}",
    )


def _mixed(placed: Placed, subject: Subject) -> Iterator[Answer]:
    workload, constraint = subject.workload, placed.constraint
    selector, max_skew = constraint.selector, constraint.max_skew or 0
    replicas = 1 if workload.replicas is None else workload.replicas
    surge = surge_of(workload.strategy, replicas)
    if selector is None or not (selector.match_labels or selector.match_expressions) or max_skew < 1:
        return
    if surge == 0 or replicas <= max_skew:
        return
    choices = _domains(placed, subject)
    if not choices:
        yield NotEvaluated(MIXED.id, "no nodes known")
        return
    # With fewer domains than minDomains the minimum is 0: maxSkew is a cap, and no two can be further apart.
    enough = [domains for domains in choices if domains >= (constraint.min_domains or 1)]
    worst = {domains: worst_final_skew(domains, replicas, surge, max_skew) for domains in enough}
    if not worst or min(worst.values()) <= max_skew:
        return
    domains, apart = max(worst.items(), key=lambda each: each[1])
    yield Finding(
        rule=MIXED.id,
        path=f"{placed.path}.matchLabelKeys",
        summary=f"a rollout of {replicas} can end {apart} apart (maxSkew {max_skew})",
        remedy=f"add matchLabelKeys: [{POD_TEMPLATE_HASH}]",
        detail=f"old and new pods are counted together: with maxSurge {surge} over {domains} domains of"
        f" {one_line(constraint.topology_key or '')} the {replicas} new ones can end {apart} apart, maxSkew {max_skew}",
        fix=f"matchLabelKeys: [{POD_TEMPLATE_HASH}]",
        key=placed.key,
        warns=True,
    )


def _domains(placed: Placed, subject: Subject) -> tuple[int, ...]:
    """How many domains the key has: from the cluster; what is usual of zones where there is none."""
    key = placed.constraint.topology_key or ""
    if subject.index is not None and subject.index.nodes():
        return (len(subject.index.domains(key)),)
    return _USUAL_ZONES if key == ZONE else ()


def surge_of(strategy: Strategy | None, replicas: int) -> int:
    """Pods above ``replicas`` during a rolling update; 0 for Recreate, and where the text is no percentage.

    Source: deployment/util ResolveFenceposts: a percentage of maxSurge rounds up.
    """
    if strategy is not None and strategy.type == "Recreate":
        return 0
    written = strategy.max_surge if strategy is not None and strategy.max_surge is not None else _DEFAULT_SURGE
    if isinstance(written, int):
        return max(written, 0)
    percent = written.removesuffix("%")
    # Longer numbers are refused by the API server, and int() would take its time over them.
    return -(-replicas * int(percent) // 100) if percent.isdecimal() and percent.isascii() and len(percent) < 6 else 0


def worst_final_skew(domains: int, replicas: int, surge: int, max_skew: int) -> int:
    """Largest difference between two domains that some order of a rolling update leaves behind.

    Shape: ``surge`` is at least 1. Every placement keeps the scheduler's rule over old and new pods together; any old
    pod may be deleted next; the old pods may start in any arrangement that maxSkew allows.
    Unit: pods.
    """
    if domains < 2:
        return 0
    others = domains - 1
    old = min((replicas + others * max_skew) // domains, replicas)
    apart = max_skew + min(surge, old)
    most = min((replicas + surge + others * max_skew) // domains, (replicas + others * apart) // domains, replicas)
    return most - max(replicas - others * most, most - apart, 0)
