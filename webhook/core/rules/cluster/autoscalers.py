"""The rule about constraints that Karpenter, the cluster autoscaler or the descheduler read unlike kube-scheduler.

Source: karpenter v1.15.0 scheduling/topology.go, topologygroup.go, topologynodefilter.go, preferences.go,
defaultconstraints.go; descheduler removepodsviolatingtopologyspreadconstraint; kubernetes/autoscaler#3879.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from webhook.core.api import gates
from webhook.core.api.types import IGNORE
from webhook.core.api.well_known import HOSTNAME
from webhook.core.api.written_selector import has_conditions
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.capacity import has_karpenter
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.edits import Fix, changes, softening
from webhook.core.rules.frame.own_pods import own_labels
from webhook.core.rules.frame.rule import Finding, Need, NotEvaluated, Rule, RuleAnswer, Severity
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.rules.frame.usable_nodes import UsableNodes
from webhook.core.text import one_line, plural
from webhook.core.workloads.kinds import DEPLOYMENT, native_version

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


def evaluate(subject: Subject) -> Iterable[RuleAnswer]:
    """What the rule says of each constraint."""
    if not subject.placed:
        return ()
    if subject.index is None:
        return (NotEvaluated(AUTOSCALER.id, subject.lacks()),)
    return _beside(subject, subject.index)


def _beside(subject: Subject, index: ReadOnlyIndex) -> Iterator[RuleAnswer]:
    if missing := subject.lacks("nodes", "deployments"):
        yield NotEvaluated(AUTOSCALER.id, missing)
    if subject.lacks("nodes"):
        return
    view = index.view()
    karpenter = has_karpenter(view)
    for template in subject.workload.templates:
        placed = [each for each in subject.placed if each.template is template]
        if karpenter and placed:
            ground = UsableNodes(template, subject.policy, view)
            for each in subject.timely(placed):
                for difference in _karpenter(each, placed, ground, subject):
                    yield _finding(each, difference)
        apart = _over_two_keys(placed)
        if apart and _has_descheduler(index):
            yield _one_at_a_time(*apart, placed)


AUTOSCALER = Rule(
    id="autoscaler-reads-it-differently",
    title="Karpenter or the descheduler reads the constraint in another way than kube-scheduler",
    severity=Severity.MEDIUM,
    mode=Mode.AUDIT,
    why=(
        "Karpenter computes by itself where pods would go. It takes the minimum over hosts as 0, so that a "
        "hostname constraint asks for one node per maxSkew pods; it tries ScheduleAnyway as a hard constraint "
        "first; it counts each constraint alone, every pod of the namespace for a selector without conditions, two "
        "constraints that differ in minDomains as one, and it leaves matchFields out. Recorded besides, and not "
        "spoken of: it takes no node of today with a PreferNoSchedule taint that the pods do not tolerate, and "
        "tries the terms of a required node affinity one after the other ([how "
        "often](../exactness.md#who-else-reads-the-constraint)). The descheduler evicts pods for one constraint "
        "after the other, so that what it does for one may undo what it did for another."
    ),
    silent=(
        "unless a node carries a label of Karpenter's, or a Deployment of the descheduler's usual name exists; about "
        "hosts as long as Karpenter would need no more nodes than these pods can use today; about the Cluster "
        "Autoscaler, which runs kube-scheduler's own filters; and about default constraints of kube-scheduler, which "
        "the descheduler does not see, and Karpenter (1.15) only where its --scheduler-config has them: that is a "
        "matter of configuration, not of one workload. It warns only of hard hostname constraints."
    ),
    ask=evaluate,
    needs=(Need.NODES, Need.WORKLOADS),
)


def _has_descheduler(index: ReadOnlyIndex) -> bool:
    return any(index.owner(native_version(DEPLOYMENT), DEPLOYMENT[1], *where) is not None for where in _DESCHEDULERS)


def _finding(placed: Placed, difference: _Difference) -> Finding:
    return Finding(
        rule=AUTOSCALER.id,
        path=placed.path + difference.field,
        summary=difference.summary,
        remedy=difference.remedy,
        detail=difference.detail,
        fix=difference.fix.text,
        edits=difference.fix.edits,
        key=f"{placed.key} {difference.field}",
        warns=difference.warns,
    )


def _karpenter(
    placed: Placed, all_placed: list[Placed], ground: UsableNodes, subject: Subject
) -> Iterator[_Difference]:
    differences = (
        _hosts(placed, ground, subject),
        _unselecting(placed, subject),
        _alone(placed, ground),
        _taken_for_one(placed, all_placed),
        _fields(placed),
    )
    yield from (difference for difference in differences if difference is not None)


def _hosts(placed: Placed, ground: UsableNodes, subject: Subject) -> _Difference | None:
    """Nodes that Karpenter would make for pods that kube-scheduler puts on those of today."""
    constraint, replicas = placed.constraint, placed.template.replicas
    max_skew = constraint.max_skew or 0
    if constraint.topology_key != HOSTNAME or max_skew < 1 or replicas is None or subject.workload.traits.on_every_node:
        return None
    # With a minimum of 0, no node takes more than maxSkew pods: so many nodes, rounded up.
    asked, there = -(-replicas // max_skew), ground.open.bit_count()
    if not 0 < there < asked:
        return None
    enough = -(-replicas // there)
    asks, also = "asks for", ""
    if not constraint.hard:
        asks, also = "first wants", "treats ScheduleAnyway as DoNotSchedule until that fails, and "
    said = f"{plural(asked, 'node')}, {there:,} exist{'s' if there == 1 else ''}"
    return _Difference(
        f"{placed.name}: Karpenter {asks} {said}",
        f"use maxSkew: {enough}",
        f"Karpenter {also}takes the fewest pods on a node to be 0: it puts no more than {max_skew} of"
        f" {plural(replicas, 'pod')} on a node that it makes, while kube-scheduler spreads them over the"
        f" {plural(there, 'node')} that they may use",
        changes(placed, maxSkew=enough),
        ".maxSkew",
        warns=constraint.hard,
    )


def _unselecting(placed: Placed, subject: Subject) -> _Difference | None:
    """A selector without conditions, which kube-scheduler takes to match no pod."""
    constraint = placed.constraint
    selector = constraint.selector
    if constraint.match_label_keys or has_conditions(selector):
        return None
    if selector is not None and gates.COUNTS_EMPTY_SELECTOR.holds(subject.version):
        return None
    own = own_labels(placed, subject.workload)
    fix = changes(placed, labelSelector={"matchLabels": own}) if own else Fix("select the pods' own labels")
    written = "no labelSelector" if selector is None else "labelSelector {}"
    return _Difference(
        f"{placed.name}: Karpenter counts every pod of the namespace",
        "set labelSelector",
        f"with {written} kube-scheduler counts no pod, and Karpenter counts every pod of the namespace",
        fix,
        ".labelSelector",
    )


def _alone(placed: Placed, ground: UsableNodes) -> _Difference | None:
    """Nodes that count for this constraint only as long as it is asked alone."""
    if not placed.constraint.hard:
        return None
    present = ground.view.column(placed.constraint.topology_key or "").present
    # Nodes with this key that lack another: kube-scheduler leaves them out, Karpenter counts them.
    more = (present & ground.open & ~ground.with_hard_keys).bit_count()
    if not more:
        return None
    nodes = plural(more, "node")
    return _Difference(
        f"{placed.name}: Karpenter also counts {nodes} that lack{'s' if more == 1 else ''} another key",
        "label them" if more > 1 else "label it",
        "kube-scheduler counts no node that lacks the key of any DoNotSchedule constraint; Karpenter looks at each"
        f" constraint by itself, and here counts {nodes} more of those that the pods may use",
        Fix("label all nodes with the keys of all DoNotSchedule constraints"),
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
        f"Karpenter treats {placed.name} and {twins[0]} as one constraint",
        "use another maxSkew",
        f"Karpenter takes constraints that differ only in minDomains or whenUnsatisfiable for the same one: it uses one"
        f" of the two minDomains for both {placed.name} and {twins[0]}",
        Fix(f"set another maxSkew in {twins[0]}"),
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
        f"{placed.name}: Karpenter ignores matchFields",
        "use matchExpressions",
        "Karpenter chooses the nodes to count by nodeSelector and matchExpressions, and ignores matchFields of the"
        " node affinity",
        Fix("use matchExpressions in the required node affinity"),
    )


def _over_two_keys(every: list[Placed]) -> tuple[Placed, Placed] | None:
    """Two hard constraints over different keys, each of which the descheduler evicts for."""
    hard = [each for each in every if each.constraint.hard]
    others = (each for each in hard if each.constraint.topology_key != hard[0].constraint.topology_key)
    other = next(others, None)
    return None if other is None else (hard[0], other)


def _one_at_a_time(first: Placed, other: Placed, every: list[Placed]) -> Finding:
    names = one_line(f"{first.name} and {other.name}", 60)
    keys = one_line(f"{first.short_name} and {other.short_name}", 60)
    return _finding(
        other,
        _Difference(
            f"the descheduler handles {keys} separately",
            "use ScheduleAnyway",
            f"the descheduler evicts pods for {names} one after the other: what it does for one may undo what it did"
            " for the other",
            softening(other, every),
            ".whenUnsatisfiable",
        ),
    )
