"""Find constraints that also count pods of other workloads in the namespace."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import combinations

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.selector_text import pairs_text
from webhook.core.api.selectors import Selector, selector_from_labels
from webhook.core.api.types import EQUALS, LabelSelector, Pod
from webhook.core.api.written_selector import has_conditions, narrowed
from webhook.core.context import problem_of
from webhook.core.groups.reading import memberships
from webhook.core.index import node_sets
from webhook.core.index.objects import Owner
from webhook.core.index.pods import Counts
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.pods_to_create.next_pod import PodSource, next_pod_of
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.counted_workloads import (
    NO_SELECTOR,
    counted_workloads,
    groups_of,
    have_one_controller,
    is_member,
    workload_name,
)
from webhook.core.rules.frame.fixes import Fix, changes, changes_in
from webhook.core.rules.frame.own_pods import LATE_LABELS, OWN_LABELS, counts_without, foreign_pods, late_keys
from webhook.core.rules.frame.rule import Finding, Need, NotEvaluated, Reevaluated, Rule, RuleAnswer, Severity
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.rules.frame.usable_nodes import usable_nodes_of
from webhook.core.scheduler.cycle import decide
from webhook.core.scheduler.problem import Problem, change_problem
from webhook.core.scheduler.profile import DEFAULT_SCHEDULER
from webhook.core.text import agree, plural, together
from webhook.core.workloads.controller_labels import may_be_added
from webhook.core.workloads.kinds import REVISION_LABELS, group_kind, traits
from webhook.core.workloads.workload import Workload, compiled, namespace_of

_NAMED = 2  # The most workloads named. Two names of usual length fit into a warning of 120 characters.


class _Other(Struct, frozen=True):
    """Another workload in the namespace, and its pods counted by a constraint."""

    owner: Owner
    selector: Selector
    counts: Counts

    @property
    def pods(self) -> int:
        return sum(self.counts.values())


def evaluate(subject: Subject) -> Iterable[RuleAnswer]:
    if not any(has_conditions(placed.constraint.selector) for placed in subject.placed):
        return ()
    same_file = subject.context.same_file
    in_file = [] if same_file is None else [*_in_file(subject, same_file)]
    missing = subject.lacks("pods")
    if missing is not None:
        return in_file or (NotEvaluated(TOO_WIDE.id, missing),)
    if not in_file:
        return _beside(subject)
    found = [*_beside(subject)]
    places = {each.path for each in found if isinstance(each, Finding)}
    return [*found, *(each for each in in_file if each.path not in places)]


def _beside(subject: Subject) -> Iterator[RuleAnswer]:
    own, namespace = subject.own_selector, subject.workload.meta.namespace
    for (_, late, selector), alike in subject.while_time_is_left(_by_selector(subject).items()):
        if not (late or own is None):
            pods, others = _foreign(subject, selector, own, alike[0].template.pod.labels)
            # Otherwise their workload is unknown.
            if pods and not subject.out_of_time and (within := _on_counting_nodes(pods, alike, subject)):
                yield _finding(alike, subject, (sum(pods.values()), within), others)
        elif subject.context.cluster.pods.count(namespace, selector):
            yield NotEvaluated(TOO_WIDE.id, LATE_LABELS if late else NO_SELECTOR)


TOO_WIDE = Rule(
    id="selector-too-wide",
    title="the labelSelector also counts pods of other workloads",
    severity=Severity.MEDIUM,
    mode=Mode.AUDIT,
    why=(
        "The scheduler spreads the sum of all matched pods. If the sum includes pods of another workload, all your "
        "pods can be in one zone although the sum is even.\n\n"
        "The rule warns if all of these hold, and otherwise audits:\n\n"
        "- your constraint is hard,\n"
        "- the other workload has no constraint over the same key,\n"
        "- without the pods of that workload, other nodes would admit your next pod.\n\n"
        "`evenspread check` also compares workloads without pods, if they are in one file and namespace."
    ),
    evaluate=evaluate,
    needs=(Need.PODS,),
    reevaluated=Reevaluated.AFTER_RECOUNTS,
    recounts=True,
)


def _in_file(subject: Subject, index: ReadOnlyIndex) -> Iterator[Finding]:
    """Yield a finding for each selector that also matches a workload of the same file.

    Only other workloads without running pods count.
    """
    workload, own = subject.workload, subject.own_selector
    if own is None or workload.meta.controller is not None:
        return
    for (_, late, selector), alike in _by_selector(subject).items():
        labels = alike[0].template.pod.labels
        groups = [*memberships(workload.namespace, labels, index), *groups_of(subject, labels)]
        others = [
            owner
            for owner in counted_workloads(workload, selector, index)
            if _is_without_pods(owner, subject)
            and not any(is_member(owner, group) for group in groups)
            and (
                _have_one_selector(owner, workload)
                or any(selector.matches(each.labels) and not own.matches(each.labels) for each in owner.templates or ())
            )
        ]
        if others and not late:
            yield _finding_in_file(alike, workload, sorted(others, key=lambda owner: owner.meta.name))


def _is_without_pods(owner: Owner, subject: Subject) -> bool:
    """Whether a workload of the file will run pods but has none yet. False for a workload with a controller."""
    completes = traits(group_kind(owner.api_version, owner.kind)).completes
    if owner.replicas == 0 or owner.meta.controller is not None or completes:
        return False
    selected, index = _stored(owner.selector), subject.index
    return index is None or selected is None or not index.pods.count(namespace_of(owner.meta.namespace), selected)


def _have_one_selector(owner: Owner, workload: Workload) -> bool:
    return owner.selector is not None and owner.selector == workload.selector


def _finding_in_file(alike: list[Placed], workload: Workload, others: list[Owner]) -> Finding:
    names = [workload_name(owner, workload) for owner in others[:_NAMED]]
    if len(others) > _NAMED:
        names.append("other workloads")  # `counted_workloads` stops at a limit, so their number is not known
    if any(_have_one_selector(owner, workload) for owner in others):
        cause = "another workload has the same selector as this one"
        remedy = "add a distinct label to the pods of each workload"
        by_hand = "only the author can choose the label, and spec.selector is immutable"
        fix = Fix(f"{remedy}, and select it here", by_hand=by_hand)
    else:
        cause = "this workload's own selector does not match those pods"
        remedy, fix = _narrower(alike, workload)
    is_one = not any(_has_no_constraint_over_key(owner, placed) for owner in others for placed in alike)
    constraints = together([placed.name for placed in alike])
    return TOO_WIDE.finding(
        alike[0],
        "labelSelector",
        fix,
        summary=f"{constraints} also {agree(len(alike), 'count')} the pods of {together(names)} in the same file",
        remedy=f"{remedy} unless they are one application" if is_one else remedy,
        detail=f"{cause}; {_effect_on_domains(alike)}",
    )


def _effect_on_domains(alike: list[Placed]) -> str:
    hard = any(placed.constraint.hard for placed in alike)
    return f"a domain full of their pods {'accepts no' if hard else 'is the last choice for a'} pod of this workload"


def _on_counting_nodes(counts: Counts, alike: list[Placed], subject: Subject) -> int:
    """Count the pods on nodes where at least one of the constraints counts pods.

    If the nodes are unknown, count all pods.
    """
    if subject.nodes is None:
        return sum(counts.values())
    nodes = 0
    for placed, ground in usable_nodes_of(replace(subject, placed=tuple(alike))):
        nodes |= ground.counting(placed)
    members = node_sets.flags(nodes, nodes.bit_length())
    return sum(pods for slot, pods in counts.items() if slot < len(members) and members[slot])


def _by_selector(subject: Subject) -> dict[tuple[str, bool, Selector], list[Placed]]:
    """Group constraints by template path, by late labels and by selector.

    The second part of the key is whether the constraint has a label added later by a controller. Constraints that count
    the pods of a single revision are left out.
    """
    alike: dict[tuple[str, bool, Selector], list[Placed]] = {}
    added = partial(may_be_added, subject.workload, in_template=False)
    for placed in subject.placed:
        if not has_conditions(placed.constraint.selector):
            continue
        labels = placed.template.pod.labels
        late = [*late_keys(placed.constraint, labels, added)]
        selector = placed.selector
        if selector is None or not OWN_LABELS.isdisjoint(late):
            continue
        if late or selector.matches(labels):  # else `selector-not-self` says so
            alike.setdefault((placed.template.path, bool(late), selector), []).append(placed)
    return alike


def _foreign(
    subject: Subject, selector: Selector, own: Selector, labels: Mapping[str, str]
) -> tuple[Counts, list[_Other]]:
    """Count the matching pods of other workloads, and list these workloads.

    The workload with the most pods comes first. Workloads of the same SpreadGroup or with the same controller are left
    out.
    """
    workload, index = subject.workload, subject.context.cluster
    pods, others = foreign_pods(workload.meta.namespace, selector, own, index), []
    members = groups_of(subject, labels) if pods else ()
    for each in members:
        both = selector.joined(each.selector.requirements)
        pods = counts_without(pods, foreign_pods(workload.meta.namespace, both, own, index))
    for other in subject.while_time_is_left(_others(workload, selector, own, index)) if pods else ():
        if any(is_member(other.owner, each) for each in members):
            continue
        if have_one_controller(workload, other.owner):
            pods = counts_without(pods, other.counts)
        else:
            others.append(other)
    return pods, sorted(others, key=lambda each: -each.pods)


def _others(workload: Workload, selector: Selector, own: Selector, index: ReadOnlyIndex) -> Iterator[_Other]:
    """Yield the other workloads with counted pods. If several have the same selector, yield only the first."""
    namespace, seen = workload.meta.namespace, set()
    for owner in counted_workloads(workload, selector, index):
        selected = _stored(owner.selector)
        if selected is None or selected in seen:
            continue
        seen.add(selected)
        if counts := _pods_of(selected, selector, own, namespace, index):
            yield _Other(owner, selected, counts)


def _pods_of(theirs: Selector, counting: Selector, own: Selector, namespace: str, index: ReadOnlyIndex) -> Counts:
    both = counting.joined(theirs.requirements)
    # Most workloads differ in a label, so they cannot share pods with this workload.
    return index.pods.count(namespace, both) if _exclude(own, theirs) else foreign_pods(namespace, both, own, index)


def _stored(written: LabelSelector | None) -> Selector | None:
    """Compile the selector of a stored object. The API server has validated it, so validation is skipped."""
    if written is None or written.match_expressions:
        return compiled(written)
    return selector_from_labels(written.match_labels) if written.match_labels else None


def _exclude(one: Selector, other: Selector) -> bool:
    values = {each.key: each.values for each in one.requirements if each.operator == EQUALS}
    return any(
        each.operator == EQUALS and values.get(each.key, each.values) != each.values for each in other.requirements
    )


def _finding(alike: list[Placed], subject: Subject, numbers: tuple[int, int], others: list[_Other]) -> Finding:
    """Return the finding about constraints with equal selectors.

    ``numbers`` counts the pods of other workloads: on all nodes, and on nodes counted by the constraints.
    """
    first, (pods, within) = alike[0], numbers
    counted = subject.policy.messages.count_others(offline=subject.offline)
    others_said = _named(pods, others, subject) if counted else "pods of other workloads"
    unmatched = f"{pods:,}" if counted else "all"
    where = f" ({within} of them on counted nodes)" if counted and within < pods else ""
    lacking = [[each for each in others if _has_no_constraint_over_key(each.owner, placed)] for placed in alike]
    effect = next(filter(None, (_effect(placed, subject, of) for placed, of in zip(alike, lacking, strict=True))), "")
    weight = effect or _effect_on_domains(alike)
    remedy, fix = _narrower(alike, subject.workload)
    agreed = bool(others) and not any(lacking) and sum(other.pods for other in others) >= pods
    names = together([placed.name for placed in alike])
    return TOO_WIDE.finding(
        first,
        "labelSelector",
        fix,
        summary=f"{names} also {agree(len(alike), 'count')} {others_said}",
        remedy=f"{remedy} unless they are one application" if agreed else remedy,
        detail=f"this workload's own selector does not match {unmatched} of the counted pods{where}; {weight}",
        warns=bool(effect) or None,
    )


def _has_no_constraint_over_key(owner: Owner, placed: Placed) -> bool:
    keys = {constraint.topology_key for each in owner.templates or () for constraint in each.constraints}
    return placed.constraint.topology_key not in keys


def _effect(placed: Placed, subject: Subject, lacking: list[_Other]) -> str:
    """Describe how the pods of other workloads change the nodes for the next pod. Empty if they change nothing."""
    if not (lacking and placed.constraint.hard) or subject.nodes is None:
        return ""
    # The next pod of every revision has to be affected.
    found = {_numbers(pod, placed, subject, lacking) for pod in _next_pods(placed, subject)}
    numbers = next(iter(found), None)
    if numbers is None or None in found:
        return ""
    over = f"without the pods of workloads that have no {placed.short_name} constraint"
    if len(found) > 1:
        return f"{over}, the next pod would fit on other nodes"
    return f"the next pod fits on {plural(numbers[0], 'node')}, but on {numbers[1]} {over}"


def _next_pods(placed: Placed, subject: Subject) -> Iterator[Pod]:
    """Yield the next pod of a new revision of the template.

    Also yield the next pod of the current revision, if the constraint counts revisions separately. Yield nothing for
    DaemonSets, StatefulSets with volumes and other schedulers' pods: their next pod is not predictable.
    """
    workload, template, owners = subject.workload, placed.template, subject.context.cluster.owners
    namespace, spec = workload.namespace, template.pod.pod_spec
    is_ours = (spec.scheduler_name or DEFAULT_SCHEDULER) in subject.policy.scheduler_names
    if workload.claims is not None or workload.traits.on_every_node or not is_ours:
        return
    keys = {key for each in spec.constraints if each.hard for key in each.match_label_keys or ()}
    exists = owners.get(workload.api_version, workload.kind, namespace, workload.meta.name) is not None
    for applied in (False, True) if exists and not REVISION_LABELS.isdisjoint(keys) else (False,):
        source = PodSource(workload=workload, template=template, namespace=namespace, applied=applied)
        made = next_pod_of(source, subject.context)
        if any(key not in made.sent.labels and may_be_added(workload, key, in_template=False) for key in keys):
            return
        yield made.pod


def _numbers(pod: Pod, placed: Placed, subject: Subject, lacking: list[_Other]) -> tuple[int, int] | None:
    """Count the nodes that admit the pod: now, and without the pods of the workloads in ``lacking``.

    None if the nodes stay the same, or if a pod may belong to two of the workloads.
    """
    own, namespace, index = subject.own_selector, pod.meta.namespace, subject.context.cluster
    problem = problem_of(pod, subject.context)
    number = sum(each.hard for each in placed.template.pod.pod_spec.constraints[: placed.index])
    if own is None or problem.hard.error or number >= len(problem.hard.constraints):
        return None
    for one, other in combinations(lacking, 2):
        shared = one.selector.joined(other.selector.requirements)
        if not _exclude(one.selector, other.selector) and index.pods.count(namespace, shared):
            return None  # a pod may be of both
    selector = problem.hard.constraints[number].selector

    def discounted(of: Problem) -> Problem:
        counts = []
        for constraint, found in zip(of.hard.constraints, of.hard.counts, strict=True):
            both = constraint.selector.joined(selector.requirements)
            gone = [_pods_of(each.selector, both, own, namespace, index) for each in lacking] if found else []
            counts.append(counts_without(found, *gone))
        return replace(of, hard=replace(of.hard, counts=tuple(counts)))

    # Worth a warning only if it changes where the pod may go, not if it merely changes numbers.
    beside, without = decide(problem).feasible, decide(change_problem(problem, discounted)).feasible
    return None if beside == without else (beside.bit_count(), without.bit_count())


def _narrower(alike: list[Placed], workload: Workload) -> tuple[str, Fix]:
    first = alike[0]
    written = first.constraint.selector or LabelSelector()
    own = workload.selector or LabelSelector(match_labels=first.template.pod.labels)
    right, asked = narrowed(first.constraint, own), (written.match_labels or {}).items()
    missing = {key: value for key, value in (own.match_labels or {}).items() if (key, value) not in asked}
    added = {*(own.match_expressions or ())} - {*(written.match_expressions or ())}
    fix = changes_in(alike, alike, labelSelector=right) if len(alike) > 1 else changes(first, labelSelector=right)
    them = "them" if len(alike) > 1 else "it"
    return ("use the workload's own selector" if added else f"narrow {them} to {pairs_text(missing)}"), fix


def _named(pods: int, others: list[_Other], subject: Subject) -> str:
    attributed = sum(other.pods for other in others)
    # More than there are, if some are of two workloads by their selectors.
    if not others or attributed > pods or not subject.policy.messages.name_workloads(offline=subject.offline):
        return f"{plural(pods, 'pod')} of other workloads"
    named = others[:_NAMED]
    parts = [f"{other.pods} of {workload_name(other.owner, subject.workload)}" for other in named]
    parts[0] = f"{plural(named[0].pods, 'pod')} of {workload_name(named[0].owner, subject.workload)}"
    rest = pods - sum(other.pods for other in named)
    return together([*parts, f"{rest} of others"] if rest > 0 else parts)
