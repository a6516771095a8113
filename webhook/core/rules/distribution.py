"""The rule about where the pods of a workload stand, whatever it declares."""

from collections.abc import Iterator

from webhook.core.eligible import tolerated_nodes, usable_nodes
from webhook.core.groups import Counts
from webhook.core.index import ClusterIndex
from webhook.core.kinds import Template
from webhook.core.model import HOSTNAME, ZONE
from webhook.core.nodes import NodeView
from webhook.core.policy import Mode
from webhook.core.rules.finding import Answer, Finding, NotEvaluated, Rule, Severity, Subject, one_line
from webhook.core.rules.neighbours import NO_SELECTOR, balances, own_selector
from webhook.core.selectors import compile_required_nodes

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
        "one replica; where node selector, affinity, taints or cordons leave these pods one zone or node; where pod "
        "affinity asks for one place; and for kinds that run to completion or on every node. It is not evaluated for "
        "kinds without a selector."
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
    view = index.view()
    affine = _wanted_together(template)
    for key in (HOSTNAME, ZONE):
        domains = {_domain(view, key, slot) for slot in counts}
        if len(domains) == 1 and None not in domains and key not in affine and _choices(template, view, key) > 1:
            yield _finding(template, key, domains.pop() or "", sum(counts.values()), subject)
            return


def _domain(view: NodeView, key: str, slot: int) -> str | None:
    """The node's value of the key; None for a node that lacks it or is gone."""
    column = view.column(key)
    number = column.of[slot] if slot < len(column.of) else -1
    return None if number < 0 else column.values[number]


def _choices(template: Template, view: NodeView, key: str) -> int:
    """How many domains the pods may choose from at this moment."""
    spec = template.template.pod_spec
    required = compile_required_nodes(spec.node_selector, spec.affinity)
    nodes = usable_nodes(view, required) & tolerated_nodes(view, spec.tolerations) & ~view.unschedulable
    return view.column(key).domain_count(nodes)


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
    spread = any(
        each.topology_key == key and balances(each, template.template.labels)
        for each in template.template.pod_spec.constraints
    )
    return Finding(
        rule=ALL_IN_ONE.id,
        path=f"{template.path}spec.topologySpreadConstraints",
        summary=f"all {pods} running pods are {'in' if key == ZONE else 'on'} {place}",
        remedy="restart it to place them anew" if spread else f"spread them over {key.rpartition('/')[2]}",
        detail=f"the loss of that {noun} takes all {pods} running pods down; other {noun}s are open to them",
        fix="kubectl rollout restart: a pod is placed once, when it is made"
        if spread
        else f"- {{maxSkew: 1, topologyKey: {key}, whenUnsatisfiable: ScheduleAnyway, labelSelector: …}}",
        key=f"{template.path} {noun}",
    )
