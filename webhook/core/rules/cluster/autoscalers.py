"""Find constraints that Karpenter or the descheduler reads differently from kube-scheduler.

Source: descheduler v0.36.0 removepodsviolatingtopologyspreadconstraint; kubernetes/autoscaler#3879; karpenter v1.15.0
scheduling/topology.go, topologygroup.go, topologynodefilter.go, preferences.go, existingnode.go, taints.go,
defaultconstraints.go.
"""

from collections.abc import Iterable, Iterator
from functools import partial

from msgspec.structs import replace

from webhook.core.api import gates
from webhook.core.api.node_selectors import compile_required_nodes
from webhook.core.api.tolerations import first_untolerated
from webhook.core.api.types import HONOR, IGNORE, SpreadConstraint
from webhook.core.api.well_known import HOSTNAME, PREFER_NO_SCHEDULE
from webhook.core.api.written_selector import has_conditions
from webhook.core.budget import Missing
from webhook.core.index.node_sets import to_slots
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.capacity import has_karpenter
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.fixes import Fix, changes, softening
from webhook.core.rules.frame.own_pods import own_labels
from webhook.core.rules.frame.rule import Finding, Need, NotEvaluated, Rule, RuleAnswer, Severity
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.rules.frame.usable_nodes import UsableNodes
from webhook.core.scheduler.plugins.node_selection import nodes_of_terms, settled_nodes
from webhook.core.text import agree, one_line, plural
from webhook.core.workloads.kinds import DEPLOYMENT, native_version

# Deployments as the project's own manifests and charts name them. A CronJob of its is not watched.
_DESCHEDULERS = (
    *(("kube-system", "descheduler"), ("descheduler", "descheduler")),
    ("openshift-kube-descheduler-operator", "descheduler"),
)
_SOFT = frozenset({PREFER_NO_SCHEDULE})


def evaluate(subject: Subject) -> Iterable[RuleAnswer]:
    if not subject.placed:
        return ()
    if subject.index is None:
        return (NotEvaluated(AUTOSCALER.id, subject.lacks() or Missing.NO_CLUSTER.reason),)
    return _beside(subject)


def _beside(subject: Subject) -> Iterator[RuleAnswer]:
    if missing := subject.lacks("nodes", "deployments"):
        yield NotEvaluated(AUTOSCALER.id, missing)
    if (view := subject.nodes) is None:
        return
    karpenter = has_karpenter(view)
    for template in subject.workload.templates:
        placed = [each for each in subject.placed if each.template is template]
        ground = UsableNodes(subject, template)
        for each in subject.while_time_is_left(placed) if karpenter else ():
            yield from map(partial(_keyed, each), _of_karpenter(each, placed, ground, subject))
        hard = [each for each in placed if each.constraint.hard]
        empty = [each for each in hard if _is_empty(each) and not gates.COUNTS_EMPTY_SELECTOR.holds(subject.version)]
        # It evicts for each of two hard constraints over different keys.
        other = next((each for each in hard if each.constraint.topology_key != hard[0].constraint.topology_key), None)
        # Of most constraints the descheduler is of no matter, and it need not be looked for.
        if (empty or other is not None) and _has_descheduler(subject.context.cluster):
            yield from (_keyed(each, _counting_all(each)) for each in empty)
            if other is not None:
                yield _keyed(other, _one_at_a_time(hard[0], other, placed, ground))


AUTOSCALER = Rule(
    id="autoscaler-reads-it-differently",
    title="Karpenter or the descheduler reads the constraint differently from kube-scheduler",
    severity=Severity.MEDIUM,
    mode=Mode.AUDIT,
    why=(
        "Karpenter simulates scheduling with its own code ([measured "
        "differences](../exactness.md#who-else-reads-the-constraint)):\n\n"
        "- For hostname, it assumes a minimum of 0 pods, so it puts at most maxSkew pods on a node. If the "
        "constraint counts more pods than the workload's replicas, it may treat every existing node as full.\n"
        "- It first treats ScheduleAnyway as DoNotSchedule. So if a domain has no usable node, it may add a node "
        "there, while kube-scheduler uses the other domains.\n"
        "- It evaluates each constraint alone. Constraints that differ only in minDomains count as one.\n"
        "- For a selector without conditions, it counts every pod in the namespace.\n"
        "- If your pods select domains by the topologyKey, it ignores all other domains.\n"
        "- It ignores matchFields, and tries the terms of a required node affinity one by one.\n"
        "- It skips existing nodes with an untolerated PreferNoSchedule taint.\n\n"
        "The descheduler handles each constraint alone:\n\n"
        "- It can evict a pod for one constraint even if no node satisfies all of them.\n"
        "- For an empty selector, it counts every pod in the namespace.\n"
        "- Unlike kube-scheduler, it counts nodes that lack the topology key of another hard constraint. It can "
        "then evict your pods in every run."
    ),
    evaluate=evaluate,
    needs=(Need.NODES, Need.WORKLOADS),
    uses=(Need.PODS,),
)


def _has_descheduler(index: ReadOnlyIndex) -> bool:
    return any(
        index.owners.get(native_version(DEPLOYMENT), DEPLOYMENT[1], *where) is not None for where in _DESCHEDULERS
    )


def _keyed(placed: Placed, finding: Finding) -> Finding:
    """Return the finding with a key that includes its field, because a constraint can have several findings."""
    return replace(finding, key=f"{placed.key} {finding.path.removeprefix(placed.path) or finding.remedy}")


def _is_empty(placed: Placed) -> bool:
    selector = placed.constraint.selector
    return selector is not None and not has_conditions(selector) and not placed.constraint.match_label_keys


def _one_at_a_time(first: Placed, other: Placed, every: list[Placed], ground: UsableNodes) -> Finding:
    names = one_line(f"{first.name} and {other.name}", 60)
    keys = one_line(f"{first.short_name} and {other.short_name}", 60)
    detail = (
        f"the descheduler checks {names} separately: it can evict a pod for one of them even if no node satisfies both"
    )
    one, another = (ground.view.column(each.constraint.topology_key or "").present for each in (first, other))
    if lacking := ((one ^ another) & ground.open).bit_count():
        lacks = agree(lacking, "lack")
        detail += (
            f"; it also counts {plural(lacking, 'node')} that {lacks} one of the two labels, but kube-scheduler never"
            " uses such nodes, so the descheduler can evict pods in every run"
        )
    summary, fix = f"the descheduler handles {keys} separately", softening(other, every)
    return AUTOSCALER.finding(
        other, "whenUnsatisfiable", fix, summary=summary, remedy="use ScheduleAnyway", detail=detail
    )


def _counting_all(placed: Placed) -> Finding:
    return AUTOSCALER.finding(
        placed,
        "",
        Fix("select the pods' own labels"),
        summary=f"{placed.name}: with labelSelector {{}} the descheduler counts every pod in the namespace,"
        " kube-scheduler none",
        remedy="set its labelSelector",
        detail="with labelSelector {} kube-scheduler counts no pod, but the descheduler counts every pod in the"
        " namespace; it can evict pods in every run, and kube-scheduler puts them back",
    )


def _of_karpenter(placed: Placed, every: list[Placed], ground: UsableNodes, subject: Subject) -> Iterator[Finding]:
    """Yield a finding for each way Karpenter reads the constraint differently from kube-scheduler.

    ``every`` has all constraints of the constraint's template.
    """
    if placed.constraint.topology_key == HOSTNAME and not subject.workload.traits.on_every_node:
        yield from _hosts(placed, ground, subject)
    yield from _unselecting(placed, subject)
    if placed.constraint.hard:
        yield from _alone(placed, ground)
    elif placed.constraint.topology_key != HOSTNAME:
        yield from _closed_domains(placed, ground)
    yield from _taken_for_one(placed, every)
    yield from _narrowed(placed, ground)
    # The rest is about the pods: said once, of their first constraint.
    if placed is every[0]:
        yield from _avoided_nodes(placed, ground)
        yield from _alternative_terms(placed, ground)


def _hosts(placed: Placed, ground: UsableNodes, subject: Subject) -> Iterator[Finding]:
    """Find hostname constraints with enough existing nodes for kube-scheduler, but not for Karpenter."""
    constraint, replicas, there = placed.constraint, placed.template.replicas, ground.open.bit_count()
    max_skew = constraint.max_skew or 0
    if max_skew < 1 or replicas is None:
        return
    # With a minimum of 0, a node takes at most maxSkew pods. Round the nodes up.
    asked = -(-replicas // max_skew)
    if 0 < there < asked:
        enough = -(-replicas // there)
        asks, also = "asks for", ""
        if not constraint.hard:
            asks, also = "first wants", "at first treats ScheduleAnyway as DoNotSchedule, and "
        said = f"{plural(asked, 'node')}, {there:,} {agree(there, 'exist')}"
        yield AUTOSCALER.finding(
            placed,
            "maxSkew",
            changes(placed, maxSkew=enough),
            summary=f"{placed.name}: Karpenter {asks} {said}",
            remedy=f"use maxSkew: {enough}",
            detail=f"Karpenter {also}assumes a minimum of 0 pods, so it puts at most {max_skew} of"
            f" {plural(replicas, 'pod')} on a new node; kube-scheduler spreads them over"
            f" {plural(there, 'usable node')}",
            warns=constraint.hard,
        )
    if constraint.match_label_keys or placed.selector is None:
        return
    counts = subject.context.cluster.pods.count(subject.workload.namespace, placed.selector)
    on_each = [counts.get(slot, 0) for slot in to_slots(ground.open)]
    # As many pods as replicas are this workload's own, at rest.
    if on_each and min(on_each) >= max_skew and replicas <= there * max_skew and sum(on_each) > replicas:
        enough = sum(on_each) // there + 1
        yield AUTOSCALER.finding(
            placed,
            "maxSkew",
            changes(placed, maxSkew=enough),
            summary=f"{placed.name}: Karpenter treats {plural(there, 'node')} as full",
            remedy=f"use maxSkew: {enough}",
            detail=f"the constraint counts {plural(sum(on_each), 'pod')} on {plural(there, 'usable node')}, more than"
            f" the {plural(replicas, 'replica')}; Karpenter assumes a minimum of 0 pods and allows at most"
            f" {max_skew} per node, while kube-scheduler adds pods to the nodes with the fewest",
        )


def _avoided_nodes(placed: Placed, ground: UsableNodes) -> Iterator[Finding]:
    """Find nodes with an untolerated PreferNoSchedule taint. Karpenter never uses such nodes."""
    avoided = 0
    for taints, members in ground.view.soft_taint_classes:
        if first_untolerated(taints, ground.spec.tolerations, _SOFT) is not None:
            avoided |= members
    if skipped := (avoided & ground.open).bit_count():
        yield AUTOSCALER.finding(
            placed,
            "",
            Fix("add a toleration with effect: PreferNoSchedule"),
            summary=f"{placed.name}: Karpenter skips {plural(skipped, 'PreferNoSchedule node')}",
            remedy="tolerate the taint",
            detail=f"Karpenter puts no pod on {plural(skipped, 'node')} with a PreferNoSchedule taint the pods do not"
            " tolerate, unless a NodePool has such a taint; with nodeTaintsPolicy: Honor it does not count these nodes;"
            " kube-scheduler counts them and uses them last",
        )


def _alternative_terms(placed: Placed, ground: UsableNodes) -> Iterator[Finding]:
    if len(ground.spec.node_terms or ()) < 2:
        return
    required = compile_required_nodes(None, ground.spec.affinity).terms or ()
    if later := (ground.open & ~nodes_of_terms(ground.view, required[:1])).bit_count():
        yield AUTOSCALER.finding(
            placed,
            "",
            Fix("write the terms of the required node affinity as one term"),
            summary=f"{placed.name}: Karpenter tries node affinity terms one by one",
            remedy="use one term",
            detail="Karpenter uses only the first term of the required node affinity, for new nodes too, and tries the"
            f" next term if no node matches; {plural(later, 'node')} accepted by kube-scheduler"
            f" {agree(later, 'match')} only a later term",
        )


def _narrowed(placed: Placed, ground: UsableNodes) -> Iterator[Finding]:
    """Find pods that select nodes by the topologyKey or by matchFields.

    For such pods, Karpenter and kube-scheduler count different nodes.
    """
    constraint, spec = placed.constraint, ground.spec
    key, column = constraint.topology_key or "", ground.view.column(constraint.topology_key or "")
    keys = {*(spec.node_selector or ())}
    keys.update(each.key for term in spec.node_terms or () for each in term.match_expressions or ())
    ignores = constraint.node_affinity_policy == IGNORE
    excludes = column.domain_count(column.present) != column.domain_count(column.present & ground.usable)
    if ignores and constraint.hard and key != HOSTNAME and key in keys and excludes:
        yield AUTOSCALER.finding(
            placed,
            "nodeAffinityPolicy",
            changes(placed, nodeAffinityPolicy=HONOR),
            summary=f"{placed.name}: Karpenter ignores excluded domains",
            remedy="use nodeAffinityPolicy: Honor",
            detail=f"the pods select domains by the label {one_line(key, 60)} itself; Karpenter takes the minimum over"
            " these domains only, but with nodeAffinityPolicy: Ignore kube-scheduler counts the others too",
        )
    if not ignores and any(term.match_fields for term in placed.template.pod.pod_spec.node_terms or ()):
        yield AUTOSCALER.finding(
            placed,
            "",
            Fix("use matchExpressions in the required node affinity"),
            summary=f"{placed.name}: Karpenter ignores matchFields",
            remedy="use matchExpressions",
            detail="Karpenter selects the nodes to count by nodeSelector and matchExpressions, and ignores matchFields",
        )


def _closed_domains(placed: Placed, ground: UsableNodes) -> Iterator[Finding]:
    """Find domains without a usable node.

    Karpenter adds a node in such a domain before it uses other domains. kube-scheduler uses the other domains at once.
    """
    column, counting = ground.view.column(placed.constraint.topology_key or ""), ground.counting(placed)
    # Taints of starting or leaving nodes pass, so they cause no finding.
    lasting = counting & ground.usable & (ground.tolerated | ~settled_nodes(ground.view))
    closed, noun = column.domain_count(counting) - column.domain_count(lasting), placed.noun
    if closed and lasting:
        yield AUTOSCALER.finding(
            placed,
            "whenUnsatisfiable",
            Fix(f"tolerate the taints of the nodes in the unusable {noun}s, or accept that Karpenter adds a node"),
            summary=f"{placed.name}: Karpenter first wants nodes in {plural(closed, f'unusable {noun}')}",
            remedy="tolerate the taints",
            detail=f"Karpenter at first treats ScheduleAnyway as DoNotSchedule; {plural(closed, noun)} without"
            f" a usable node {agree(closed, 'hold')} the minimum, so it adds a node there if its NodePools"
            f" allow; kube-scheduler uses the other {noun}s",
        )


def _unselecting(placed: Placed, subject: Subject) -> Iterator[Finding]:
    """Yield a finding for a constraint whose selector has no conditions.

    For such a constraint kube-scheduler counts no pod, but Karpenter counts every pod in the namespace.
    """
    constraint = placed.constraint
    counted = constraint.selector is not None and gates.COUNTS_EMPTY_SELECTOR.holds(subject.version)
    if not (constraint.match_label_keys or has_conditions(constraint.selector) or counted):
        own = own_labels(placed, subject.workload)
        fix = changes(placed, labelSelector={"matchLabels": own}) if own else Fix("select the pods' own labels")
        written = "no labelSelector" if constraint.selector is None else "labelSelector {}"
        yield AUTOSCALER.finding(
            placed,
            "labelSelector",
            fix,
            summary=f"{placed.name}: Karpenter counts every pod in the namespace",
            remedy="set labelSelector",
            detail=f"with {written} kube-scheduler counts no pod, but Karpenter counts every pod in the namespace",
        )


def _alone(placed: Placed, ground: UsableNodes) -> Iterator[Finding]:
    """Find usable nodes without the key of another hard constraint. Only Karpenter counts these nodes."""
    present = ground.view.column(placed.constraint.topology_key or "").present
    # kube-scheduler skips nodes without another key, but Karpenter counts them.
    if more := (present & ground.open & ~ground.with_hard_keys).bit_count():
        nodes = plural(more, "node")
        yield AUTOSCALER.finding(
            placed,
            "topologyKey",
            Fix("give all nodes the labels of all DoNotSchedule topologyKeys"),
            summary=f"{placed.name}: Karpenter also counts {nodes} that {agree(more, 'lack')} another label",
            remedy="label them" if more > 1 else "label it",
            detail="kube-scheduler counts only nodes with the labels of all DoNotSchedule constraints; Karpenter"
            f" evaluates each constraint alone, and counts {plural(more, 'more usable node')}",
        )


def _taken_for_one(placed: Placed, every: list[Placed]) -> Iterator[Finding]:
    """Yield a finding if Karpenter merges this constraint with another constraint.

    The two constraints differ in minDomains, and Karpenter uses one minDomains for both.
    """
    own = placed.constraint
    alike = (each for each in every if _group(each.constraint) == _group(own))
    twin = next((each.name for each in alike if each.constraint.min_domains != own.min_domains), None)
    if own.min_domains and twin:
        yield AUTOSCALER.finding(
            placed,
            "minDomains",
            Fix(f"set another maxSkew in {twin}"),
            summary=f"Karpenter treats {placed.name} and {twin} as one constraint",
            remedy="use another maxSkew",
            detail="Karpenter merges constraints that differ only in minDomains or whenUnsatisfiable, and uses one of"
            f" the two minDomains for both {placed.name} and {twin}",
        )


def _group(constraint: SpreadConstraint) -> tuple[object, ...]:
    return (constraint.topology_key, constraint.max_skew, constraint.match_label_keys, constraint.selector)
