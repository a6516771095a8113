"""The rule about where the pods of a workload stand, whatever it declares."""

from collections.abc import Iterator, Mapping

from webhook.core.groups import Counts
from webhook.core.index import ClusterIndex
from webhook.core.kinds import Template
from webhook.core.model import HOSTNAME, ZONE, SpreadConstraint
from webhook.core.nodes import Column
from webhook.core.policy import Mode
from webhook.core.rules.finding import Answer, Finding, NotEvaluated, Rule, Severity, Subject, one_line
from webhook.core.rules.neighbours import NO_SELECTOR, own_selector, readable_selector, selects
from webhook.core.rules.nodes import Ground

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


def evaluate(subject: Subject) -> Iterator[Answer]:
    """What the rule says of a workload that keeps several pods running."""
    workload, index = subject.workload, subject.index
    if workload.kind in NOT_REPLICATED or workload.replicas in NO_REPLICAS or not workload.templates:
        return
    own = own_selector(workload)
    missing = subject.lacks("nodes", "pods") or ("" if own else NO_SELECTOR)
    if missing or index is None or own is None:
        yield NotEvaluated(ALL_IN_ONE.id, missing)
        return
    counts = index.count(workload.meta.namespace, own)
    if sum(counts.values()) >= _FEWEST:
        yield from _together(workload.templates[0], counts, subject, index)


def _together(template: Template, counts: Counts, subject: Subject, index: ClusterIndex) -> Iterator[Finding]:
    view, affine = index.view(), _wanted_together(template)
    ground = Ground(template, subject.policy, view)
    for key in (HOSTNAME, ZONE):
        domain = _one_domain(view.column(key), counts)
        if domain is not None and key not in affine and view.column(key).domain_count(ground.open) > 1:
            yield _finding(template, key, domain, sum(counts.values()), subject)
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


def _finding(template: Template, key: str, domain: str, pods: int, subject: Subject) -> Finding:
    detail = subject.policy.messages.detail
    shown = detail == "full" if key == HOSTNAME else detail != "minimal"
    noun = "zone" if key == ZONE else "node"
    place = f"{noun} {one_line(domain, 40)}" if shown else f"one {noun}"
    declared = (each for each in template.template.pod_spec.constraints if each.topology_key == key)
    spread = any(_counts_itself(each, template.template.labels) for each in declared)
    return Finding(
        rule=ALL_IN_ONE.id,
        path=f"{template.path}spec.topologySpreadConstraints",
        summary=f"all {pods} running pods are {'in' if key == ZONE else 'on'} {place}",
        remedy="restart it to place them anew" if spread else f"spread them over {noun}s",
        detail=f"the loss of that {noun} takes all {pods} running pods down; other {noun}s are open to them",
        fix="kubectl rollout restart: a pod is placed once, when it is made"
        if spread
        else f"- {{maxSkew: 1, topologyKey: {key}, whenUnsatisfiable: ScheduleAnyway, labelSelector: …}}",
        key=f"{template.path} {noun}",
    )


def _counts_itself(constraint: SpreadConstraint, labels: Mapping[str, str]) -> bool:
    selector = readable_selector(constraint, labels) if selects(constraint) else None
    return selector is not None and selector.matches(labels)
