"""Why no node admits a pod: the same filters run again with one thing changed.

A review needs only the brief form; names of nodes, taints and other pods are for people who ask.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, SpreadConstraint
from webhook.core.changes.candidates import Narrowing, PodFix, changed, meant_on, pod_fixes
from webhook.core.changes.change import in_words
from webhook.core.explain.counted_pods import CountedPods, counted_pods
from webhook.core.explain.obstacles import CAPACITY_FILTERS, FILTER_WORDS, Obstacle, grouped, obstacles
from webhook.core.explain.reliefs import Relief, Way, reliefs, ways, without_limits
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.scheduler.cycle import Cycle, decide
from webhook.core.scheduler.plugins import pod_topology_spread
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT
from webhook.core.scheduler.plugins.pod_topology_spread import CountedConstraints, DomainCounts, count_domains
from webhook.core.scheduler.plugins.status import Status
from webhook.core.scheduler.problem import Problem, not_evaluated, take
from webhook.core.scheduler.verdict import Cause, Verdict
from webhook.core.text import constraint_name, segment_of


def _why(problem: Problem, verdict: Verdict) -> tuple[Cause | None, int]:
    """The cause, and the nodes that would admit the pod without it. The cause is None if a node admits the pod.

    SPREAD if some node admits it without its hard constraints; else CAPACITY if one does without regard to resources,
    host ports and volume limits; else OTHER.
    """
    if verdict.feasible:
        return None, verdict.feasible
    # A node that only one filter rejects is counted for that filter, so a filter that rejects none is no cause alone.
    rejecting = {status.plugin for status, members in verdict.failed if members}
    spread_alone = (
        decide(without_spread(problem)).feasible if pod_topology_spread.POD_TOPOLOGY_SPREAD in rejecting else 0
    )
    if spread_alone:
        return Cause.SPREAD, spread_alone
    # Spread comes first: its cure is in the workload's own hands, and costs nothing.
    capacity_alone = decide(without_limits(problem)).feasible if CAPACITY_FILTERS & rejecting else 0
    return (Cause.CAPACITY if capacity_alone else Cause.OTHER), capacity_alone


def without_spread(problem: Problem) -> Problem:
    """The same problem for the pod without its hard constraints; soft ones never reject a node."""
    return changed(problem, lambda each: replace(each, hard=CountedConstraints()))


class Balance(Struct, frozen=True):
    """One constraint of a pod with its domains; a soft one has those that it would have if it were hard.

    ``index`` is its index in the pod, None for a default of the cluster. ``meant`` is a label key of nodes that was
    probably meant, if no node has the constraint's.
    """

    index: int | None
    written: SpreadConstraint
    domains: DomainCounts
    meant: str | None = None
    counted: CountedPods | None = None

    @property
    def name(self) -> str:
        """Its name in messages: ``zone[0]``."""
        return constraint_name(self.domains.constraint.topology_key, self.index)

    @property
    def hard(self) -> bool:
        """Whether it filters nodes."""
        return self.written.hard

    @property
    def too_few(self) -> bool:
        """Whether the minimum is 0 because there are fewer eligible domains than minDomains."""
        domains = self.domains
        return domains.column.domain_count(domains.counting) < domains.constraint.min_domains

    @property
    def lowest(self) -> tuple[str, ...]:
        """The eligible domains with the fewest matching pods, which hold the global minimum, sorted."""
        counts = self.domains.counts
        fewest = min(counts.values(), default=0)
        return tuple(sorted(value for value, pods in counts.items() if pods == fewest))


class Explanation(Struct, frozen=True):
    """The verdict on one pod, with its reasons and what would help.

    Args:
        cause: None if a node admits the pod.
        otherwise: The nodes that would admit it without the cause; for OTHER, without spread constraints and limits.
        fixes: For SPREAD.
        ways: For OTHER.
        obstacles: Everything that keeps the pod off nodes, by name.
        not_evaluated: Keys of `scheduler.problem.NOT_EVALUATED`.
    """

    problem: Problem
    verdict: Verdict
    cause: Cause | None
    otherwise: int
    balances: tuple[Balance, ...]
    fixes: tuple[PodFix, ...]
    reliefs: tuple[Relief, ...]
    not_evaluated: tuple[str, ...]
    ways: tuple[Way, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()

    @property
    def blocking(self) -> Balance | None:
        """The constraint to blame: that of the smallest fix, else the first hard one; None for other causes."""
        if self.cause is not Cause.SPREAD:
            return None
        index = self.fixes[0].changes[0].index if self.fixes else None
        hard = [balance for balance in self.balances if balance.hard]
        return next((balance for balance in hard if index in (None, balance.index)), None)

    def in_words(self, fix: PodFix) -> str:
        """A fix in words: ``set maxSkew: 2``."""
        return in_words(fix.changes, self.problem.pod.pod_spec.constraints)


def explain_pod(
    problem: Problem, index: ReadOnlyIndex | None = None, *, brief: bool = False, well_known: bool = False
) -> Explanation:
    """The verdict on one pod, and why. ``balances`` leaves out constraints with invalid selectors.

    Args:
        problem: What its scheduler faces.
        index: Where the problem is from. Without it, nothing is said about other pods.
        brief: Only the smallest fix, and neither reliefs nor names.
        well_known: Use only those label keys of nodes in fixes that every cluster may have.
    """
    cycle = Cycle(problem)
    verdict = cycle.verdict()
    why, otherwise = _why(problem, verdict)
    balances = tuple(balances_of(cycle))
    if brief:
        # Fixes are tried one by one as they are taken, so a review pays for the first alone.
        smallest = islice(pod_fixes(problem, well_known=well_known), 1) if why is Cause.SPREAD else ()
        left_out = not_evaluated(problem)
        return Explanation(problem, verdict, why, otherwise, balances, tuple(smallest), (), left_out)
    if why is Cause.OTHER:
        # Neither alone is enough: then what both together would open.
        otherwise = decide(without_limits(without_spread(problem))).feasible
    balances = tuple(_with_counted_pods(each, problem, index) for each in balances)
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
        ways=tuple(ways(cycle)) if why is Cause.OTHER else (),
        obstacles=obstacles(cycle, index),
    )


def _with_counted_pods(balance: Balance, problem: Problem, index: ReadOnlyIndex | None) -> Balance:
    """The constraint with the key that was probably meant, and with whose pods it counts."""
    meant = meant_on(balance.domains.constraint.topology_key, problem.nodes)
    who = None if index is None or meant else counted_pods(problem.pod, balance.written, balance.domains, index)
    return replace(balance, meant=meant, counted=who)


def _narrowing(problem: Problem, balances: Sequence[Balance], index: ReadOnlyIndex | None) -> Narrowing | None:
    counting_others = {
        each.index: each.counted
        for each in balances
        if each.hard and each.index is not None and each.counted is not None and each.counted.narrower is not None
    }
    if index is None or not counting_others:
        return None
    return Narrowing(
        selectors={place: who.narrower for place, who in counting_others.items() if who.narrower is not None},
        agreed=frozenset(place for place, who in counting_others.items() if who.agreed),
        take=lambda pod: take(index, pod, profile=problem.profile),
    )


def balances_of(cycle: Cycle, *, soft_defaults: bool = False) -> Iterator[Balance]:
    """The pod's own constraints in their order; if it has none, the cluster's defaults, soft ones only on demand."""
    problem = cycle.problem
    declared = problem.pod.pod_spec.constraints
    hard = iter(cycle.domains)
    if not declared and not soft_defaults:
        yield from (Balance(None, _written(each, DO_NOT_SCHEDULE), each) for each in hard)
        return
    # Soft constraints reject nothing; their domains are counted as if they did, to be shown beside the hard ones.
    soft = iter(count_domains(problem.soft, problem.pod.labels, cycle.eligible))
    counted = {DO_NOT_SCHEDULE: hard, SCHEDULE_ANYWAY: soft}
    if not declared:
        yield from (Balance(None, _written(each, action), each) for action, all_ in counted.items() for each in all_)
        return
    for index, written in enumerate(declared):
        domains = next(counted.get(written.when_unsatisfiable or "", iter(())), None)
        if domains is not None:
            yield Balance(index, written, domains)


def _written(domains: DomainCounts, action: str) -> SpreadConstraint:
    parsed = domains.constraint
    return SpreadConstraint(max_skew=parsed.max_skew, topology_key=parsed.topology_key, when_unsatisfiable=action)


def rejections(verdict: Verdict, nodes: int) -> Mapping[Status, int]:
    """How many of these nodes each status rejects, by the first filter that fails; the most frequent first."""
    counts: dict[Status, int] = {}
    for status, members in verdict.failed:
        if members & nodes:
            counts[status] = counts.get(status, 0) + (members & nodes).bit_count()
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0].plugin, entry[0].reasons)))


def standstill(
    balance: Balance, verdict: Verdict, *, names: bool = True, reasons: bool = True, every: Sequence[Obstacle] = ()
) -> str:
    """Why the global minimum of a hard constraint does not rise: ``zone c (1 node, cordoned) stays at 0``.

    ``names`` and ``reasons`` can be left out. With obstacles (``every``), the reasons are their texts.
    """
    column, segment = balance.domains.column, segment_of(balance.domains.constraint.topology_key)
    domains = column.domain_count(balance.domains.counting)
    if not domains:
        return f"no node {'that counts ' if column.present else ''}has the label {segment}"
    if balance.too_few:
        there = f"{domains} {segment}{'' if domains == 1 else 's'}"
        return f"{there}, fewer than minDomains {balance.domains.constraint.min_domains}: the minimum is 0"
    lowest = balance.lowest
    nodes = column.nodes_of([column.numbers[value] for value in lowest])
    why = f"{nodes.bit_count():,} node{'' if nodes.bit_count() == 1 else 's'}"
    out = _told(verdict, nodes, every) if reasons else []
    if len(out) == 1 and out[0][0]:
        why = f"{why}, {out[0][0]}"
    elif len(out) > 1:
        why = ", ".join(f"{count} {text}" for text, count in out)
    who, stays = f"{len(lowest)} {segment}s", "stay"
    if len(lowest) == 1:
        who, stays = f"{segment} {lowest[0]}" if names else f"1 {segment}", "stays"
    return f"{who} ({why}) {stays} at {balance.domains.global_minimum}"


def _told(verdict: Verdict, nodes: int, every: Sequence[Obstacle]) -> list[tuple[str, int]]:
    if every:
        return [(out_text(texts), part.bit_count()) for texts, part in grouped(every, nodes & ~verdict.feasible)]
    return [(_in_short(status, within=True), count) for status, count in rejections(verdict, nodes).items()]


def out_text(texts: Sequence[str]) -> str:
    """Why a node is closed to the pod: ``tainted a:NoSchedule and short of cpu``."""
    return " and ".join(texts) or "kept for a pod that preemption made room for"


def _in_short(status: Status, *, within: bool) -> str:
    """A status in a word or two; ``within`` says that the constraint in question admits the domain."""
    if status.reasons == pod_topology_spread.MISSING_LABEL.reasons:
        return "without another key"
    if within and status.plugin == pod_topology_spread.POD_TOPOLOGY_SPREAD:
        return "over another limit"
    if status.plugin == NODE_RESOURCES_FIT:
        words = ", ".join(status.reasons).replace("Too many pods", "full of pods")
        return words.replace("Insufficient ", "short of ", 1).replace("Insufficient ", "")
    return FILTER_WORDS[status.plugin].closed
