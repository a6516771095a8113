"""The rule about the other workloads of the namespace: whom a constraint counts besides the workload's own pods."""

from collections.abc import Iterator, Mapping
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.created import as_created
from webhook.core.groups import Counts
from webhook.core.index import ClusterIndex
from webhook.core.kinds import Workload
from webhook.core.model import LabelSelector, Pod, SpreadConstraint
from webhook.core.objects import Owner
from webhook.core.owners import group_kind
from webhook.core.policy import Mode
from webhook.core.rules.added import (
    CONTROLLER_REVISION_HASH,
    POD_TEMPLATE_HASH,
    ROLLOUTS_POD_TEMPLATE_HASH,
    may_be_added,
)
from webhook.core.rules.finding import Answer, Finding, NotEvaluated, Placed, Rule, Severity, Subject, one_line
from webhook.core.rules.selector import LATE_LABELS, written
from webhook.core.selectors import EQUALS, Selector, SelectorError, compile_selector, selector_from_labels
from webhook.core.spread import counting_selector
from webhook.core.verdict import decide, take

TOO_WIDE = Rule(
    id="selector-too-wide",
    title="the selector also counts pods of other workloads",
    severity=Severity.MEDIUM,
    mode=Mode.AUDIT,
    why=(
        "Pods of another workload that the selector matches take places in the balance that these pods then lack: all "
        "pods of this workload may end in one zone while the sum is even. It warns if workloads without a constraint "
        "over the same key, which nothing keeps even, change at this moment which nodes a hard constraint leaves."
    ),
    silent=(
        "about pods that the workload's own selector matches, those of other revisions among them; finished and "
        "terminating pods; workloads of the same controller, as an operator's shards; if matchLabelKeys names the "
        "label of the revision; and where the pods do not match the selector themselves (`selector-not-self`). It is "
        "not evaluated for kinds without a selector, whose pods cannot be told from others."
    ),
)
NO_SELECTOR = "which pods are its own: the kind has no selector"
# Labels that no two workloads share: a constraint that matches on one counts one revision, or one Job.
OWN_LABELS = frozenset(
    {
        *(POD_TEMPLATE_HASH, CONTROLLER_REVISION_HASH, ROLLOUTS_POD_TEMPLATE_HASH),
        *("controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name"),
    }
)
# Whoever counts more workloads than this counts half the namespace; a look at each of them takes time, under the lock.
_MOST_WORKLOADS = 16
_MOST_SHARDS = 256  # of an operator, which may be left out only when they are known
_NAMED = 2
_NAME_CHARS = 32


class _Other(Struct, frozen=True):
    """Another workload, and its pods that a constraint counts."""

    owner: Owner
    counts: Counts
    pods: int


def evaluate(subject: Subject) -> Iterator[Answer]:
    """What the rule says of each constraint."""
    counting = [placed for placed in subject.placed if selects(placed.constraint)]
    missing = subject.lacks("pods")
    if not counting:
        return
    if missing or subject.index is None:
        yield NotEvaluated(TOO_WIDE.id, missing)
        return
    own, namespace = own_selector(subject.workload), subject.workload.meta.namespace
    for (_, late, selector), alike in subject.timely(_by_selector(counting, subject.workload).items()):
        if not (late or own is None):
            pods, others = _foreign(subject, selector, own, subject.index)
            if pods and not subject.late:  # else nobody knows whose they are
                yield _finding(alike, subject, pods, others)
        elif subject.index.count(namespace, selector):
            yield NotEvaluated(TOO_WIDE.id, LATE_LABELS if late else NO_SELECTOR)


def _by_selector(counting: list[Placed], workload: Workload) -> dict[tuple[str, bool, Selector], list[Placed]]:
    """The constraints by what they count, which is mostly the same over all keys; without those of one revision.

    Shape: the key is the template's path, whether labels decide that are added later, and the selector.
    """
    found: dict[tuple[str, bool, Selector], list[Placed]] = {}
    for placed in counting:
        late = _late_keys(placed, workload)
        selector = readable_selector(placed.constraint, placed.template.template.labels)
        if selector is None or not OWN_LABELS.isdisjoint(late):
            continue
        if late or selector.matches(placed.template.template.labels):  # else `selector-not-self` says so
            found.setdefault((placed.template.path, bool(late), selector), []).append(placed)
    return found


def own_selector(workload: Workload) -> Selector | None:
    """What selects a workload's pods, of every revision; None where the kind has no selector or it cannot be read."""
    written = workload.selector
    if written is None and workload.kind == "ReplicationController" and workload.templates:
        return selector_from_labels(workload.templates[0].template.labels)
    return compiled(written)


def compiled(written: LabelSelector | None) -> Selector | None:
    """A workload's selector; None for one that says nothing or cannot be read."""
    try:
        selector = compile_selector(written)
    except SelectorError:
        return None
    return selector if selector.requirements else None


def selects(constraint: SpreadConstraint) -> bool:
    """Whether the constraint has a selector of its own; for null and empty ones there are other rules."""
    selector = constraint.selector
    return selector is not None and bool(selector.match_labels or selector.match_expressions)


def readable_selector(constraint: SpreadConstraint, labels: Mapping[str, str]) -> Selector | None:
    """What the constraint counts for a pod with these labels; None where kube-apiserver would refuse the selector."""
    try:
        return counting_selector(constraint, labels)
    except SelectorError:
        return None


def _late_keys(placed: Placed, workload: Workload) -> list[str]:
    """The keys of matchLabelKeys whose labels the pods get later."""
    labels = placed.template.template.labels
    keys = (key for key in placed.constraint.match_label_keys or () if key not in labels)
    return [key for key in keys if may_be_added(workload, key, in_template=False)]


def foreign_pods(namespace: str, selector: Selector, own: Selector, index: ClusterIndex) -> int:
    """How many pods the selector counts that the workload's own does not match."""
    pods = sum(index.count(namespace, selector).values())
    return pods - sum(index.count(namespace, selector.joined(own.requirements)).values()) if pods else 0


def _foreign(subject: Subject, selector: Selector, own: Selector, index: ClusterIndex) -> tuple[int, list[_Other]]:
    """How many pods of others the selector counts, and whose they are, most first."""
    workload = subject.workload
    pods, found = foreign_pods(workload.meta.namespace, selector, own, index), []
    for other in subject.timely(_others(workload, selector, own, index)) if pods else ():
        if have_one_controller(workload, other.owner):
            pods -= other.pods
        else:
            found.append(other)
    return max(pods, 0), sorted(found, key=lambda each: -each.pods)


def _others(workload: Workload, selector: Selector, own: Selector, index: ClusterIndex) -> Iterator[_Other]:
    """The other workloads whose pods the selector matches; of several with the same pods, the first."""
    namespace, seen = workload.meta.namespace, set()
    for owner in counted_workloads(workload, selector, index):
        selected = _stored(owner.selector)
        if selected is None or selected in seen:
            continue
        seen.add(selected)
        both = selector.joined(selected.requirements)
        counts = index.count(namespace, both)
        if not _exclude(own, selected):
            counts = _without(counts, index.count(namespace, both.joined(own.requirements)))
        if counts:
            yield _Other(owner, counts, sum(counts.values()))


def _stored(written: LabelSelector | None) -> Selector | None:
    """The selector of an object that an API server has: it was checked there, which takes most of the time."""
    if written is None or written.match_expressions:
        return compiled(written)
    return selector_from_labels(written.match_labels) if written.match_labels else None


def _exclude(one: Selector, other: Selector) -> bool:
    """Whether a label that both ask for tells their pods apart."""
    values = {each.key: each.values for each in one.requirements if each.operator == EQUALS}
    return any(
        each.operator == EQUALS and values.get(each.key, each.values) != each.values for each in other.requirements
    )


def _without(counts: Counts, *parts: Counts) -> Counts:
    rest = dict(counts)
    for slot, number in chain.from_iterable(part.items() for part in parts):
        rest[slot] = rest.get(slot, 0) - number
        if rest[slot] <= 0:
            del rest[slot]
    return rest


def counted_workloads(workload: Workload, selector: Selector, index: ClusterIndex) -> Iterator[Owner]:
    """The first of the other workloads whose templates the selector matches."""
    mine = (workload.group, workload.kind, workload.meta.name)
    most = _MOST_WORKLOADS if workload.meta.controller is None else _MOST_SHARDS
    for owner in index.workloads(workload.meta.namespace, selector, most):
        if (*group_kind(owner.api_version, owner.kind), owner.meta.name) != mine:
            yield owner


def have_one_controller(workload: Workload, owner: Owner) -> bool:
    """Whether the same object made both, as an operator makes its shards."""
    mine, theirs = workload.meta.controller, owner.meta.controller
    return mine is not None and theirs is not None and (mine.kind, mine.name) == (theirs.kind, theirs.name)


def _finding(alike: list[Placed], subject: Subject, pods: int, others: list[_Other]) -> Finding:
    first = alike[0]
    lacking = [[each for each in others if _lacks_key(each.owner, placed)] for placed in alike]
    effect = next(filter(None, (_effect(placed, subject, of) for placed, of in zip(alike, lacking, strict=True))), "")
    hard = any(placed.constraint.hard for placed in alike)
    weight = f"a domain that they fill is {'closed to these' if hard else 'the last choice for these'}"
    remedy, fix = _narrower(first, subject.workload)
    agreed = bool(others) and not any(lacking) and sum(other.pods for other in others) >= pods
    names = _listed([placed.name for placed in alike])
    return Finding(
        rule=TOO_WIDE.id,
        path=f"{first.path}.labelSelector",
        summary=f"{names} also {'counts' if len(alike) == 1 else 'count'} {_named(pods, others, subject)}",
        remedy=f"{remedy} unless they are one application" if agreed else remedy,
        detail=f"{_pods(pods)} that the workload's own selector does not match: {effect or weight}",
        fix=fix,
        key=first.key,
        warns=bool(effect) or None,
    )


def _listed(parts: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _lacks_key(owner: Owner, placed: Placed) -> bool:
    """Whether none of its templates has a constraint over the same key."""
    keys = {constraint.topology_key for each in owner.templates or () for constraint in each.constraints}
    return placed.constraint.topology_key not in keys


def _effect(placed: Placed, subject: Subject, lacking: list[_Other]) -> str:
    """What the pods of other workloads change for the next pod; empty where it may go to the same nodes."""
    index = subject.index
    if not (lacking and placed.constraint.hard) or index is None or subject.lacks("nodes"):
        return ""
    template, namespace = placed.template.template, subject.workload.meta.namespace
    meta = replace(template.meta, namespace=namespace)
    pod = as_created(Pod(metadata=meta, spec=template.pod_spec), subject.version)
    problem = take(index, pod)
    number = sum(each.hard for each in template.pod_spec.constraints[: placed.index])
    counts = list(problem.hard.counts)
    if problem.hard.error:
        return ""
    counts[number] = _without(counts[number], *(other.counts for other in lacking))
    with_them = decide(problem).feasible
    without = decide(replace(problem, hard=replace(problem.hard, counts=tuple(counts)))).feasible
    if with_them == without:
        return ""
    return (
        f"the next pod may go to {with_them.bit_count()} nodes, and to {without.bit_count()} without those that no"
        f" constraint over {placed.name.partition('[')[0]} keeps even"
    )


def _narrower(placed: Placed, workload: Workload) -> tuple[str, str]:
    """What keeps others out: the labels of the workload's own selector that the constraint does not ask for."""
    selector, own = placed.constraint.selector or LabelSelector(), workload.selector
    asked = selector.match_labels or {}
    if own is None:
        own = LabelSelector(match_labels=placed.template.template.labels)
    if own.match_expressions:
        return "use the workload's own selector", "labelSelector: the same as spec.selector"
    missing = {key: value for key, value in (own.match_labels or {}).items() if asked.get(key) != value}
    return f"add {written(missing)[0]}", written({**asked, **missing})[1]


def _named(pods: int, others: list[_Other], subject: Subject) -> str:
    """So many pods of these workloads: "6 pods of canary and 2 of others"."""
    if not others or subject.policy.messages.detail == "minimal":
        return f"{_pods(pods)} of other workloads"
    named = others[:_NAMED]
    parts = [f"{other.pods} of {called(other.owner, subject.workload)}" for other in named]
    parts[0] = f"{_pods(named[0].pods)} of {called(named[0].owner, subject.workload)}"
    rest = pods - sum(other.pods for other in named)
    return _listed([*parts, f"{rest} of others"] if rest > 0 else parts)


def _pods(number: int) -> str:
    return "1 pod" if number == 1 else f"{number} pods"


def called(owner: Owner, workload: Workload) -> str:
    """The name of another workload of the namespace; with its kind where that tells it from this one."""
    name = one_line(owner.meta.name, _NAME_CHARS)
    return f"{owner.kind} {name}" if owner.meta.name == workload.meta.name else name
