"""The rule about constraints that Karpenter, the cluster autoscaler or the descheduler read unlike kube-scheduler.

Source: descheduler v0.36.0 removepodsviolatingtopologyspreadconstraint; kubernetes/autoscaler#3879; karpenter v1.15.0
scheduling/topology.go, topologygroup.go, topologynodefilter.go, preferences.go, existingnode.go, taints.go,
defaultconstraints.go.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from webhook.core.api import gates
from webhook.core.api.selectors import compile_required_nodes, first_untolerated
from webhook.core.api.types import HONOR, IGNORE
from webhook.core.api.well_known import HOSTNAME, PREFER_NO_SCHEDULE
from webhook.core.api.written_selector import has_conditions
from webhook.core.index.node_sets import to_slots
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.policy.capacity import has_karpenter
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.counted_workloads import own_labels
from webhook.core.rules.frame.fixes import Fix, changes, softening
from webhook.core.rules.frame.rule import Finding, Need, NotEvaluated, Rule, RuleAnswer, Severity
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.rules.frame.usable_nodes import UsableNodes
from webhook.core.scheduler.plugins.node_selection import nodes_of_terms, settled_nodes
from webhook.core.text import one_line, plural
from webhook.core.workloads.kinds import DEPLOYMENT, native_version
from webhook.core.workloads.workload import namespace_of

# Deployments as the project's own manifests and charts name them. A CronJob of its is not watched.
_DESCHEDULERS = (
    *(("kube-system", "descheduler"), ("descheduler", "descheduler")),
    ("openshift-kube-descheduler-operator", "descheduler"),
)
_SOFT = frozenset({PREFER_NO_SCHEDULE})


class _Difference(NamedTuple):
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
    view = index.nodes.view()
    karpenter = has_karpenter(view)
    for template in subject.workload.templates:
        placed = [each for each in subject.placed if each.template is template]
        ground = UsableNodes(subject, template)
        for each in subject.timely(placed) if karpenter else ():
            for difference in _differences(each, placed, ground, subject, index):
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
    ask=evaluate,
    needs=(Need.NODES, Need.WORKLOADS),
    uses=(Need.PODS,),
)


def _has_descheduler(index: ReadOnlyIndex) -> bool:
    return any(
        index.owners.get(native_version(DEPLOYMENT), DEPLOYMENT[1], *where) is not None for where in _DESCHEDULERS
    )


def _finding(placed: Placed, difference: _Difference) -> Finding:
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
        _Difference(
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
        _Difference(
            f"{placed.name}: the descheduler counts every pod of the namespace",
            "set its labelSelector",
            "with labelSelector {} kube-scheduler counts no pod, and the descheduler every pod of the namespace: it"
            " may evict pods run after run, which kube-scheduler puts back",
            Fix("select the pods' own labels"),
        ),
    )


def _differences(
    placed: Placed, all_placed: list[Placed], ground: UsableNodes, subject: Subject, index: ReadOnlyIndex
) -> Iterator[_Difference]:
    """What Karpenter reads differently in one constraint of a template.

    Shape: ``all_placed`` are all constraints of the template, ``ground`` has its nodes.
    """
    found = (
        _hosts(placed, ground, subject),
        _full_hosts(placed, ground, subject, index),
        _unselecting(placed, subject),
        _alone(placed, ground),
        _closed_domains(placed, ground),
        _taken_for_one(placed, all_placed),
        _narrowed(placed, ground),
        _match_fields(placed),
        # These two are about the pods: said once, of their first constraint.
        *((_avoided_nodes(placed, ground), _alternative_terms(placed, ground)) if placed is all_placed[0] else ()),
    )
    yield from (each for each in found if each is not None)


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


def _full_hosts(placed: Placed, ground: UsableNodes, subject: Subject, index: ReadOnlyIndex) -> _Difference | None:
    """Hosts that pods of others, or of another revision, have filled for Karpenter."""
    constraint, replicas = placed.constraint, placed.template.replicas
    max_skew = constraint.max_skew or 0
    if constraint.topology_key != HOSTNAME or max_skew < 1 or replicas is None or constraint.match_label_keys:
        return None
    selector = placed.selector
    if selector is None or subject.workload.traits.on_every_node:
        return None
    counts = index.pods.count(namespace_of(subject.workload.meta.namespace), selector)
    on_each = [counts.get(slot, 0) for slot in to_slots(ground.open)]
    # As many pods as replicas are this workload's own, at rest; what Karpenter asks for these is said by `_hosts`.
    if not on_each or min(on_each) < max_skew or not replicas <= len(on_each) * max_skew or sum(on_each) <= replicas:
        return None
    enough = sum(on_each) // len(on_each) + 1
    return _Difference(
        f"{placed.name}: Karpenter takes {plural(len(on_each), 'node')} to be full",
        f"use maxSkew: {enough}",
        f"the constraint counts {plural(sum(on_each), 'pod')} on the {plural(len(on_each), 'node')} that these pods may"
        f" use, more than their {plural(replicas, 'replica')}; Karpenter takes the fewest pods on a node to be 0 and"
        f" allows no more than {max_skew} on a node, while kube-scheduler puts more on those with the fewest",
        changes(placed, maxSkew=enough),
        ".maxSkew",
    )


def _avoided_nodes(placed: Placed, ground: UsableNodes) -> _Difference | None:
    """Nodes that kube-scheduler avoids as long as it can, and Karpenter never takes."""
    tolerations = ground.spec.tolerations
    avoided = 0
    for taints, members in ground.view.soft_taint_classes:
        if first_untolerated(taints, tolerations, _SOFT) is not None:
            avoided |= members
    skipped = (avoided & ground.open).bit_count()
    if not skipped:
        return None
    return _Difference(
        f"{placed.name}: Karpenter skips {skipped:,} PreferNoSchedule node{'s' if skipped > 1 else ''}",
        "tolerate the taint",
        f"Karpenter puts no pod on {plural(skipped, 'node')} whose PreferNoSchedule taint the pods do not tolerate, and"
        " with nodeTaintsPolicy Honor does not count them; to kube-scheduler they are as good as others when nothing"
        " else is left, and count. Karpenter gives in last of all, if a NodePool has such a taint",
        Fix("add a toleration with effect: PreferNoSchedule"),
    )


def _alternative_terms(placed: Placed, ground: UsableNodes) -> _Difference | None:
    spec = ground.spec
    if len(spec.node_terms or ()) < 2:
        return None
    required = compile_required_nodes(None, spec.affinity).terms or ()
    later = ground.open & ~nodes_of_terms(ground.view, required[:1])
    if not later:
        return None
    return _Difference(
        f"{placed.name}: Karpenter tries node affinity terms one by one",
        "use one term",
        "Karpenter looks for nodes by the first term of the required node affinity alone, on new nodes too, and goes on"
        f" to the next when it finds none; {plural(later.bit_count(), 'node')} that kube-scheduler takes"
        f" match{'es' if later.bit_count() == 1 else ''} only a later one",
        Fix("write the terms of the required node affinity as one"),
    )


def _narrowed(placed: Placed, ground: UsableNodes) -> _Difference | None:
    """Domains that count although the pods choose others by the key itself."""
    constraint = placed.constraint
    key = constraint.topology_key or ""
    if constraint.node_affinity_policy != IGNORE or key == HOSTNAME or not constraint.hard:
        return None
    spec = ground.spec
    keys = {*(spec.node_selector or ())}
    keys.update(each.key for term in spec.node_terms or () for each in term.match_expressions or ())
    column = ground.view.column(key)
    if key not in keys or column.domain_count(column.present) == column.domain_count(column.present & ground.usable):
        return None
    return _Difference(
        f"{placed.name}: Karpenter leaves out excluded domains",
        "use Honor",
        f"the pods choose domains of {one_line(key, 60)} by that very label: Karpenter takes the minimum of these"
        " alone, while kube-scheduler with nodeAffinityPolicy Ignore counts the others too",
        changes(placed, nodeAffinityPolicy=HONOR),
        ".nodeAffinityPolicy",
    )


def _closed_domains(placed: Placed, ground: UsableNodes) -> _Difference | None:
    """Domains without an open node, for which Karpenter makes one where kube-scheduler does without."""
    key = placed.constraint.topology_key or ""
    if placed.constraint.hard or key == HOSTNAME:
        return None
    column, counting = ground.view.column(key), ground.counting(placed)
    # A node that is starting or leaving is no reason to speak: its taints pass.
    lasting = counting & ground.usable & (ground.tolerated | ~settled_nodes(ground.view))
    closed = column.domain_count(counting) - column.domain_count(lasting)
    if not closed or not lasting:
        return None
    noun = placed.noun
    return _Difference(
        f"{placed.name}: Karpenter first wants nodes in {plural(closed, f'closed {noun}')}",
        "tolerate the taints",
        f"Karpenter treats ScheduleAnyway as DoNotSchedule until that fails: {plural(closed, noun)} in which these pods"
        f" may use no node hold{'s' if closed == 1 else ''} the minimum, so that it makes a node there where its"
        " NodePools can; kube-scheduler uses the others",
        Fix("tolerate the taints of the nodes there, or expect a new node"),
        ".whenUnsatisfiable",
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


def _match_fields(placed: Placed) -> _Difference | None:
    terms = placed.template.template.pod_spec.node_terms or ()
    if placed.constraint.node_affinity_policy == IGNORE or not any(term.match_fields for term in terms):
        return None
    return _Difference(
        f"{placed.name}: Karpenter ignores matchFields",
        "use matchExpressions",
        "Karpenter chooses the nodes to count by nodeSelector and matchExpressions, and ignores matchFields of the"
        " node affinity",
        Fix("use matchExpressions in the required node affinity"),
    )
