"""The rule about where the pods of a workload stand, whatever it declares."""

from collections.abc import Iterator

from webhook.core.groups import Counts
from webhook.core.index import ClusterIndex
from webhook.core.kinds import Template
from webhook.core.model import HOSTNAME, ZONE
from webhook.core.nodes import Column
from webhook.core.policy import Mode
from webhook.core.rules.finding import Answer, Finding, NotEvaluated, Rule, Severity, Subject, one_line
from webhook.core.rules.neighbours import (
    NO_SELECTOR,
    OWN_LABELS,
    foreign_pods,
    own_selector,
    readable_selector,
    selects,
)
from webhook.core.rules.nodes import Ground
from webhook.core.selectors import Selector

ALL_IN_ONE = Rule(
    id="all-in-one-domain",
    title="all pods of the workload stand in one zone or on one node",
    severity=Severity.MEDIUM,
    mode=Mode.AUDIT,
    why=(
        "The loss of that zone or node takes the whole workload down. It happens without constraints, with soft ones, "
        "and where a constraint came after the pods."
    ),
    silent=(
        "for fewer than two pods on nodes, ready or not, that are neither finished nor terminating; for workloads of "
        "one replica; where node selector, affinity, taints or cordons leave these pods one zone or node at present; "
        "where pod affinity asks for one place; and for kinds that run to completion or on every node. It is not "
        "evaluated for kinds without a selector."
    ),
)

# Kinds that keep no number of pods running, or one on each node.
NOT_REPLICATED = frozenset({"Pod", "PodTemplate", "DaemonSet", "Job", "CronJob"})
NO_REPLICAS = frozenset({0, 1})
_FEWEST = 2
_NOUNS = {HOSTNAME: "node", ZONE: "zone"}


def evaluate(subject: Subject) -> Iterator[Answer]:
    """What the rule says of a workload that keeps several pods running."""
    workload, index = subject.workload, subject.index
    if workload.kind in NOT_REPLICATED or workload.replicas in NO_REPLICAS or not workload.templates:
        return
    missing = subject.lacks("nodes", "pods")
    own = None if missing else own_selector(workload)
    if index is None or own is None:
        yield NotEvaluated(ALL_IN_ONE.id, missing or NO_SELECTOR)
        return
    counts = index.count(workload.meta.namespace, own)
    if sum(counts.values()) >= _FEWEST:
        yield from _together(counts, own, subject, index)


def _together(counts: Counts, own: Selector, subject: Subject, index: ClusterIndex) -> Iterator[Finding]:
    template, view = subject.workload.templates[0], index.view()
    affine, ground = _wanted_together(template), Ground(template, subject.policy, view)
    for key in (HOSTNAME, ZONE):
        domain = _one_domain(view.column(key), counts)
        if domain is not None and key not in affine and view.column(key).domain_count(ground.open) > 1:
            yield _finding(key, domain, sum(counts.values()), _help(template, key, own, subject, index), subject)
            return


def _one_domain(column: Column, counts: Counts) -> str | None:
    """The domain that holds all pods; None where there are two, or a node that lacks the key or is gone."""
    first = -1
    for slot in counts:
        number = column.of[slot] if slot < len(column.of) else -1
        if number < 0 or number != first >= 0:
            return None
        first = number
    return column.values[first]


def _wanted_together(template: Template) -> frozenset[str]:
    """The topology keys over which pod affinity asks for one place; on one node is in one zone too."""
    affinity = template.template.pod_spec.affinity
    terms = affinity.pod_affinity if affinity else None
    if terms is None:
        return frozenset()
    keys = {term.topology_key for term in terms.required or ()}
    keys |= {each.pod_affinity_term.topology_key for each in terms.preferred or () if each.pod_affinity_term}
    return frozenset(keys | ({ZONE} if HOSTNAME in keys else set()))


def _help(template: Template, key: str, own: Selector, subject: Subject, index: ClusterIndex) -> tuple[str, str]:
    """What would take the pods apart, as a warning says it and as it is done.

    A constraint that counts others as well is content with them in the other domains, and so would a restart be.
    """
    labels, shared = template.template.labels, False
    for constraint in template.template.pod_spec.constraints:
        selector = readable_selector(constraint, labels) if selects(constraint) else None
        if constraint.topology_key != key or selector is None or not selector.matches(labels):
            continue
        alone = not OWN_LABELS.isdisjoint(constraint.match_label_keys or ())
        if alone or not foreign_pods(subject.workload.meta.namespace, selector, own, index):
            return "restart it to place them anew", "kubectl rollout restart: a pod is placed once, when it is made"
        shared = True
    if shared:
        return "count these pods alone", "labelSelector: the same as spec.selector"
    fix = f"- {{maxSkew: 1, topologyKey: {key}, whenUnsatisfiable: ScheduleAnyway, labelSelector: …}}"
    return f"spread them over {_NOUNS[key]}s", fix


def _finding(key: str, domain: str, pods: int, help_: tuple[str, str], subject: Subject) -> Finding:
    detail, noun = subject.policy.messages.detail, _NOUNS[key]
    shown = detail == "full" if key == HOSTNAME else detail != "minimal"
    place = f"{noun} {one_line(domain, 40)}" if shown else f"one {noun}"
    path = subject.workload.templates[0].path
    return Finding(
        rule=ALL_IN_ONE.id,
        path=f"{path}spec.topologySpreadConstraints",
        summary=f"all {pods} running pods are {'in' if key == ZONE else 'on'} {place}",
        remedy=help_[0],
        detail=f"the loss of that {noun} takes all {pods} running pods down; other {noun}s are open to them",
        fix=help_[1],
        key=f"{path} {noun}",
    )
