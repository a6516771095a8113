"""Find workloads with all running pods in one zone or on one node."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from webhook.core.api.selectors import Selector
from webhook.core.api.types import ClaimSource, Pod, Volume
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.api.written_selector import has_conditions
from webhook.core.context import problem_of
from webhook.core.index.label_column import Column
from webhook.core.index.pods import Counts
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.pods_to_create.next_pod import PodSource, next_pod_of
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.counted_workloads import NO_SELECTOR
from webhook.core.rules.frame.own_pods import OWN_LABELS, counts_itself, foreign_pods
from webhook.core.rules.frame.rule import (
    NO_REPLICAS,
    Finding,
    Need,
    NotEvaluated,
    Rule,
    RuleAnswer,
    Severity,
)
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.rules.frame.usable_nodes import UsableNodes
from webhook.core.scheduler.cycle import decide
from webhook.core.scheduler.plugins.node_selection import settled_nodes
from webhook.core.scheduler.problem import Problem, change_problem, without_spread
from webhook.core.scheduler.profile import DEFAULT_SCHEDULER
from webhook.core.text import plural, quoted
from webhook.core.workloads.workload import Template

_FEWEST = 2  # A single pod, or pods with a single domain, cannot be in several domains.
_NOUNS = {HOSTNAME: "node", ZONE: "zone"}
_CLAIMS = ("persistentvolumeclaims", "persistentvolumes")
# Each pod of a StatefulSet with volumes needs its own dry run.
_MAX_PODS_TRIED = 16
_ON_ONE_NODE = frozenset({"ReadWriteOnce", "ReadWriteOncePod"})
_Help = tuple[str, str]  # as a warning says it, and as it is done


class _Away(NamedTuple):
    """The nodes outside the single domain of all running pods.

    Attributes:
        key: The topology key.
        nodes: The nodes in all other domains.
        pods: The number of running pods.
    """

    key: str
    nodes: int
    pods: int


def evaluate(subject: Subject) -> Iterable[RuleAnswer]:
    """Evaluate all-in-one-domain for a workload with several pods."""
    workload, index = subject.workload, subject.index
    if not workload.traits.replicated or workload.replicas in NO_REPLICAS or not workload.templates:
        return ()
    missing = subject.lacks("nodes", "pods")
    own = None if missing else subject.own_selector
    if index is None or own is None:
        return (NotEvaluated(ALL_IN_ONE.id, missing or NO_SELECTOR),)
    counts = index.pods.count(workload.meta.namespace, own)
    return _together(counts, own, subject, index) if sum(counts.values()) >= _FEWEST else ()


ALL_IN_ONE = Rule(
    id="all-in-one-domain",
    title="all pods of the workload are in one zone or on one node",
    severity=Severity.MEDIUM,
    mode=Mode.AUDIT,
    only_audits=True,
    why=(
        "If this zone or node fails, your whole workload is down. Causes are missing constraints, soft "
        "constraints, and constraints added when the pods already ran."
    ),
    evaluate=evaluate,
    needs=(Need.NODES, Need.PODS),
    uses=(Need.VOLUMES,),
    without_constraints=True,
)


def _together(counts: Counts, own: Selector, subject: Subject, index: ReadOnlyIndex) -> Iterator[RuleAnswer]:
    template, view = subject.workload.templates[0], index.nodes.view()
    ground = UsableNodes(subject, template)
    affine = {term.topology_key for term in template.pod.pod_spec.pod_affinity.terms}
    affine |= {ZONE} if HOSTNAME in affine else set()  # one node is in one zone
    pods = sum(counts.values())
    # The node first, because all on one node is worse and implies one zone.
    for key in (HOSTNAME, ZONE):
        column = view.column(key)
        domain = _one_domain(column, counts)
        if domain is None or key in affine or column.domain_count(ground.open) < _FEWEST:
            continue
        # Volumes may tie the pods to their place: without them nothing is certain.
        has_claims = any(volume.has_claim for volume in template.pod.pod_spec.volumes or ())
        missing = subject.lacks(*_CLAIMS) if has_claims or subject.workload.claims is not None else None
        if missing:
            yield NotEvaluated(ALL_IN_ONE.id, missing)
            return
        away = _Away(key, column.present & ~column.with_value(domain) & settled_nodes(view), pods)
        help_ = _help_of_one(away, own, subject, index)
        if help_ is not None:
            yield _finding(key, domain, pods, help_, subject)
            return


def _help_of_one(away: _Away, own: Selector, subject: Subject, index: ReadOnlyIndex) -> _Help | None:
    """Return a fix tested with a recreated pod of the workload.

    It is the first pod that fits in another domain without its constraints. The test deletes all old pods before it
    places the new pod. None without such a pod or fix, or if the pods share a volume for a single node.
    """
    template = subject.workload.templates[0]
    if _share_a_disk(template, subject, index):
        return None
    for pod in subject.while_time_is_left(_made_anew(template, away.pods, subject, index)):
        problem = problem_of(pod, subject.context.with_index(index))
        if not decide(without_spread(problem)).feasible & away.nodes:
            continue
        # Made anew, the pods are gone from the counts before the first of them is placed.
        of_others = [foreign_pods(pod.meta.namespace, each.selector, own, index) for each in problem.hard.constraints]
        anew = change_problem(problem, lambda each: _with_counts(each, of_others))  # noqa: B023 called at once
        if found := _help(template, away, own, subject, anew):
            return found
    return None


def _share_a_disk(template: Template, subject: Subject, index: ReadOnlyIndex) -> bool:
    namespace = subject.workload.namespace
    sources = (volume.persistent_volume_claim for volume in template.pod.pod_spec.volumes or ())
    claims = (index.volumes.claim(namespace, each.claim_name) for each in sources if each is not None)
    return any(claim is not None and set(claim.spec.access_modes or ()) <= _ON_ONE_NODE for claim in claims)


def _made_anew(template: Template, pods: int, subject: Subject, index: ReadOnlyIndex) -> Iterator[Pod]:
    """Yield the recreated pods to test: the template's next pod, or each pod of a StatefulSet with volumes."""
    workload, policy = subject.workload, subject.policy
    namespace = workload.namespace
    if (template.pod.pod_spec.scheduler_name or DEFAULT_SCHEDULER) not in policy.scheduler_names:
        return
    source = PodSource(workload=workload, template=template, namespace=namespace)
    pod = next_pod_of(source, subject.context.with_index(index)).pod
    claims = workload.claims
    if claims is None or not claims.names:
        yield pod
        return
    spec = pod.pod_spec
    kept = [each for each in spec.volumes or () if each.name not in claims.names]
    for ordinal in workload.ordinals(max(workload.replicas or 0, pods))[:_MAX_PODS_TRIED]:
        name = f"{workload.meta.name}-{ordinal}"
        running = index.pods.on_node(namespace, name)
        if running is not None and not running.terminates:
            sources = {each: ClaimSource(claim_name=f"{each}-{name}") for each in claims.names}
            mounted = (Volume(name=each, persistent_volume_claim=source) for each, source in sources.items())
            yield replace(pod, metadata=replace(pod.meta, name=name), spec=replace(spec, volumes=(*kept, *mounted)))


def _one_domain(column: Column, counts: Counts) -> str | None:
    """Return the domain with all pods. None if pods are in two domains, or on an unlabelled or deleted node."""
    first = -1
    for slot in counts:
        number = column.domain_of[slot] if slot < len(column.domain_of) else -1
        if number < 0 or number != first >= 0:
            return None
        first = number
    return column.values[first]


def _help(template: Template, away: _Away, own: Selector, subject: Subject, anew: Problem) -> _Help | None:
    """Return the suggested fix for pods in one domain, in a short and a full text.

    The short text is for the warning. None if no recreated pod provably fits on a node in another domain. The fix is a
    restart if a constraint counts only these pods, and forbids or avoids all of them in one domain.
    """
    over = [each for each in subject.placed if each.template is template and each.constraint.topology_key == away.key]
    labels = template.pod.labels
    written = [each for each in over if has_conditions(each.constraint.selector)]
    counting = [each for each in written if counts_itself(each.constraint, labels)]
    alone = [each.constraint for each in counting if not _counts_others(each, own, subject)]
    is_open = bool(decide(anew).feasible & away.nodes)
    if len(alone) < len(counting) and not (alone and is_open):
        # Where the constraints count no pod of others either.
        alone_there = change_problem(anew, lambda each: _with_counts(each, [{}] * len(each.hard.counts)))
        opened = decide(alone_there).feasible & away.nodes
        return ("count only these pods", "set labelSelector to the workload's own selector") if opened else None
    if not is_open:
        return None
    noun = _NOUNS[away.key]
    if not counting:
        fields = "maxSkew 1, ScheduleAnyway, the workload's own selector"
        fix = f"add a constraint over {away.key} ({fields}); the rollout recreates the pods"
        return f"spread them over {noun}s", f"let the constraint over {away.key} match these pods" if over else fix
    if all(each.hard and (each.max_skew or 0) >= away.pods for each in alone):
        most = alone[0].max_skew
        where = "in one zone" if away.key == ZONE else "on one node"
        return "use maxSkew: 1", f"set maxSkew: 1, because maxSkew {most} allows all {away.pods} pods {where}"
    restart = "kubectl rollout restart" if subject.workload.traits.restarts else "delete them one by one"
    return "restart the pods", f"restart the pods ({restart}), because Kubernetes never moves a running pod"


def _counts_others(placed: Placed, own: Selector, subject: Subject) -> bool:
    if placed.selector is None or subject.index is None:
        return False
    by_revision = not OWN_LABELS.isdisjoint(placed.constraint.match_label_keys or ())
    return not by_revision and bool(foreign_pods(subject.workload.meta.namespace, placed.selector, own, subject.index))


def _with_counts(problem: Problem, counts: Iterable[Counts]) -> Problem:
    return replace(problem, hard=replace(problem.hard, counts=tuple(counts)))


def _finding(key: str, domain: str, pods: int, help_: _Help, subject: Subject) -> Finding:
    noun = _NOUNS[key]
    place = f"{noun} {quoted(domain, 40)}" if subject.policy.messages.name_domains(key) else f"one {noun}"
    path = subject.workload.templates[0].path
    return Finding(
        rule=ALL_IN_ONE.id,
        path=f"{path}spec.topologySpreadConstraints",
        summary=f"all {plural(pods, 'running pod')} are {'in' if key == ZONE else 'on'} {place}",
        remedy=help_[0],
        detail=f"losing that {noun} takes down all {plural(pods, 'running pod')}; after recreation,"
        f" {'they' if subject.workload.claims is None else 'at least one of them'} could use another {noun}",
        fix=help_[1],
        key=f"{path} {noun}",
    )
