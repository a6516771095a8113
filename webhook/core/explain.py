"""Why no node admits a pod, found by asking the same filters again with one thing changed.

Problem -> Explanation    every constraint's domains, who holds the minimum, the cause, and what helps
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from webhook.core import fit, spread
from webhook.core.affinity import NAME as INTER_POD_AFFINITY
from webhook.core.fixes import Change, Fix, changed, fixes
from webhook.core.model import DO_NOT_SCHEDULE, HONOR, SCHEDULE_ANYWAY, SpreadConstraint, Toleration
from webhook.core.spread import Counted, Domains, count_domains
from webhook.core.status import UNRESOLVABLE, Status
from webhook.core.verdict import Cycle, Problem, Verdict, decide, not_evaluated
from webhook.core.volume_limits import NODE_VOLUME_LIMITS

# What a node runs out of: a larger, emptier or further node of the same kind would have it.
CAPACITY_FILTERS = frozenset({fit.NODE_PORTS, fit.NODE_RESOURCES_FIT, NODE_VOLUME_LIMITS})
_ANY_CORDON = Toleration(key="node.kubernetes.io/unschedulable", operator="Exists")


class Cause(StrEnum):
    """What is in the way of a pod that no node admits."""

    SPREAD = "spread"
    CAPACITY = "capacity"
    OTHER = "other"


def cause(problem: Problem, verdict: Verdict) -> Cause | None:
    """What is in the way; None where a node admits the pod.

    Shape: spread where some node admits the pod without its hard constraints; capacity where one does if resources,
    host ports and volume limits are not asked for; other where neither alone is enough.
    """
    return _why(problem, verdict)[0]


def _why(problem: Problem, verdict: Verdict) -> tuple[Cause | None, int]:
    """The cause, and the nodes that would admit the pod without it."""
    if verdict.feasible:
        return None, verdict.feasible
    # A node that only one filter keeps away names that filter.
    asked = {status.plugin for status, members in verdict.failed if members}
    spread_alone = decide(without_spread(problem)).feasible if spread.NAME in asked else 0
    if spread_alone:
        return Cause.SPREAD, spread_alone
    capacity_alone = decide(without_limits(problem)).feasible if CAPACITY_FILTERS & asked else 0
    return (Cause.CAPACITY if capacity_alone else Cause.OTHER), capacity_alone


def without_spread(problem: Problem) -> Problem:
    """The same problem for the pod without its hard constraints; its soft ones never keep a node away."""
    return changed(problem, lambda each: replace(each, hard=Counted()))


def without_limits(problem: Problem) -> Problem:
    """The same problem on nodes that run out of nothing."""
    kept = tuple(plugin for plugin in problem.filters if plugin not in CAPACITY_FILTERS)
    return changed(problem, lambda each: replace(each, filters=kept))


class Balance(Struct, frozen=True):
    """One constraint as it stands for a pod.

    Shape: ``index`` is its place in the pod, None for one of the cluster's defaults. Of a soft constraint, ``domains``
    are what it would be if it were hard.
    """

    index: int | None
    written: SpreadConstraint
    domains: Domains

    @property
    def name(self) -> str:
        """How messages call it: ``zone[0]``."""
        segment = self.domains.constraint.topology_key.rpartition("/")[2] or "constraint"
        return segment if self.index is None else f"{segment}[{self.index}]"

    @property
    def hard(self) -> bool:
        """Whether it keeps nodes away."""
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


class Relief(Struct, frozen=True):
    """A change of the cluster that helps: what is needed, and the nodes where it would be enough.

    Shape: ``size`` are nodes that have less than the pod asks for even when they are empty.
    """

    what: Literal["room", "size", "uncordon"]
    nodes: int


class Explanation(Struct, frozen=True):
    """Everything there is to say of one pod.

    Shape: ``cause`` is None where a node admits the pod; ``otherwise`` are the nodes that would admit it without what
    the cause names, and with the cause other without both spread and limits. ``fixes`` are for the cause spread.
    ``not_evaluated`` are keys of ``verdict.NOT_EVALUATED``.
    """

    problem: Problem
    verdict: Verdict
    cause: Cause | None
    otherwise: int
    balances: tuple[Balance, ...]
    fixes: tuple[Fix, ...]
    reliefs: tuple[Relief, ...]
    not_evaluated: tuple[str, ...]

    @property
    def blocking(self) -> Balance | None:
        """The constraint in the way: that of the smallest fix, else the first hard one; None for another cause."""
        if self.cause is not Cause.SPREAD:
            return None
        index = self.fixes[0].changes[0].index if self.fixes else None
        hard = [balance for balance in self.balances if balance.hard]
        return next((balance for balance in hard if index in (None, balance.index)), None)


def explain(problem: Problem, *, brief: bool = False) -> Explanation:
    """The verdict on one pod, and why; in ``brief`` with the smallest fix alone, and without reliefs.

    Errors: none; constraints whose selectors cannot be read are left out of ``balances``.
    """
    cycle = Cycle(problem)
    verdict = cycle.verdict()
    why, otherwise = _why(problem, verdict)
    if why is Cause.OTHER and not brief:
        otherwise = decide(without_limits(without_spread(problem))).feasible
    return Explanation(
        problem=problem,
        verdict=verdict,
        cause=why,
        otherwise=otherwise,
        balances=tuple(_balances(cycle)),
        fixes=tuple(islice(fixes(problem), 1 if brief else None)) if why is Cause.SPREAD else (),
        reliefs=() if why is None or brief else tuple(_reliefs(problem, verdict)),
        not_evaluated=not_evaluated(problem.pod, problem.profile),
    )


def too_small(verdict: Verdict) -> int:
    """The nodes that have less than the pod asks for even when they are empty.

    Source: noderesources/fit.go, InsufficientResource.Unresolvable.
    """
    found = 0
    for status, members in verdict.failed:
        found |= members if status.plugin == fit.NODE_RESOURCES_FIT and status.code == UNRESOLVABLE else 0
    return found


def _reliefs(problem: Problem, verdict: Verdict) -> Iterator[Relief]:
    roomy, small = decide(without_limits(problem)).feasible, too_small(verdict)
    if roomy & ~small:
        yield Relief("room", roomy & ~small)
    if roomy & small:
        yield Relief("size", roomy & small)
    # A node that may be used is to this pod what a cordon that it tolerates is.
    spec = problem.pod.pod_spec
    tolerant = replace(problem.pod, spec=replace(spec, tolerations=(*(spec.tolerations or ()), _ANY_CORDON)))
    cordoned = problem.nodes.unschedulable
    honored = any(each.node_taints_policy == HONOR for each in problem.hard.constraints)
    if cordoned and (not honored or cordoned.bit_count() == 1):
        open_ = decide(changed(problem, lambda each: replace(each, pod=tolerant))).feasible & cordoned
        if open_:
            yield Relief("uncordon", open_)


def _balances(cycle: Cycle) -> Iterator[Balance]:
    """The pod's own constraints in their order; without any, those of the cluster's defaults that are hard."""
    problem = cycle.problem
    declared = problem.pod.pod_spec.constraints
    hard = iter(cycle.domains)
    if not declared:
        yield from (Balance(None, _written(each), each) for each in hard)
        return
    soft = iter(count_domains(problem.soft, problem.pod.labels, cycle.eligible))
    counted = {DO_NOT_SCHEDULE: hard, SCHEDULE_ANYWAY: soft}
    for index, written in enumerate(declared):
        found = next(counted.get(written.when_unsatisfiable or "", iter(())), None)
        if found is not None:
            yield Balance(index, written, found)


def _written(domains: Domains) -> SpreadConstraint:
    parsed = domains.constraint
    return SpreadConstraint(
        max_skew=parsed.max_skew, topology_key=parsed.topology_key, when_unsatisfiable=DO_NOT_SCHEDULE
    )


def rejections(verdict: Verdict, nodes: int) -> Mapping[Status, int]:
    """What keeps a pod away from these nodes: the first filter that fails, and how many of the nodes it rejects.

    Shape: nodes that admit the pod are left out; the most frequent comes first.
    """
    found: dict[Status, int] = {}
    for status, members in verdict.failed:
        if members & nodes:
            found[status] = found.get(status, 0) + (members & nodes).bit_count()
    return dict(sorted(found.items(), key=lambda entry: (-entry[1], entry[0].plugin, entry[0].reasons)))


def standstill(balance: Balance, verdict: Verdict, *, names: bool = True, reasons: bool = True) -> str:
    """What a hard constraint waits for: ``zone c (1 node, cordoned) stays at 0``.

    Shape: values of labels are as long as they are; without ``names`` there are none.
    """
    column, segment = balance.domains.column, balance.domains.constraint.topology_key.rpartition("/")[2]
    domains = column.domain_count(balance.domains.counting)
    if not domains:
        return f"no node that counts has {segment}"
    if balance.too_few:
        there = f"{domains} {segment}{'' if domains == 1 else 's'}"
        return f"{there}, minDomains {balance.domains.constraint.min_domains}: the minimum is 0"
    lowest = balance.lowest
    nodes = column.nodes_of([column.numbers[value] for value in lowest])
    why = f"{nodes.bit_count()} node{'' if nodes.bit_count() == 1 else 's'}"
    found = rejections(verdict, nodes)
    if reasons and len(found) == 1:
        why = f"{why}, {in_short(next(iter(found)), within=True)}"
    elif reasons:
        why = ", ".join(f"{count} {in_short(status, within=True)}" for status, count in found.items())
    who, stays = f"{len(lowest)} {segment}s", "stay"
    if len(lowest) == 1:
        who, stays = f"{segment} {lowest[0]}" if names else f"1 {segment}", "stays"
    return f"{who} ({why}) {stays} at {balance.domains.global_minimum}"


_WORDS: Mapping[str, str] = {
    fit.NODE_NAME: "of another name",
    fit.NODE_UNSCHEDULABLE: "cordoned",
    fit.TAINT_TOLERATION: "tainted",
    fit.NODE_AFFINITY: "not selected",
    fit.NODE_PORTS: "with the port taken",
    spread.NAME: "over the limit",
    INTER_POD_AFFINITY: "by pod affinity",
}


def in_short(status: Status, *, within: bool) -> str:
    """Why a node of a domain is out in a word or two, for messages that have no room for the scheduler's sentence.

    Shape: it has the key of the constraint whose domain it is; ``within`` says that this constraint admits the domain.
    """
    if status.reasons == spread.MISSING_LABEL.reasons:
        return "without another key"
    if within and status.plugin == spread.NAME:
        return "over another limit"
    if status.plugin == fit.NODE_RESOURCES_FIT:
        words = ", ".join(status.reasons).replace("Too many pods", "full of pods")
        return words.replace("Insufficient ", "short of ", 1).replace("Insufficient ", "")
    return _WORDS.get(status.plugin, "by its volumes")


def fix_text(fix: Fix, balances: Sequence[Balance]) -> str:
    """A fix as people say it: ``zone[0] maxSkew: 2``; without the name where no other constraint is hard."""
    names = {balance.index: balance.name for balance in balances if balance.hard}
    return ", ".join(_change_text(each, names.get(each.index, f"[{each.index}]"), len(names)) for each in fix.changes)


def _change_text(change: Change, name: str, hard: int) -> str:
    if not change.field:
        return f"without {name}"
    prefix = f"{name} " if hard > 1 else ""
    return f"{prefix}no {change.field}" if change.value is None else f"{prefix}{change.field}: {change.value}"
