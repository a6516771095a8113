"""The rule about constraints that Karpenter, the cluster autoscaler or the descheduler read unlike kube-scheduler.

Source: descheduler v0.36.0 removepodsviolatingtopologyspreadconstraint; kubernetes/autoscaler#3879; of Karpenter see
`karpenter`.
"""

from collections.abc import Iterable, Iterator

from webhook.core.api import gates
from webhook.core.api.written_selector import has_conditions
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.capacity import has_karpenter
from webhook.core.policy.policy import Mode
from webhook.core.rules.cluster.frame.karpenter import Difference, differences
from webhook.core.rules.frame.fixes import Fix, softening
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
        ground = UsableNodes(subject, template, index)
        for each in subject.timely(placed) if karpenter else ():
            for difference in differences(each, placed, ground, subject, index):
                yield _finding(each, difference)
        empty = [each for each in placed if _is_empty(each, subject)]
        apart = _over_two_keys(placed)
        # Of most constraints the descheduler is of no matter, and it need not be looked for.
        if (empty or apart is not None) and _has_descheduler(index):
            yield from map(_counting_all, empty)
            if apart is not None:
                yield _one_at_a_time(*apart, placed, ground)


AUTOSCALER = Rule(
    id="autoscaler-reads-it-differently",
    title="Karpenter or the descheduler reads the constraint in another way than kube-scheduler",
    severity=Severity.MEDIUM,
    mode=Mode.AUDIT,
    why=(
        "Karpenter computes by itself where pods would go. It takes the minimum over hosts as 0, so that a "
        "hostname constraint asks for one node per maxSkew pods, and hosts that other pods have filled are full; it "
        "tries ScheduleAnyway as a hard constraint first, and makes a node in a domain that has none for the pods; it "
        "counts each constraint alone, every pod of the namespace for a selector without conditions, two "
        "constraints that differ in minDomains as one, and no domain that the pods exclude by the constraint's own "
        "key; it leaves matchFields out, tries the terms of a required node affinity one after the other, and skips "
        "nodes of today with a PreferNoSchedule taint that the pods do not tolerate ([how "
        "often](../exactness.md#who-else-reads-the-constraint)). The descheduler evicts pods for one constraint "
        "after the other: kube-scheduler may have no place for them that satisfies both. It counts every pod of the "
        "namespace for an empty selector, and nodes that lack the key of another hard constraint: for such pods and "
        "nodes it can evict run after run."
    ),
    silent=(
        "unless a node carries a label of Karpenter's, or a Deployment of the descheduler's usual name exists; about "
        "hosts as long as Karpenter would need no more nodes than these pods can use today; about which nodes "
        "Karpenter tries first for a ScheduleAnyway constraint, or takes of hosts that the workload's own pods have "
        "filled: that is decided by where pods are at the moment, and changes with each of them; about the Cluster "
        "Autoscaler, which runs kube-scheduler's own filters; and about default constraints of kube-scheduler, which "
        "the descheduler does not see, and Karpenter (1.15) only where its --scheduler-config has them: that is a "
        "matter of configuration, not of one workload. It warns only of hard hostname constraints."
    ),
    ask=evaluate,
    needs=(Need.NODES, Need.WORKLOADS),
    uses=(Need.PODS,),
)


def _has_descheduler(index: ReadOnlyIndex) -> bool:
    return any(index.owner(native_version(DEPLOYMENT), DEPLOYMENT[1], *where) is not None for where in _DESCHEDULERS)


def _finding(placed: Placed, difference: Difference) -> Finding:
    return Finding(
        rule=AUTOSCALER.id,
        path=placed.path + difference.field,
        summary=difference.summary,
        remedy=difference.remedy,
        detail=difference.detail,
        **difference.fix.fields,
        key=f"{placed.key} {difference.field or difference.remedy}",
        warns=difference.warns,
    )


def _over_two_keys(every: list[Placed]) -> tuple[Placed, Placed] | None:
    """Two hard constraints over different keys, each of which the descheduler evicts for."""
    hard = [each for each in every if each.constraint.hard]
    others = (each for each in hard if each.constraint.topology_key != hard[0].constraint.topology_key)
    other = next(others, None)
    return None if other is None else (hard[0], other)


def _one_at_a_time(first: Placed, other: Placed, every: list[Placed], ground: UsableNodes) -> Finding:
    names = one_line(f"{first.name} and {other.name}", 60)
    keys = one_line(f"{first.short_name} and {other.short_name}", 60)
    detail = (
        f"the descheduler evicts pods for {names} one after the other, whether or not kube-scheduler has a place for"
        " them that satisfies both"
    )
    one, another = (ground.view.column(each.constraint.topology_key or "").present for each in (first, other))
    if lacking := ((one ^ another) & ground.open).bit_count():
        lacks = "lacks" if lacking == 1 else "lack"
        detail += (
            f"; it counts {plural(lacking, 'node')} that {lacks} one of the two keys, to which kube-scheduler brings no"
            " pod, and may evict for them run after run"
        )
    fix = softening(other, every)
    return _finding(
        other,
        Difference(
            f"the descheduler handles {keys} separately", "use ScheduleAnyway", detail, fix, ".whenUnsatisfiable"
        ),
    )


def _is_empty(placed: Placed, subject: Subject) -> bool:
    """Whether the constraint is hard and has an empty selector that kube-scheduler takes to match no pod."""
    constraint, counted = placed.constraint, gates.COUNTS_EMPTY_SELECTOR.holds(subject.version)
    selector = constraint.selector
    empty = selector is not None and not has_conditions(selector) and not constraint.match_label_keys
    return constraint.hard and empty and not counted


def _counting_all(placed: Placed) -> Finding:
    return _finding(
        placed,
        Difference(
            f"{placed.name}: the descheduler counts every pod of the namespace",
            "set its labelSelector",
            "with labelSelector {} kube-scheduler counts no pod, and the descheduler every pod of the namespace: it"
            " may evict pods run after run, which kube-scheduler puts back",
            Fix("select the pods' own labels"),
        ),
    )
