"""Where those that add nodes or move pods read a constraint in another way than kube-scheduler.

Source: kubernetes-sigs/karpenter scheduling/topology.go, topologygroup.go, topologynodefilter.go, preferences.go;
kubernetes-sigs/descheduler removepodsviolatingtopologyspreadconstraint; kubernetes/autoscaler#3879.
"""

from collections.abc import Iterator

from msgspec import Struct

from webhook.core.capacity import has_karpenter
from webhook.core.index import ClusterIndex
from webhook.core.model import HOSTNAME, IGNORE
from webhook.core.policy import Mode
from webhook.core.rules.edits import Fix, changes, softening
from webhook.core.rules.finding import Answer, Finding, NotEvaluated, Placed, Rule, Severity, Subject, one_line, plural
from webhook.core.rules.nodes import Ground
from webhook.core.rules.selector import own_labels
from webhook.core.spread import COUNTS_EMPTY_SELECTOR

AUTOSCALER = Rule(
    id="autoscaler-reads-it-differently",
    title="what adds nodes or moves pods reads the constraint in another way than kube-scheduler",
    severity=Severity.MEDIUM,
    mode=Mode.AUDIT,
    why=(
        "Karpenter computes by itself where pods would go. It takes the minimum over hosts as 0, so that a hostname "
        "constraint asks for one node per maxSkew pods; it tries ScheduleAnyway as a hard constraint first; it counts "
        "each constraint alone, every pod of the namespace for a selector without conditions, two constraints that "
        "differ in minDomains as one, and it leaves matchFields out. The descheduler balances one constraint at a "
        "time, so that it may evict for one what another brings back."
    ),
    silent=(
        "unless a node carries a label of Karpenter's, or a Deployment of the descheduler's usual name exists; about "
        "hosts as long as Karpenter would need no more nodes than these pods can use today; about the Cluster "
        "Autoscaler, which runs kube-scheduler's own filters; and about default constraints of kube-scheduler, which "
        "none of them sees: that is a matter of its configuration, not of one workload. It warns only of hard hostname "
        "constraints."
    ),
)

# Deployments as the project's own manifests and charts name them. A CronJob of its is not watched.
_DESCHEDULERS = (
    *(("kube-system", "descheduler"), ("descheduler", "descheduler")),
    ("openshift-kube-descheduler-operator", "descheduler"),
)


class _Difference(Struct, frozen=True):
    """What is read differently, in the words of a finding."""

    summary: str
    remedy: str
    detail: str
    fix: Fix
    field: str = ""
    warns: bool | None = None


def evaluate(subject: Subject) -> Iterator[Answer]:
    """What the rule says of each constraint."""
    if not subject.placed:
        return
    missing = subject.lacks("nodes", "deployments")
    if subject.index is None or missing:
        yield NotEvaluated(AUTOSCALER.id, missing)
    if subject.index is None or subject.lacks("nodes"):
        return
    view = subject.index.view()
    karpenter, descheduler = has_karpenter(view), _has_descheduler(subject.index)
    if not karpenter and not descheduler:
        return
    for template in subject.workload.templates:
        placed = [each for each in subject.placed if each.template is template]
        if karpenter and placed:
            ground = Ground(template, subject.policy, view)
            for each in subject.timely(placed):
                for difference in _karpenter(each, placed, ground, subject):
                    yield _finding(each, difference)
        if descheduler:
            yield from _one_at_a_time(placed)


def _has_descheduler(index: ClusterIndex) -> bool:
    return any(index.owner("apps/v1", "Deployment", *where) is not None for where in _DESCHEDULERS)


def _finding(placed: Placed, difference: _Difference) -> Finding:
    return Finding(
        rule=AUTOSCALER.id,
        path=placed.path + difference.field,
        summary=f"{placed.name}: {difference.summary}",
        remedy=difference.remedy,
        detail=difference.detail,
        fix=difference.fix.text,
        edits=difference.fix.edits,
        key=f"{placed.key} {difference.field}",
        warns=difference.warns,
    )


def _karpenter(placed: Placed, all_placed: list[Placed], ground: Ground, subject: Subject) -> Iterator[_Difference]:
    differences = (
        _hosts(placed, ground, subject),
        _unselecting(placed, subject),
        _alone(placed, ground),
        _taken_for_one(placed, all_placed),
        _fields(placed),
    )
    yield from (difference for difference in differences if difference is not None)


def _hosts(placed: Placed, ground: Ground, subject: Subject) -> _Difference | None:
    """Nodes that Karpenter would make for pods that kube-scheduler puts on those of today."""
    constraint, replicas = placed.constraint, placed.template.replicas
    max_skew = constraint.max_skew or 0
    if constraint.topology_key != HOSTNAME or max_skew < 1 or replicas is None or subject.workload.kind == "DaemonSet":
        return None
    asked, there = -(-replicas // max_skew), ground.open.bit_count()
    if not 0 < there < asked:
        return None
    enough = -(-replicas // there)
    said = f"{plural(asked, 'node')}, {there:,} exist{'s' if there == 1 else ''}"
    if constraint.hard:
        summary, first = f"Karpenter asks for {said}", "takes the minimum over hosts as 0"
    else:
        summary = f"Karpenter first wants {said}"
        first = "treats ScheduleAnyway as hard until that fails, and takes the minimum over hosts as 0"
    return _Difference(
        summary,
        f"use maxSkew: {enough}",
        f"Karpenter {first}: no node that it makes gets more than {max_skew} of {plural(replicas, 'pod')}, while"
        f" kube-scheduler spreads them over the {plural(there, 'node')} that they may use",
        changes(placed, maxSkew=enough),
        ".maxSkew",
        warns=constraint.hard,
    )


def _unselecting(placed: Placed, subject: Subject) -> _Difference | None:
    """A selector without conditions, which kube-scheduler takes to match no pod."""
    constraint = placed.constraint
    selector = constraint.selector
    if constraint.match_label_keys or (selector and (selector.match_labels or selector.match_expressions)):
        return None
    if selector is not None and subject.version >= COUNTS_EMPTY_SELECTOR:
        return None
    own = own_labels(placed, subject.workload)
    fix = changes(placed, labelSelector={"matchLabels": own}) if own else Fix("select the pods' own labels")
    written = "no labelSelector" if selector is None else "labelSelector {}"
    return _Difference(
        "Karpenter counts every pod of the namespace",
        "set labelSelector",
        f"with {written} kube-scheduler counts no pod, and Karpenter lists every pod of the namespace",
        fix,
        ".labelSelector",
    )


def _alone(placed: Placed, ground: Ground) -> _Difference | None:
    """Nodes that count for this constraint only as long as it is asked alone."""
    if not placed.constraint.hard:
        return None
    present = ground.view.column(placed.constraint.topology_key or "").present
    more = (present & ground.open & ~ground.with_hard_keys).bit_count()
    if not more:
        return None
    nodes = plural(more, "node")
    return _Difference(
        f"Karpenter counts {nodes} without the other key",
        "label them" if more > 1 else "label it",
        "kube-scheduler leaves out a node that lacks the key of any hard constraint; Karpenter counts each alone, here"
        f" with {nodes} more of those that the pods may use",
        Fix("give all nodes the keys of all hard constraints"),
        ".topologyKey",
    )


def _taken_for_one(placed: Placed, all_placed: list[Placed]) -> _Difference | None:
    """Two constraints that differ in minDomains: one group of pods to Karpenter, with the minDomains of the first."""
    if not placed.constraint.min_domains:
        return None
    twins = [each.name for each in all_placed if each is not placed and _alike(each, placed)]
    if not twins:
        return None
    return _Difference(
        f"Karpenter takes it and {twins[0]} for one",
        "use another maxSkew",
        f"Karpenter tells constraints apart by all but minDomains and whenUnsatisfiable: {placed.name} and {twins[0]}"
        " share one of the two minDomains",
        Fix(f"use another maxSkew in {twins[0]}"),
        ".minDomains",
    )


def _alike(one: Placed, other: Placed) -> bool:
    a, b = one.constraint, other.constraint
    same = a.topology_key == b.topology_key and a.max_skew == b.max_skew and a.match_label_keys == b.match_label_keys
    return same and a.selector == b.selector and a.min_domains != b.min_domains


def _fields(placed: Placed) -> _Difference | None:
    """Conditions on a node's name instead of its labels."""
    affinity = placed.template.template.pod_spec.affinity
    required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    terms = (required.node_selector_terms or ()) if required else ()
    if placed.constraint.node_affinity_policy == IGNORE or not any(term.match_fields for term in terms):
        return None
    return _Difference(
        "Karpenter leaves matchFields out",
        "use matchExpressions",
        "Karpenter takes the nodes that count from nodeSelector and matchExpressions only, not from matchFields",
        Fix("use matchExpressions in the required node affinity"),
    )


def _one_at_a_time(every: list[Placed]) -> Iterator[Finding]:
    """Two hard constraints over different keys, each of which the descheduler evicts for."""
    hard = [each for each in every if each.constraint.hard]
    others = [each for each in hard[1:] if each.constraint.topology_key != hard[0].constraint.topology_key]
    if not others:
        return
    names = one_line(f"{hard[0].name} and {others[0].name}", 60)
    yield _finding(
        others[0],
        _Difference(
            f"descheduler balances {hard[0].name} apart",
            "use ScheduleAnyway",
            f"the descheduler evicts for {names} one at a time, and may undo for one what it did for the other",
            softening(others[0], every),
            ".whenUnsatisfiable",
        ),
    )
