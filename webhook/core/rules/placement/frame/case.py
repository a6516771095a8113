"""The input of placement rules: a pod template, hard constraints and nodes.

All placement rules share the selected templates and the number of pods. If nodes can be added to the cluster, findings
of these rules have at most mode audit. The rules read the cluster only once for each template.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from webhook.core.api.types import IGNORE, SpreadConstraint
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.api.written_selector import selected_keys
from webhook.core.budget import Reason
from webhook.core.cached_property import Computing, cached_property
from webhook.core.index import node_sets
from webhook.core.index.lost_nodes import terminated
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.proofs.constraint_capacity import (
    ConstraintCapacity,
    addable_together,
    constraint_capacities,
)
from webhook.core.placement.proofs.every_order import StartState, fits, start_states
from webhook.core.placement.proofs.pinned_claims import (
    Ordinals,
    PodsToPlace,
    TemplateVolumes,
    attachable_pods,
    ordinals,
    template_volumes,
)
from webhook.core.placement.proofs.workload_problem import (
    CandidateNodes,
    CountedConstraint,
    WorkloadProblem,
    candidate_nodes,
    take_workload_problem,
)
from webhook.core.policy.capacity import can_add_nodes
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.rule import (
    NO_REPLICAS,
    Finding,
    Need,
    NotEvaluated,
    Reevaluated,
    Rule,
    RuleAnswer,
    guarded,
)
from webhook.core.rules.frame.subject import Placed, Subject, noun_of
from webhook.core.scheduler.problem import Problem
from webhook.core.scheduler.profile import DEFAULT_SCHEDULER
from webhook.core.text import agree, plural, quoted
from webhook.core.workloads.controller_labels import may_be_added
from webhook.core.workloads.kinds import JOB, REVISION_LABELS
from webhook.core.workloads.workload import Template, Workload


class TemplateUnderRule(Computing, frozen=True, kw_only=True):
    """A pod template in the cluster.

    Attributes:
        subject: The object.
        index: The cluster.
        placed: Its hard constraints, in the order of ``facts.hard``.
        facts: The facts of the cluster about its pods and their nodes.
        candidates: The nodes for its pods.
        capacities: The capacity under each hard constraint.
        wanted: The replicas.
        most: The autoscaler's maximum. The replicas without an autoscaler.
        grows: Whether nodes may be added.
        has_claims: Whether each pod has volumes of its own.
        ordinals: The pods with volumes of their own. None also if they are too many.
    """

    subject: Subject
    index: ReadOnlyIndex
    placed: tuple[Placed, ...]
    facts: WorkloadProblem
    candidates: CandidateNodes
    capacities: tuple[ConstraintCapacity, ...]
    wanted: int
    most: int
    grows: bool
    has_claims: bool = False
    ordinals: Ordinals | None = None

    @cached_property
    def _starts(self) -> tuple[StartState, ...]:
        return tuple(start_states(self.facts, self.candidates, self.capacities))

    @cached_property
    def _volumes(self) -> TemplateVolumes:
        return template_volumes(self.facts.problem, self.index)

    @cached_property
    def _attachable(self) -> Mapping[int, int]:
        """How many pods fit below the attach limits of a node, by slot. Nodes with enough may be missing."""
        return attachable_pods(Counter(self._volumes.drivers), self.facts.most, self.index)

    @cached_property
    def running(self) -> int:
        """The number of the workload's pods with a node."""
        return sum(self.facts.running.values())

    def fits(self, hard: Sequence[CountedConstraint], replicas: int, *, lost: int = 0) -> bool:
        """Whether every order places the missing pods, and all pods if all were deleted. False without a proof.

        Args:
            hard: The hard constraints.
            replicas: The number of pods.
            lost: Lost nodes. Their pods are gone too.
        """
        return all(self._fits(start, hard, replicas, lost) for start in self._starts)

    def has_room(self, replicas: int, *, lost: int = 0) -> bool:
        """Whether, without any hard constraint, every order would place this many pods next to the running pods."""
        return self._fits(self._starts[0], (), replicas, lost, likely=True)

    def fits_today(self) -> bool:
        """Whether every order places all replicas next to the running pods."""
        # The first start is the cluster as it is.
        others = [start for start in self._starts[1:] if not start.anew]
        return self._wanted_fit and all(self._fits(start, self.facts.hard, self.wanted, 0) for start in others)

    def fits_now(self, replicas: int) -> bool:
        """Whether every order places this many pods next to the running pods."""
        return self._wanted_fit if replicas == self.wanted else self._fit_now(replicas)

    @cached_property
    def _wanted_fit(self) -> bool:
        return self._fit_now(self.wanted)

    def _fit_now(self, replicas: int) -> bool:
        return self._fits(self._starts[0], self.facts.hard, replicas, 0)

    def _fits(
        self, start: StartState, hard: Sequence[CountedConstraint], replicas: int, lost: int, *, likely: bool = False
    ) -> bool:
        if self.has_claims:
            return self._fits_in_turn(start, hard, replicas, likely=likely)
        # Running pods stay, and only the others need a node.
        staying = 0 if start.anew else self.running
        if lost and staying:
            is_lost = node_sets.flags(lost, self.facts.problem.nodes.size)
            staying = sum(pods for slot, pods in self.facts.running.items() if not is_lost[slot])
        added = max(0, replicas - staying)
        if not self._volumes.are_certain(added):
            return False
        return fits(start, hard, PodsToPlace({}, added), lost=lost, limits=self._attachable)

    def _fits_in_turn(
        self, start: StartState, hard: Sequence[CountedConstraint], replicas: int, *, likely: bool
    ) -> bool:
        """Whether the pods of a StatefulSet fit, each created after the pods before it.

        Args:
            start: The cluster before the first pod.
            hard: The hard constraints.
            replicas: The number of pods.
            likely: Whether likely ordinals of the existing pods are enough. If not, False for uncertain ordinals.
        """
        known = self.ordinals
        if known is None or not (known.are_likely(replicas) if likely else known.are_certain(replicas)):
            return False
        return all(
            fits(start, hard, known.to_place(number, anew=start.anew), limits=known.limits)
            for number in range(1, replicas + 1)
        )

    def ceilings(self) -> Iterator[tuple[ConstraintCapacity, tuple[Placed, Placed], int]]:
        """Yield each pair of a zone and a hostname constraint that together admit fewer pods than each alone.

        Each item has the zone constraint's capacity, the two constraints, and the most pods under both.
        """
        for zones, zone in self.subject.while_time_is_left(zip(self.capacities, self.placed, strict=True)):
            for hosts, host in zip(self.capacities, self.placed, strict=True):
                if hosts.column.key != HOSTNAME or zones.column.key != ZONE:
                    continue
                placed = max(zones.placed, hosts.placed)
                added = addable_together(zones, hosts, self.most - placed)
                if added is None or not all(each.addable is None or each.addable > added for each in (zones, hosts)):
                    continue
                # Else something besides constraints is the tighter limit, and is to blame.
                if self.has_room(placed + added + 1):
                    yield zones, (zone, host), placed + added

    def with_hard(self, kept: Sequence[CountedConstraint]) -> "TemplateUnderRule":
        """Return the same template with other hard constraints.

        Args:
            kept: Hard constraints of this template, unchanged or changed.
        """
        hard = tuple(replace(each, index=index) for index, each in enumerate(kept))
        return replace(
            self,
            placed=tuple(self.placed[each.index] for each in kept),
            facts=replace(self.facts, hard=hard),
            capacities=constraint_capacities(hard, self.candidates, self.facts.problem),
        )

    @property
    def at_most(self) -> Mode:
        """The strictest allowed mode of the rule's findings: AUDIT or DENY.

        AUDIT if nodes can be added, because the pods may fit later.
        """
        return Mode.AUDIT if self.grows else Mode.DENY

    def fit(self, admitted: int) -> str:
        """Return the start of a message: the number of fitting pods, such as ``at most 3 of 5 fit``."""
        said = (
            f"at most {admitted} of {self.wanted} fit"
            if admitted < self.wanted
            else f"at most {plural(admitted, 'pod')} fit"
        )
        return f"{said}{self.run}"

    @property
    def run(self) -> str:
        """The number of running pods, for a message. Empty without running pods."""
        many = self.running
        return f" ({many} {agree(many, 'run')} already)" if many else ""

    @property
    def stay(self) -> str:
        """The end of a message, about the assumption that no running pod moves. Empty without running pods."""
        if not self.running:
            return ""
        return f"; this assumes that the {plural(self.running, 'running pod')} {agree(self.running, 'stay')}"

    def targets(self, admitted: int) -> tuple[int, ...]:
        """The numbers of pods for a fix, best first: the autoscaler's maximum, then the replicas."""
        largest = max(self.most, admitted + 1)
        return (largest, self.wanted) if admitted < self.wanted < largest else (largest,)


# Rules also test a few more pods. Beyond this many on a node, assume no room.
_MORE_ON_A_NODE = 16
POD_GROUP = Reason("pods of a PodGroup (schedulingGroup), which are scheduled all together or not at all")
_IGNORES = frozenset({None, IGNORE})


def counts_tainted_nodes(_subject: Subject, hard: Sequence[Placed]) -> bool:
    """Whether a hard constraint counts nodes with untolerated taints."""
    return not _IGNORES.isdisjoint([each.constraint.node_taints_policy for each in hard])


def _is_replicated(workload: Workload, *, jobs: bool = False) -> bool:
    """Whether the object runs several equal pods at the same time. With ``jobs``, Jobs count too."""
    several = workload.traits.replicated or (jobs and workload.group_kind == JOB)
    return several and workload.replicas not in NO_REPLICAS and not workload.suspended


def templates_under_rule(subject: Subject, index: ReadOnlyIndex) -> Iterator[TemplateUnderRule]:
    """Yield the templates with a hard constraint."""
    own = subject.own_selector if subject.workload.traits.ordered else None
    if own is not None:
        index = terminated(index, subject.workload.namespace, own)
    for template in subject.workload.templates:
        placed = tuple(each for each in subject.placed if each.template is template and each.constraint.hard)
        wanted = _wanted(template, subject.workload, index)
        if not placed or wanted is None or not all(map(_is_valid, placed)):
            continue
        most = max(wanted, _scaled_to(subject.workload, index))
        facts = _facts(template, placed, most, subject, index)
        if facts is None:
            continue
        here = candidate_nodes(facts)
        yield TemplateUnderRule(
            subject=subject,
            index=index,
            placed=placed,
            facts=facts,
            candidates=here,
            capacities=constraint_capacities(facts.hard, here, facts.problem),
            wanted=wanted,
            most=most,
            grows=can_add_nodes(subject.policy, facts.problem.nodes),
            has_claims=subject.workload.claims is not None,
            ordinals=_ordinals(subject.workload, most + 1, facts.problem, index),
        )


def _is_valid(placed: Placed) -> bool:
    constraint = placed.constraint
    return (constraint.max_skew or 0) > 0 and bool(constraint.topology_key)


def _wanted(template: Template, workload: Workload, index: ReadOnlyIndex) -> int | None:
    if template.replicas is not None:
        return template.replicas
    known = index.owners.get(workload.api_version, workload.kind, workload.namespace, workload.meta.name)
    return known.replicas if known is not None and len(workload.templates) == 1 else None


def _ordinals(workload: Workload, most: int, problem: Problem, index: ReadOnlyIndex) -> Ordinals | None:
    if workload.claims is None:
        return None
    name, volumes = workload.meta.name, template_volumes(problem, index)
    return ordinals(index, workload.namespace, name, workload.claims, workload.ordinals(most), volumes=volumes)


def _scaled_to(workload: Workload, index: ReadOnlyIndex) -> int:
    scaler = index.owners.autoscaler(workload.api_version, workload.kind, workload.namespace, workload.meta.name)
    return 0 if scaler is None else scaler.spec.max_replicas


def _facts(
    template: Template, placed: tuple[Placed, ...], most: int, subject: Subject, index: ReadOnlyIndex
) -> WorkloadProblem | None:
    """Return the problem of scheduling the template's pods in this cluster. None if a selector is invalid."""
    workload, labels = subject.workload, template.pod.labels
    keys = {key for each in placed for key in selected_by(each.constraint)}
    # True for a revision label. With such a key, no other workload counts.
    late = {key: key in REVISION_LABELS for key in keys if may_be_added(workload, key, in_template=key in labels)}
    pod = subject.admitted(template, index)
    now = index.taken_at or subject.context.now
    facts = take_workload_problem(index, pod, subject.own_selector, 2 * most + _MORE_ON_A_NODE, now=now, late=late)
    return None if facts.problem.hard.error else facts


def selected_by(constraint: SpreadConstraint) -> Iterator[str]:
    """Yield the label keys that select the counted pods."""
    yield from constraint.match_label_keys or ()
    yield from selected_keys(constraint.selector)


def noun(capacity: ConstraintCapacity, many: int = 1) -> str:
    """The word for domains in messages: zone, nodes, racks."""
    return f"{noun_of(capacity.column.key)}{'' if many == 1 else 's'}"


def staying(case: TemplateUnderRule, capacity: ConstraintCapacity, domains: Collection[int], kind: str = "") -> str:
    """Describe the domains that hold down the global minimum.

    For example ``tainted zone c stays at 0``. The policy decides whether the text may name the domains.
    """
    many, key = len(domains), capacity.column.key
    word = f"{kind} {noun(capacity, many)}".strip()
    minimum = min((capacity.count(number) for number in domains), default=0)
    if many == 1 and case.subject.policy.messages.name_domains(key):
        (number,) = domains
        return f"{word} {quoted(capacity.column.values[number], 40)} stays at {minimum}"
    return f"{many} {word} {agree(many, 'stay')} at {minimum}"


def _unlike_the_scheduler(subject: Subject) -> Reason | None:
    """Return why the scheduler's default filters do not apply to these pods. None if they do."""
    names = {each.pod.pod_spec.scheduler_name or DEFAULT_SCHEDULER for each in subject.workload.templates}
    if not names <= set(subject.policy.scheduler_names):
        return Reason("another scheduler")
    grouped = any(template.pod.pod_spec.scheduling_group for template in subject.workload.templates)
    if grouped or subject.workload.grouped:
        return POD_GROUP
    for profile in subject.policy.scheduler_profiles:
        if profile.name in names and profile.disabled_filters:
            return Reason(f"the scheduler's profile disables {', '.join(profile.disabled_filters)}")
    return None


class PlacementRule(Rule, frozen=True, kw_only=True):
    """A rule about the usable nodes of a template's pods.

    Attributes:
        of_template: Evaluates the rule for a template.
        concerns: Whether the rule applies to an object. Its second argument is the object's hard constraints.
        of_jobs: Whether the rule applies to Jobs too.
        unless_warned: Whether the rule is skipped if another placement rule warns.
    """

    needs: tuple[Need, ...] = (Need.NODES, Need.PODS)
    reevaluated: Reevaluated = Reevaluated.AFTER_RECOUNTS
    of_template: Callable[[TemplateUnderRule], Iterable[RuleAnswer]]
    concerns: Callable[[Subject, Sequence[Placed]], bool]
    of_jobs: bool = False
    unless_warned: bool = False


def evaluate_templates(rules: Sequence[PlacementRule], subject: Subject) -> Iterable[RuleAnswer]:
    """Evaluate the rules for a workload. If facts are missing, the rules are not evaluated."""
    hard = [placed for placed in subject.placed if placed.constraint.hard]
    if not hard or not _is_replicated(subject.workload, jobs=True):
        return ()
    is_job = not _is_replicated(subject.workload)
    asked = [rule for rule in rules if (rule.of_jobs or not is_job) and rule.concerns(subject, hard)]
    missing = subject.lacks("nodes", "pods") or _unlike_the_scheduler(subject)
    if missing is not None:
        return [NotEvaluated(rule.id, missing) for rule in asked]
    return _of_templates(asked, subject, subject.context.cluster) if asked else ()


def _of_templates(asked: list[PlacementRule], subject: Subject, index: ReadOnlyIndex) -> Iterator[RuleAnswer]:
    asked.sort(key=lambda rule: rule.unless_warned)
    for case in subject.while_time_is_left(templates_under_rule(subject, index)):
        yield from _of_template(asked, case)


def _of_template(rules: Sequence[PlacementRule], case: TemplateUnderRule) -> Iterator[RuleAnswer]:
    warned = False
    for rule in rules:
        if not (warned and rule.unless_warned):
            for answer in guarded((rule,), rule.of_template, case):
                warned = warned or (isinstance(answer, Finding) and bool(answer.warns))
                yield answer
