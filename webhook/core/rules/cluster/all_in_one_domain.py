"""The rule about workloads whose running pods are all in one domain, whatever they declare."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from webhook.core.api.selectors import Selector
from webhook.core.api.types import ClaimSource, Pod, SpreadConstraint, Volume
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.changes.candidates import changed
from webhook.core.coming_pods.next_pod import PodSource, coming_pod, problem_of
from webhook.core.explain.explanation import without_spread
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.index.tables.label_column import Column
from webhook.core.index.tables.pod_groups import Counts
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.counted_workloads import NO_SELECTOR, OWN_LABELS, foreign_pods, selects
from webhook.core.rules.frame.rule import (
    NO_REPLICAS,
    Finding,
    Need,
    NotEvaluated,
    Rule,
    RuleAnswer,
    Severity,
)
from webhook.core.rules.frame.subject import Subject, readable_selector
from webhook.core.rules.frame.usable_nodes import UsableNodes
from webhook.core.scheduler.cycle import decide
from webhook.core.scheduler.plugins.node_selection import settled_nodes
from webhook.core.scheduler.problem import Problem
from webhook.core.scheduler.profile import DEFAULT_SCHEDULER
from webhook.core.text import plural, quoted
from webhook.core.workloads.workload import Template, Workload, namespace_of

_FEWEST = 2  # pods that could be apart, and domains to be apart in
_NOUNS = {HOSTNAME: "node", ZONE: "zone"}
_CLAIMS = ("persistentvolumeclaims", "persistentvolumes")
# Of a StatefulSet with volumes each pod is tried by itself, the first ones.
_MAX_PODS_TRIED = 16
_ON_ONE_NODE = frozenset({"ReadWriteOnce", "ReadWriteOncePod"})
Help = tuple[str, str]  # as a warning says it, and as it is done


class Away(NamedTuple):
    """The nodes in other domains of the key than the one that holds all of so many pods."""

    key: str
    nodes: int
    pods: int


def evaluate(subject: Subject) -> Iterable[RuleAnswer]:
    """What the rule says of a workload that keeps several pods running."""
    workload, index = subject.workload, subject.index
    if not workload.traits.replicated or workload.replicas in NO_REPLICAS or not workload.templates:
        return ()
    missing = subject.lacks("nodes", "pods")
    own = None if missing else subject.own_selector
    if index is None or own is None:
        return (NotEvaluated(ALL_IN_ONE.id, missing or NO_SELECTOR),)
    counts = index.count(workload.meta.namespace, own)
    return _together(counts, own, subject, index) if sum(counts.values()) >= _FEWEST else ()


ALL_IN_ONE = Rule(
    id="all-in-one-domain",
    title="all pods of the workload are in one zone or on one node",
    severity=Severity.MEDIUM,
    mode=Mode.AUDIT,
    only_audits=True,
    why=(
        "The loss of that zone or node takes the whole workload down. It happens without constraints, with soft ones, "
        "and where a constraint came after the pods."
    ),
    ask=evaluate,
    needs=(Need.NODES, Need.PODS),
    uses=(Need.VOLUMES,),
    without_constraints=True,
)


def _together(counts: Counts, own: Selector, subject: Subject, index: ReadOnlyIndex) -> Iterator[RuleAnswer]:
    template, view = subject.workload.templates[0], index.view()
    affine, ground = _wanted_together(template), UsableNodes(subject, template, index)
    pods = sum(counts.values())
    # The node first: all on one node is worse than all in one zone, and includes it.
    for key in (HOSTNAME, ZONE):
        column = view.column(key)
        domain = _one_domain(column, counts)
        if domain is None or key in affine or column.domain_count(ground.open) < _FEWEST:
            continue
        # Volumes may tie the pods to their place: without them nothing is certain.
        missing = subject.lacks(*_CLAIMS) if _mounts(subject.workload, template) else ""
        if missing:
            yield NotEvaluated(ALL_IN_ONE.id, missing)
            return
        away = Away(key, column.present & ~column.with_value(domain) & settled_nodes(view), pods)
        help_ = _help_of_one(away, own, subject, index)
        if help_ is not None:
            yield _finding(key, domain, pods, help_, subject)
            return


def _mounts(workload: Workload, template: Template) -> bool:
    """Whether the pods have volumes that the cluster knows more of."""
    return workload.claims is not None or any(volume.has_claim for volume in template.template.pod_spec.volumes or ())


def _help_of_one(away: Away, own: Selector, subject: Subject, index: ReadOnlyIndex) -> Help | None:
    """What would take one of the pods to another domain; None where nothing is known to."""
    template = subject.workload.templates[0]
    if _share_a_disk(template, subject, index):
        return None
    for pod in subject.timely(_made_anew(template, away.pods, subject, index)):
        problem = problem_of(pod, subject.context.beside(index))
        if not decide(without_spread(problem)).feasible & away.nodes:
            continue
        # Made anew, the pods are gone from the counts before the first of them is placed.
        anew = changed(problem, lambda each: _without_own(each, own, index))
        found = _help(template, away, own, subject, anew)
        if found is not None:
            return found
    return None


def _share_a_disk(template: Template, subject: Subject, index: ReadOnlyIndex) -> bool:
    """Whether all pods mount one claim that a single node can have at a time."""
    namespace = namespace_of(subject.workload.meta.namespace)
    for volume in template.template.pod_spec.volumes or ():
        source = volume.persistent_volume_claim
        claim = index.claim(namespace, source.claim_name) if source is not None else None
        if claim is not None and set(claim.spec.access_modes or ()) <= _ON_ONE_NODE:
            return True
    return False


def _made_anew(template: Template, pods: int, subject: Subject, index: ReadOnlyIndex) -> Iterator[Pod]:
    """The next pod as the scheduler gets it; of a StatefulSet with volumes those that run, as they would come back."""
    workload, policy = subject.workload, subject.policy
    namespace = namespace_of(workload.meta.namespace)
    if (template.template.pod_spec.scheduler_name or DEFAULT_SCHEDULER) not in policy.scheduler_names:
        return
    source = PodSource(workload=workload, template=template, namespace=namespace)
    pod = coming_pod(source, subject.context.beside(index)).pod
    claims = workload.claims
    if claims is None or not claims.names:
        yield pod
        return
    ordinals = range(workload.first_ordinal, workload.first_ordinal + max(workload.replicas or 0, pods))
    names = (f"{workload.meta.name}-{ordinal}" for ordinal in ordinals[:_MAX_PODS_TRIED])
    for name in names:
        running = index.pod_on_node(namespace, name)
        if running is not None and not running.terminates:
            mounted = tuple(
                Volume(name=each, persistent_volume_claim=ClaimSource(claim_name=f"{each}-{name}"))
                for each in claims.names
            )
            spec = pod.pod_spec
            kept = tuple(each for each in spec.volumes or () if each.name not in claims.names)
            yield replace(pod, metadata=replace(pod.meta, name=name), spec=replace(spec, volumes=(*kept, *mounted)))


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


def _help(template: Template, away: Away, own: Selector, subject: Subject, anew: Problem) -> Help | None:
    """What would take the pods apart, as a warning says it and as it is done; None where that is not shown.

    A constraint that counts others as well is content with them in the other domains, and so would a restart be. A
    hard one that lets all of the pods stand in one domain may put them there again.
    """
    over = [each for each in template.template.pod_spec.constraints if each.topology_key == away.key]
    counting = [each for each in over if _counts(each, template)]
    alone = [each for each in counting if not _is_shared(each, template, own, subject)]
    is_open = bool(decide(anew).feasible & away.nodes)
    if len(alone) < len(counting) and not (alone and is_open):
        opened = decide(changed(anew, _without_any)).feasible & away.nodes
        return ("count only these pods", "use the workload's own selector as labelSelector") if opened else None
    if not is_open:
        return None
    noun = _NOUNS[away.key]
    if not counting:
        fix = f"let the constraint over {away.key} count these pods" if over else _added(away.key)
        return f"spread them over {noun}s", fix
    if all(each.hard and (each.max_skew or 0) >= away.pods for each in alone):
        most = alone[0].max_skew
        where = "in one zone" if away.key == ZONE else "on one node"
        return "use maxSkew: 1", f"set maxSkew: 1, since maxSkew {most} lets all {away.pods} be {where}"
    restart = "kubectl rollout restart" if subject.workload.traits.restarts else "delete one after the other"
    return "restart it to place them anew", f"restart the pods ({restart}): a pod is placed once, when it is made"


def _added(key: str) -> str:
    what = "maxSkew 1, ScheduleAnyway, the workload's own selector"
    return f"add a constraint over {key} ({what}): its rollout places the pods anew"


def _counts(constraint: SpreadConstraint, template: Template) -> bool:
    labels = template.template.labels
    selector = readable_selector(constraint, labels) if selects(constraint) else None
    return selector is not None and selector.matches(labels)


def _is_shared(constraint: SpreadConstraint, template: Template, own: Selector, subject: Subject) -> bool:
    """Whether it counts pods of others as well."""
    selector = readable_selector(constraint, template.template.labels)
    if selector is None or subject.index is None or not OWN_LABELS.isdisjoint(constraint.match_label_keys or ()):
        return False
    return bool(foreign_pods(subject.workload.meta.namespace, selector, own, subject.index))


def _without_own(problem: Problem, own: Selector, index: ReadOnlyIndex) -> Problem:
    """The problem of the first pod that is made anew: no constraint counts the workload's own."""
    namespace = problem.pod.meta.namespace
    counts = tuple(foreign_pods(namespace, each.selector, own, index) for each in problem.hard.constraints)
    return replace(problem, hard=replace(problem.hard, counts=counts))


def _without_any(problem: Problem) -> Problem:
    """The same where the constraints count no pod of others either."""
    counts: tuple[Counts, ...] = tuple({} for _ in problem.hard.counts)
    return replace(problem, hard=replace(problem.hard, counts=counts))


def _finding(key: str, domain: str, pods: int, help_: Help, subject: Subject) -> Finding:
    noun = _NOUNS[key]
    place = f"{noun} {quoted(domain, 40)}" if subject.policy.messages.name_domains(key) else f"one {noun}"
    path = subject.workload.templates[0].path
    return Finding(
        rule=ALL_IN_ONE.id,
        path=f"{path}spec.topologySpreadConstraints",
        summary=f"all {plural(pods, 'running pod')} are {'in' if key == ZONE else 'on'} {place}",
        remedy=help_[0],
        detail=f"the loss of that {noun} takes all {plural(pods, 'running pod')} down; made anew,"
        f" {'they' if subject.workload.claims is None else 'at least one of them'} could go to another {noun}",
        fix=help_[1],
        key=f"{path} {noun}",
    )
