"""Decide whether all pods of a template fit, and find the cause and the fix.

Cheap upper and lower limits are tested first (`TemplateUnderRule.fits_now`). If they do not decide, the simulation
(`placement.simulation`) does. The simulation also tests each fix. A fix must place all pods in every order: with the
running pods in place, and with all of the workload's pods created anew.
"""

from collections.abc import Sequence
from enum import Enum, auto

from msgspec import Struct

from webhook.core.api.selectors import Selector, selector_from_labels
from webhook.core.api.types import WHEN_UNSATISFIABLE
from webhook.core.api.well_known import HOSTNAME, JOB_NAME
from webhook.core.budget import Missing, Reason
from webhook.core.changes.candidates import Candidates, limit_trials
from webhook.core.changes.change import Changes, template_with
from webhook.core.index.owners import has_same_template
from webhook.core.placement.making_room import cause_of_misfit, pods_to_preempt
from webhook.core.placement.placement_verdict import Effort, PlacementVerdict, Simulation
from webhook.core.placement.proofs.constraint_capacity import ConstraintCapacity, constraint_capacities
from webhook.core.placement.proofs.workload_problem import CandidateNodes, candidate_nodes
from webhook.core.placement.simulation import always_fits
from webhook.core.pods_to_create.missing_pods import MissingPods, all_pods_recreated, missing_pods, rollout_pods
from webhook.core.pods_to_create.next_pod import PodSource
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.counted_workloads import NO_SELECTOR
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.rules.placement.frame.case import TemplateUnderRule, selected_by, staying
from webhook.core.rules.placement.frame.remedies import Remedy, fix_of
from webhook.core.scheduler.problem import may_preempt
from webhook.core.scheduler.verdict import Cause
from webhook.core.text import plural
from webhook.core.workloads.controller_labels import may_be_created_with
from webhook.core.workloads.kinds import JOB
from webhook.core.workloads.labels_at_creation import labels_at_creation
from webhook.core.workloads.workload import Template
from webhook.core.yaml_text import one_field

# Other reviews wait for a search in the event loop, so it may only use closed forms. A request that waits in another
# process gets a search of some hundred states, and the command line ten times as many.
_CLOSED_FORMS = Effort(states=0, details=False)
_WAITING = Effort(states=300, orders=20, moves=2000, details=False)
_OFFLINE = Effort(states=3000, orders=50, moves=5000, details=False)
_TRIAL = Effort(states=1000)  # The command line tests several changes, so each gets less than `_OFFLINE`.
# The smallest changes come first. Later changes rarely help, and each needs its own search.
_MAX_FIXES_TRIED, _MAX_FIXES_TRIED_OFFLINE = 12, 30


class Placement(Enum):
    """The pods to place: only the missing pods, all pods from scratch, or all pods in a rolling update."""

    MISSING = auto()
    ANEW = auto()
    ROLLOUT = auto()


_PODS = {Placement.MISSING: missing_pods, Placement.ANEW: all_pods_recreated, Placement.ROLLOUT: rollout_pods}


class Shortfall(Struct, frozen=True):
    """A pod template whose pods do not all get a node in some scheduling order.

    Attributes:
        case: The pod template, with its object and the cluster.
        placement: The pods in the simulation: the missing pods, all pods created again, or the pods of a rollout.
        replicas: The number of requested pods. If these fit, the autoscaler's maximum.
        staying: The number of running pods that keep their nodes.
        found: The result of the simulation.
        cause: Why a pod gets no node.
        at_most: The highest mode (audit, warn or deny) for the finding.
        preempts: The number of pods removed by preemption (`pods_to_preempt`). None if preemption does not help.
    """

    case: TemplateUnderRule
    placement: Placement
    replicas: int
    staying: int
    found: Simulation
    cause: Cause
    at_most: Mode
    preempts: int | None = None

    @property
    def by_preempting(self) -> str:
        """The part of a message about preemption. Empty if preemption cannot make room for all pods."""
        return "" if self.preempts is None else f"; preempting {plural(self.preempts, 'pod')} makes room"

    @property
    def fewest(self) -> int:
        """The fewest placed pods of the workload at the end of any known order, including running pods that stay."""
        found = self.found
        return self.staying + (sum(found.placed) if found.fewest is None else found.fewest)


def speaks_of(subject: Subject, _hard: Sequence[Placed]) -> bool:
    """Whether the rule applies: the object has no controller and no scheduling gates."""
    workload = subject.workload
    if workload.meta.owner_references and workload.meta.controller is not None:
        return False
    return not any(each.pod.pod_spec.scheduling_gates for each in workload.templates)


def missing(case: TemplateUnderRule) -> Shortfall | Reason | None:
    """Return the shortfall of the missing pods.

    None if all pods fit. A reason if the shortfall is unknown. Call this function through `once`, which caches the
    result.
    """
    for replicas in dict.fromkeys((case.wanted, case.most)):
        if case.fits_now(replicas):
            continue
        found = _shortfall(case, Placement.MISSING, replicas)
        if found is not None:
            return found
    return None


def rollout(case: TemplateUnderRule) -> Shortfall | Reason | None:
    """Return the shortfall in a rolling update of the running pods. None if all fit, a reason if unknown."""
    return _shortfall(case, Placement.ROLLOUT, case.wanted) if case.running else None


def _shortfall(case: TemplateUnderRule, placement: Placement, replicas: int) -> Shortfall | Reason | None:
    missing = _pods_to_place(case, placement, case.placed[0].template, replicas)
    if missing.unknown:
        return Reason(f"unknown: {missing.unknown}")
    found = _simulated(case, missing) if missing.batches else None
    if found is None or isinstance(found, Reason):
        return found
    effort = _effort(case)
    why = cause_of_misfit(missing.batches, missing.index, missing.rollout, effort)
    rolling = missing.rollout is not None
    victims = None if rolling else pods_to_preempt(missing.batches, missing.index, found, effort)
    pods = [each.problem.pod for each in missing.batches]
    devices = any(each.pod_spec.resource_claims for each in pods)
    makes_room = victims is not None or (rolling and any(map(may_preempt, pods)))
    # A stuck Job goes on when a pod completes.
    goes_on = case.subject.workload.traits.completes and found.verdict is PlacementVerdict.STUCK
    may_deny = why is Cause.SPREAD and replicas == case.wanted and not (case.grows or devices or makes_room or goes_on)
    mode = Mode.DENY if may_deny else Mode.AUDIT
    return Shortfall(case, placement, replicas, missing.staying, found, why, mode, victims)


def _simulated(case: TemplateUnderRule, missing: MissingPods) -> Simulation | Reason | None:
    """Simulate the missing pods.

    Returns:
        The simulation if not all pods fit in every order. None if they do. The reason if the verdict is unknown.
    """
    may_search = case.subject.context.budget.may_search
    found = missing.simulate(_effort(case) if may_search else _CLOSED_FORMS)
    if found.verdict is PlacementVerdict.UNKNOWN:
        if not may_search:
            return Missing.NEEDS_SEARCH.reason
        return Reason(f"unknown: more orders than can be tried ({found.states:,} states)")
    return None if found.verdict is PlacementVerdict.FITS else found


def _effort(case: TemplateUnderRule) -> Effort:
    return _OFFLINE if case.subject.offline else _WAITING


def _pods_to_place(case: TemplateUnderRule, placement: Placement, template: Template, replicas: int) -> MissingPods:
    subject, own = case.subject, case.once(_own_pods)
    workload = subject.workload
    if own is None:
        return MissingPods(index=case.index, unknown=NO_SELECTOR.text)
    if unknown := case.once(_unknown_labels):
        return MissingPods(index=case.index, unknown=unknown)
    namespace, applied = workload.namespace, case.once(_is_applied)
    source = PodSource(workload=workload, template=template, namespace=namespace, own=own, applied=applied)
    return _PODS[placement](source, replicas, subject.context.with_index(case.index))


def _own_pods(case: TemplateUnderRule) -> Selector | None:
    """Return the selector of the workload's pods. None if unknown.

    For a kind without a selector, the pod labels are the selector. It is None if existing pods already match these
    labels.
    """
    workload, labels = case.subject.workload, case.placed[0].template.pod.labels
    own = case.subject.own_selector
    # A Job gets its selector when it is created.
    if own is None and workload.group_kind == JOB and workload.meta.name:
        return selector_from_labels({JOB_NAME: workload.meta.name})
    if own is not None or workload.traits.selects or not labels:
        return own
    alike, namespace = selector_from_labels(labels), workload.namespace
    return None if case.index.pods.count(namespace, alike, terminating=True) else alike


def _is_applied(case: TemplateUnderRule) -> bool:
    of, template = case.subject.workload, case.placed[0].template.pod
    return has_same_template(of, template, of.namespace, case.index)


def _unknown_labels(case: TemplateUnderRule) -> str:
    """Return why labels selected by the constraints are unknown.

    Empty if the labels are known. The reason is a label added later by the controller, or ReplicaSets missing from the
    index.
    """
    workload, template = case.subject.workload, case.placed[0].template
    asked = {key for each in case.placed for key in selected_by(each.constraint)}
    unknown = asked - labels_at_creation(workload, template.pod).keys()
    if any(may_be_created_with(workload, key) for key in unknown):
        return "the constraints select labels that the controller adds later"
    # The next pod may belong to the running revision, known by its ReplicaSet.
    by_revision = workload.traits.in_replica_sets and workload.traits.revision in asked and case.once(_is_applied)
    return case.index.lacks("replicasets") if by_revision else ""


def suggested(short: Shortfall) -> tuple[str, Remedy]:
    """Return the path for the finding, and the smallest change after which every order places all pods.

    The change is empty if spread is not the cause, or if no change helps.
    """
    case, found = short.case, None
    if short.cause is Cause.SPREAD:
        found = _that_helps(short, case.placed[0].template)
    if found is None:
        return case.placed[0].path, Remedy()
    by_index, words = {each.index: each for each in case.placed}, list[str]()
    soft = {each.index for each in found if each.softens}
    for each in found:
        short_name = by_index[each.index].short_name
        name = f"{short_name} " * (len(case.placed) > 1)
        if each.softens:
            words.append(f"{short_name} ScheduleAnyway")
        elif each.index not in soft:
            words.append(f"no {name}{each.field}" if each.value is None else name + one_field(each.field, each.value))
    field = found[0].field or WHEN_UNSATISFIABLE
    return f"{by_index[found[0].index].path}.{field}", Remedy(field, " and ".join(words), fix_of(case, found))


def _that_helps(short: Shortfall, template: Template) -> Changes | None:
    case = short.case
    choices = Candidates(
        constraints=template.pod.pod_spec.constraints,
        domains={
            placed.index: capacity.column.domain_count(capacity.domains.counting)
            for capacity, placed in zip(case.capacities, case.placed, strict=True)
        },
        revision=case.subject.workload.traits.revision or "" if short.placement is Placement.ROLLOUT else "",
        pairs=case.subject.offline,
    )
    most = _MAX_FIXES_TRIED_OFFLINE if case.subject.offline else _MAX_FIXES_TRIED

    def fits(changes: Changes) -> bool:
        return not case.subject.out_of_time and _always_fit(short, template_with(template, changes))

    return next(choices.helpful(limit_trials(most, fits)), None)


def _always_fit(short: Shortfall, template: Template) -> bool:
    case = short.case
    effort = _TRIAL if case.subject.offline else _WAITING
    anew = (Placement.ANEW,) if case.running else ()
    for placement in dict.fromkeys((Placement.MISSING, short.placement, *anew)):
        missing = _pods_to_place(case, placement, template, short.replicas)
        if missing.batches and not always_fits(missing.game(), effort):
            return False
    return True


def in_the_way(short: Shortfall) -> str:
    """Describe why no further pod fits: ``tainted zone c stays at 0``."""
    if short.cause is Cause.CAPACITY:
        return "no node admits another of these pods"
    case = short.case
    here = candidate_nodes(case.facts, present=True)
    capacities = zip(constraint_capacities(case.facts.hard, here, case.facts.problem), case.placed, strict=True)
    caps = (each for each in capacities if each[0].most is not None and each[0].most <= short.fewest)
    names = " and ".join(each.short_name for each in case.placed)
    more = "" if short.cause is Cause.SPREAD else " and other limits"
    obstacles = (_holding_down(case, here, capacity, placed) for capacity, placed in caps)
    return next(filter(None, obstacles), f"no node accepts another pod under {names}{more}")


def _holding_down(case: TemplateUnderRule, here: CandidateNodes, capacity: ConstraintCapacity, placed: Placed) -> str:
    """Describe the domains that prevent more pods under a constraint.

    Empty without such domains. The cause is a domain with the fewest pods and no usable node. It can also be a lack of
    eligible domains.
    """
    if not capacity.limit.enough and (placed.constraint.min_domains or 1) == 1:
        return f"{placed.name} has no eligible {placed.noun}, because no eligible node has its topologyKey"
    if not capacity.limit.enough:
        return f"{placed.name} has fewer {placed.noun}s than minDomains {placed.constraint.min_domains}"
    held = [each for each in capacity.closed if capacity.count(each) == capacity.minimum]
    barred = here.barred & capacity.domains.counting & capacity.column.nodes_of(tuple(held))
    tainted = barred & ~case.facts.problem.nodes.unschedulable
    return staying(case, capacity, held, "tainted" if tainted else "cordoned" if barred else "") if held else ""


def steps(short: Shortfall) -> str:
    """Describe the shortest known order that leaves pods without a node.

    Node names appear only if the policy allows them in messages.
    """
    witness = short.found.witness
    if not witness:
        return ""
    if not short.case.subject.policy.messages.name_domains(HOSTNAME):
        return f"; one such order gets stuck after {plural(len(witness), 'step')}"
    named = [f"{each.node}{' (pod deleted)' * each.gone}" for each in witness[:_MAX_STEPS]]
    more = f", and {len(witness) - _MAX_STEPS} more" if len(witness) > _MAX_STEPS else ""
    return f"; one such order places pods on {', '.join(named)}{more}"


_MAX_STEPS = 12  # The most placements named in the detail of a finding, to keep it readable.
