"""Find conflicts of constraints with node selectors, affinity and volumes."""

from collections.abc import Iterable, Iterator, Sequence

from webhook.core.api.types import NODE_AFFINITY_POLICY, NODE_TAINTS_POLICY, WHEN_UNSATISFIABLE, PodSpec, named_claims
from webhook.core.budget import Reason
from webhook.core.placement.proofs.bounds import PinnedDomain, addable_pinned
from webhook.core.placement.proofs.constraint_capacity import ConstraintCapacity, constraint_capacities
from webhook.core.placement.proofs.pinned_claims import PodsToPlace
from webhook.core.placement.proofs.workload_problem import CandidateNodes, Restriction, candidate_nodes
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.pins import are_held, pinned_by_template
from webhook.core.rules.frame.rule import Finding, Need, NotEvaluated, RuleAnswer, Severity, short_enough
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.rules.frame.usable_nodes import CAPPING_MIN_DOMAINS
from webhook.core.rules.placement.frame.case import PlacementRule, TemplateUnderRule, noun, staying
from webhook.core.rules.placement.frame.lost_zones import costs_pods
from webhook.core.rules.placement.frame.remedies import Remedy, fewer_domains, first_that_helps, honoring, loosened
from webhook.core.text import plural, quoted
from webhook.core.workloads.workload import Template

_CLAIMS = ("persistentvolumeclaims", "persistentvolumes")


def evaluate(subject: Subject) -> Iterable[Finding]:
    """Yield a finding for each hard constraint in conflict with the template's affinity.

    The conflict is certain without a cluster. With known nodes, `_evaluate_template` finds the conflicts instead.
    """
    return pinned_by_template(subject, CONFLICTS.id) if are_held(subject.workload) else ()


def _concerns(subject: Subject, _hard: Sequence[Placed]) -> bool:
    """Whether volumes, node selector or affinity restrict the pods' nodes."""
    return subject.workload.claims is not None or any(map(_is_pinned, subject.workload.templates))


def _evaluate_template(case: TemplateUnderRule) -> Iterator[RuleAnswer]:
    template, workload = case.placed[0].template, case.subject.workload
    if not _is_pinned(template) and workload.claims is None:
        return
    finding = _pinned(case) if _is_pinned(template) else None
    finding = finding or next(_held_by_volumes(case), None)
    if finding is not None:
        yield finding
        return
    missing = case.subject.lacks(*_CLAIMS)
    claims = tuple(named_claims(template.pod.pod_spec.volumes))
    unknown = not set(claims) <= case.facts.problem.storage.claims.keys()
    if unknown or (missing and (claims or workload.claims)):
        yield NotEvaluated(CONFLICTS.id, missing or Reason("an unknown PersistentVolumeClaim"))


CONFLICTS = PlacementRule(
    id="spread-conflicts-affinity",
    title="a node selector, affinity or volumes allow fewer pods than replicas",
    severity=Severity.HIGH,
    mode=Mode.WARN,
    why=(
        "A volume, pod affinity or (with `nodeAffinityPolicy: Ignore`) a node selector keeps your pods out of a "
        "domain. The domain still counts and stays empty, so every other domain can hold only maxSkew pods."
    ),
    evaluate=evaluate,
    of_template=_evaluate_template,
    concerns=_concerns,
    uses=(Need.VOLUMES,),
    highest_on_pods=Mode.WARN,
)


def _is_pinned(template: Template) -> bool:
    return bool(template.pod.pod_spec.runtime_class_name) or any(True for _ in _restrictions(template))


def _restrictions(template: Template, admitted: PodSpec | None = None) -> Iterator[tuple[Restriction, str]]:
    """Yield each node restriction of the pods, and its name in messages.

    ``admitted`` is the pod spec after admission. Its node selector may come from the RuntimeClass.
    """
    spec = template.pod.pod_spec
    if spec.node_selector or spec.node_terms is not None:
        yield Restriction.AFFINITY, "node selector" if spec.node_selector else "node affinity"
    elif admitted is not None and admitted.node_selector:
        yield Restriction.AFFINITY, f"RuntimeClass {quoted(spec.runtime_class_name or '', 40)}"
    for name in named_claims(template.pod.pod_spec.volumes):
        yield Restriction.VOLUMES, f"claim {quoted(name, 40)}"
        break
    if spec.pod_affinity.required:
        yield Restriction.NEAR, "pod affinity"
    if spec.pod_anti_affinity.required:
        yield Restriction.APART, "anti-affinity"


def _pinned(case: TemplateUnderRule) -> Finding | None:
    worst = _worst(case.capacities, case.candidates)
    return None if worst is None or worst[0] >= case.most or not worst[1].open else _blamed(case, *worst)


def _worst(capacities: Sequence[ConstraintCapacity], of: CandidateNodes) -> tuple[int, ConstraintCapacity] | None:
    """Return the lowest upper bound on the workload's pods, with its constraint. None without a bound."""
    together = None if of.together is None else of.eligible.nodes.column(of.together)
    bounds = ((each.most if together is None else each.most_in_one(together), each) for each in capacities)
    return min(((most, each) for most, each in bounds if most is not None), key=lambda bound: bound[0], default=None)


def _blamed(case: TemplateUnderRule, admitted: int, capacity: ConstraintCapacity) -> Finding | None:
    # Without room for another pod, capacity is the cause.
    if not case.has_room(admitted + 1):
        return None
    named = dict(_restrictions(case.placed[0].template, case.facts.problem.pod.pod_spec))
    # Lift each restriction alone to blame the right restriction, then all, in case they act together.
    for part in (*((each,) for each in Restriction if each in named), tuple(Restriction)):
        what_if = candidate_nodes(case.facts, without=part)
        then = _worst(constraint_capacities(case.facts.hard, what_if, case.facts.problem), what_if)
        if then is None or then[0] > admitted:
            who = named.get(part[0]) or next(iter(named.values()))
            return _finding(
                case,
                capacity,
                who,
                admitted,
                together=part[0] == Restriction.NEAR and case.candidates.together is not None,
            )
    return None


def _closed_at_minimum(capacity: ConstraintCapacity) -> list[int]:
    minimum = capacity.minimum if capacity.limit.enough else None
    if minimum is None or not any(cell.room == 0 and cell.pods == minimum for cell in capacity.cells):
        return []
    return [number for number in capacity.closed if capacity.count(number) == minimum]


def _finding(
    case: TemplateUnderRule, capacity: ConstraintCapacity, who: str, admitted: int, *, together: bool
) -> Finding:
    placed = case.placed[capacity.hard.index]
    said = _conflict(capacity, who, together=together)
    remedy = first_that_helps(
        case, admitted, _remedies(case, capacity, placed), field=WHEN_UNSATISFIABLE, brings=costs_pods
    )
    held = _closed_at_minimum(capacity)
    more = f", and {staying(case, capacity, held)}" if held else ""
    brief, bare = said.partition(", and minDomains")[0], remedy.words.removeprefix("set ")
    lines = [f"{case.fit(admitted)}: {each}; {how}" for each in (said, brief) for how in (remedy.words, bare) if how]
    return CONFLICTS.finding(
        placed,
        remedy.field,
        remedy.fix,
        summary=f"{case.fit(admitted)}: {said}",
        remedy=remedy.words,
        warning=short_enough(CONFLICTS.id, *lines),
        detail=f"{case.fit(admitted)} with {placed.name} (maxSkew {capacity.limit.max_skew}): {said}{more}{case.stay}",
        warns=admitted < case.wanted,
        at_most=case.at_most,
    )


def _conflict(capacity: ConstraintCapacity, who: str, *, together: bool) -> str:
    total = len(capacity.open_domains | capacity.closed)
    if together:
        return f"{who} keeps all pods together"
    if capacity.limit.enough and not capacity.closed:
        return f"{who} limits one {noun(capacity)} to {plural(capacity.minimum or 0, 'pod')}"
    minimum = "" if capacity.limit.enough else f", and minDomains is {capacity.domains.constraint.min_domains}"
    of = f" of {total}" if capacity.closed and not minimum else ""
    opened = len(capacity.open_domains)
    return f"{who} allows {opened}{of} {noun(capacity, total if of else opened)}{minimum}"


def _remedies(case: TemplateUnderRule, capacity: ConstraintCapacity, placed: Placed) -> Iterator[Remedy]:
    yield from honoring(case, placed, NODE_AFFINITY_POLICY)
    if not capacity.limit.enough and capacity.domains.constraint.min_domains < CAPPING_MIN_DOMAINS:
        yield from fewer_domains(case, capacity)
    yield from honoring(case, placed, NODE_AFFINITY_POLICY, NODE_TAINTS_POLICY)
    yield from loosened(case, placed)


def _held_by_volumes(case: TemplateUnderRule) -> Iterator[Finding]:
    missing = None if case.ordinals is None else case.ordinals.to_place(case.wanted)
    if missing is None or not missing.pinned:
        return
    running = case.wanted - sum(missing.pinned.values()) - missing.free
    for capacity in case.capacities:
        homes, free = _homes(capacity, missing)
        if not any(home.pinned for home in homes.values()):
            continue  # no volume holds a pod anywhere: what is in the way is something else
        placeable = running + free + sum(home.pinned for home in homes.values())
        admitted = running + addable_pinned(tuple(homes.values()), capacity.limit, free)
        if admitted < placeable and capacity.hard.certain and not capacity.unsteady and case.has_room(case.wanted):
            yield _finding_about_volumes(case, capacity, homes, admitted)


def _homes(capacity: ConstraintCapacity, missing: PodsToPlace) -> tuple[dict[int, PinnedDomain], int]:
    """Return each domain with its pinned pods, and the number of pods with a choice of domains.

    Pods without an open node for their volumes are left out.
    """
    column, free = capacity.column, missing.free
    pinned: dict[int, int] = {}
    for nodes, many in missing.pinned.items():
        choices = column.domains(nodes & capacity.open)
        if len(choices) > 1:
            free += many
        for number in choices if len(choices) == 1 else ():
            pinned[number] = pinned.get(number, 0) + many
    opened = capacity.open_domains
    counting = column.domains(capacity.domains.counting)
    return {
        number: PinnedDomain(capacity.count(number), pinned.get(number, 0), number in opened) for number in counting
    }, free


def _finding_about_volumes(
    case: TemplateUnderRule, capacity: ConstraintCapacity, homes: dict[int, PinnedDomain], admitted: int
) -> Finding:
    placed = case.placed[capacity.hard.index]
    tried = _remedies_about_volumes(case, placed)
    # Pods with volumes of their own are not recreated after the loss of their zone: no other finding can follow.
    remedy = first_that_helps(case, admitted, tried, field=WHEN_UNSATISFIABLE, brings=lambda _: False)
    number, home = max(homes.items(), key=lambda each: (each[1].pinned, -each[0]))
    named = case.subject.policy.messages.name_domains(capacity.column.key)
    where = f"{noun(capacity)} {quoted(capacity.column.values[number], 40)}" if named else f"one {noun(capacity)}"
    said = f"{case.fit(admitted)}: volumes hold {plural(home.pinned, 'pod')} in {where}"
    return CONFLICTS.finding(
        placed,
        remedy.field,
        remedy.fix,
        summary=said,
        remedy=remedy.words,
        detail=f"{said}, and these pods do not run yet; maxSkew allows each {noun(capacity)} only"
        f" {plural(capacity.limit.max_skew, 'more pod')}"
        f" than the emptiest {noun(capacity)}{case.stay}",
        warns=admitted < case.wanted,
        at_most=case.at_most,
    )


def _remedies_about_volumes(case: TemplateUnderRule, placed: Placed) -> Iterator[Remedy]:
    for fields in ((NODE_TAINTS_POLICY,), (NODE_AFFINITY_POLICY,), (NODE_AFFINITY_POLICY, NODE_TAINTS_POLICY)):
        yield from honoring(case, placed, *fields)
    yield from loosened(case, placed)
