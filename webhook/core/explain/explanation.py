"""Explain why no node admits a pod: run the filters again with a single change.

A review uses the brief form. Names of nodes, taints and other pods are for the command line.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, SpreadConstraint
from webhook.core.changes.candidates import Narrowing, PodFix, intended_node_key, pod_fixes
from webhook.core.changes.change_text import changes_text
from webhook.core.explain.counted_pods import CountedPods, counted_pods
from webhook.core.explain.filter_words import FILTER_WORDS
from webhook.core.explain.obstacles import Obstacle, grouped, obstacles
from webhook.core.explain.reliefs import BlockingParts, Relief, blocking_parts, reliefs
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.scheduler.cycle import Cycle, decide
from webhook.core.scheduler.ephemeral_claims import with_ephemeral_claims
from webhook.core.scheduler.not_evaluated import not_evaluated
from webhook.core.scheduler.plugins import pod_topology_spread
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT
from webhook.core.scheduler.plugins.pod_topology_spread import DomainCounts, count_domains
from webhook.core.scheduler.plugins.status import Status
from webhook.core.scheduler.problem import CAPACITY_FILTERS, Problem, take, without_limits, without_spread
from webhook.core.scheduler.verdict import Cause, Verdict
from webhook.core.text import constraint_name, plural, segment_of


def _cause_of(problem: Problem, verdict: Verdict) -> tuple[Cause | None, int]:
    """Return the cause, and the nodes that admit the pod without this cause. The cause of an admitted pod is None.

    SPREAD if a node admits the pod without hard constraints. Else CAPACITY if a node admits it without limits of
    resources, host ports and volumes. Else OTHER.
    """
    if verdict.feasible:
        return None, verdict.feasible
    # A filter that rejects no node is no cause.
    rejecting = {status.plugin for status, members in verdict.failed if members}
    spread_alone = (
        decide(without_spread(problem)).feasible if pod_topology_spread.POD_TOPOLOGY_SPREAD in rejecting else 0
    )
    if spread_alone:
        return Cause.SPREAD, spread_alone
    # Spread comes first, since its fix costs nothing and is under the workload's control.
    capacity_alone = decide(without_limits(problem)).feasible if CAPACITY_FILTERS & rejecting else 0
    return (Cause.CAPACITY if capacity_alone else Cause.OTHER), capacity_alone


class Balance(Struct, frozen=True):
    """A constraint of a pod, with its domains and their pods. Soft constraints are evaluated as if they were hard.

    Attributes:
        index: The constraint's index in the pod. None for a default of the cluster.
        meant: The label key probably meant, if no node has the constraint's key.
        counted: Whose pods the constraint counts. None if unknown.
    """

    index: int | None
    written: SpreadConstraint
    domains: DomainCounts
    meant: str | None = None
    counted: CountedPods | None = None

    @property
    def name(self) -> str:
        """The constraint's name in messages: ``zone[0]``."""
        return constraint_name(self.domains.constraint.topology_key, self.index)

    @property
    def hard(self) -> bool:
        return self.written.hard

    @property
    def lowest(self) -> tuple[str, ...]:
        """The eligible domains with the fewest matching pods (the global minimum), sorted."""
        counts = self.domains.counts
        fewest = min(counts.values(), default=0)
        return tuple(sorted(value for value, pods in counts.items() if pods == fewest))


class Explanation(Struct, frozen=True):
    """The verdict on a pod, with reasons and helpful changes.

    Attributes:
        problem: The scheduler's input for the pod.
        verdict: The scheduler's verdict.
        cause: The main reason why no node admits the pod. None if a node admits the pod.
        otherwise: The nodes that admit the pod once the cause is removed, as a bit set. For cause OTHER, the nodes that
            admit the pod without spread constraints and resource limits.
        balances: The pod's constraints, with their domains and counted pods.
        fixes: Changes of constraints, the smallest first. Empty unless the cause is SPREAD.
        reliefs: Changes of the cluster or of the pod's tolerations.
        ways: Sets of the pod's requirements to drop. Empty unless the cause is OTHER.
        obstacles: All reasons for rejecting nodes, each with the names of its nodes.
        not_evaluated: Keys of `scheduler.not_evaluated.NOT_EVALUATED`.
    """

    problem: Problem
    verdict: Verdict
    cause: Cause | None
    otherwise: int
    balances: tuple[Balance, ...]
    fixes: tuple[PodFix, ...]
    reliefs: tuple[Relief, ...]
    not_evaluated: tuple[str, ...]
    ways: tuple[BlockingParts, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()

    @property
    def blocking(self) -> Balance | None:
        """The constraint in the smallest fix, else the first hard constraint. None unless the cause is SPREAD."""
        if self.cause is not Cause.SPREAD:
            return None
        index = self.fixes[0].changes[0].index if self.fixes else None
        hard = [balance for balance in self.balances if balance.hard]
        return next((balance for balance in hard if index in (None, balance.index)), None)

    def in_words(self, fix: PodFix) -> str:
        """Return a fix in words: ``set maxSkew: 2``."""
        return changes_text(fix.changes, self.problem.pod.pod_spec.constraints)


def explain_pod(
    problem: Problem, index: ReadOnlyIndex | None = None, *, brief: bool = False, well_known: bool = False
) -> Explanation:
    """Explain the verdict on a pod. Constraints with invalid selectors are left out.

    Args:
        problem: The scheduler's input for the pod.
        index: The cluster. Without it, other pods are not named.
        brief: Return only the smallest fix. Changes of the cluster and names of objects are left out.
        well_known: Use only well-known label keys in fixes, since every cluster may have them.

    Example:
        explanation = explain_pod(take(index, pod), index)
        explanation.cause, [explanation.in_words(fix) for fix in explanation.fixes]
    """
    cycle = Cycle(problem)
    verdict = cycle.verdict()
    why, otherwise = _cause_of(problem, verdict)
    balances = tuple(balances_of(cycle))
    if brief:
        # Fixes are tested lazily, so a review pays only for the first.
        smallest = islice(pod_fixes(problem, well_known=well_known), 1) if why is Cause.SPREAD else ()
        left_out = not_evaluated(problem)
        return Explanation(problem, verdict, why, otherwise, balances, tuple(smallest), (), left_out)
    if why is Cause.OTHER:
        # Neither is enough alone, so drop both.
        otherwise = decide(without_limits(without_spread(problem))).feasible
    balances = tuple(_with_counted_pods(balance, problem, index) for balance in balances)
    return Explanation(
        problem=problem,
        verdict=verdict,
        cause=why,
        otherwise=otherwise,
        balances=balances,
        fixes=tuple(pod_fixes(problem, _narrowing(problem, balances, index), well_known=well_known))
        if why is Cause.SPREAD
        else (),
        reliefs=() if why is None else tuple(reliefs(problem, verdict)),
        not_evaluated=not_evaluated(problem),
        ways=tuple(blocking_parts(cycle)) if why is Cause.OTHER else (),
        obstacles=obstacles(cycle, index),
    )


def _with_counted_pods(balance: Balance, problem: Problem, index: ReadOnlyIndex | None) -> Balance:
    meant = intended_node_key(balance.domains.constraint.topology_key, problem.nodes)
    who = None if index is None or meant else counted_pods(problem.pod, balance.written, balance.domains, index)
    return replace(balance, meant=meant, counted=who)


def _narrowing(problem: Problem, balances: Sequence[Balance], index: ReadOnlyIndex | None) -> Narrowing | None:
    counting_others = {
        balance.index: who
        for balance in balances
        if balance.hard and balance.index is not None and (who := balance.counted) and who.narrower is not None
    }
    if index is None or not counting_others:
        return None
    return Narrowing(
        selectors={place: who.narrower for place, who in counting_others.items() if who.narrower is not None},
        agreed=frozenset(place for place, who in counting_others.items() if who.agreed),
        take=lambda pod: take(with_ephemeral_claims(index, pod), pod, profile=problem.profile),
    )


def balances_of(cycle: Cycle, *, soft_defaults: bool = False) -> Iterator[Balance]:
    """Yield the domains and their pods, for each of the pod's constraints in order.

    For a pod without constraints, use the cluster's default constraints. Soft default constraints are included only
    with ``soft_defaults``.
    """
    problem = cycle.problem
    declared = problem.pod.pod_spec.constraints
    hard = iter(cycle.domains)
    # Soft constraints reject nothing. Their domains are counted as if hard, for display.
    soft = iter(count_domains(problem.soft, problem.pod.labels, cycle.eligible) if declared or soft_defaults else ())
    counted = {DO_NOT_SCHEDULE: hard, SCHEDULE_ANYWAY: soft}
    if not declared:
        yield from (
            Balance(None, _written(domains, action), domains) for action, all_ in counted.items() for domains in all_
        )
        return
    for index, written in enumerate(declared):
        domains = next(counted.get(written.when_unsatisfiable or "", iter(())), None)
        if domains is not None:
            yield Balance(index, written, domains)


def _written(domains: DomainCounts, action: str) -> SpreadConstraint:
    parsed = domains.constraint
    return SpreadConstraint(max_skew=parsed.max_skew, topology_key=parsed.topology_key, when_unsatisfiable=action)


def rejections(verdict: Verdict, nodes: int) -> Mapping[Status, int]:
    """Count the nodes rejected with each status, the most frequent status first. ``nodes`` is a bit set of slots."""
    counts: dict[Status, int] = {}
    for status, members in verdict.failed:
        if members & nodes:
            counts[status] = counts.get(status, 0) + (members & nodes).bit_count()
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0].plugin, entry[0].reasons)))


def why_minimum_stays(
    balance: Balance, verdict: Verdict, *, names: bool = True, reasons: bool = True, every: Sequence[Obstacle] = ()
) -> str:
    """Return why a hard constraint's minimum does not rise: ``zone c (1 node) stays at 0``.

    Without ``names`` the domain is not named, without ``reasons`` no reason is given. The texts of obstacles
    (``every``) replace the scheduler's reasons.
    """
    column, segment = balance.domains.column, segment_of(balance.domains.constraint.topology_key)
    domains = column.domain_count(balance.domains.counting)
    if not domains:
        return f"no {'counted ' if column.present else ''}node has the label {segment}"
    if balance.domains.too_few:
        there = f"{domains} {segment}{'' if domains == 1 else 's'}"
        return f"{there}, fewer than minDomains {balance.domains.constraint.min_domains}: the minimum is 0"
    lowest = balance.lowest
    nodes = column.nodes_of([column.numbers[value] for value in lowest])
    why = plural(nodes.bit_count(), "node")
    out = _reasons(verdict, nodes, every) if reasons else []
    if len(out) == 1 and out[0][0]:
        why = f"{why}, {out[0][0]}"
    elif len(out) > 1:
        why = ", ".join(f"{count} {text}" for text, count in out)
    who, stays = f"{len(lowest)} {segment}s", "stay"
    if len(lowest) == 1:
        who, stays = f"{segment} {lowest[0]}" if names else f"1 {segment}", "stays"
    return f"{who} ({why}) {stays} at {balance.domains.global_minimum}"


def _reasons(verdict: Verdict, nodes: int, every: Sequence[Obstacle]) -> list[tuple[str, int]]:
    if every:
        return [
            (closed_node_text(texts), part.bit_count()) for texts, part in grouped(every, nodes & ~verdict.feasible)
        ]
    return [(_in_short(status), count) for status, count in rejections(verdict, nodes).items()]


def closed_node_text(texts: Sequence[str]) -> str:
    """Return why a node rejects the pod: ``tainted a:NoSchedule and short of cpu``."""
    return " and ".join(texts) or "reserved for a pod after preemption"


def _in_short(status: Status) -> str:
    """Return a filter's status as a short text, for a domain admitted by the constraint."""
    if status.reasons == pod_topology_spread.MISSING_LABEL.reasons:
        return "without another key"
    if status.plugin == NODE_RESOURCES_FIT:
        words = ", ".join(status.reasons).replace("Too many pods", "full of pods")
        return words.replace("Insufficient ", "short of ", 1).replace("Insufficient ", "")
    return FILTER_WORDS[status.plugin].closed
