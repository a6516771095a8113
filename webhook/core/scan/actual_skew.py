"""How uneven the pods of a workload stand now, by each of its constraints; nothing is placed.

    skew = most matching pods in an eligible domain - global minimum

A scheduler compares with maxSkew what its filter makes of one pod more; pods that have their node are these.

Source: kube-scheduler podtopologyspread/filtering.go ``Filter``.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from webhook.core.defaulting.injection import injected_into
from webhook.core.explain.explanation import Balance, balances_of
from webhook.core.index import node_sets
from webhook.core.index.tables.pod_groups import Counts
from webhook.core.scan.next_pods import ScannedTemplate, next_pods
from webhook.core.scan.scanned import ActualSkew, Origin
from webhook.core.scan.surroundings import Surroundings
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.plugins.pod_topology_spread import Constraint, Domains
from webhook.core.scheduler.problem import Problem
from webhook.core.workloads.own_selector import selector_of
from webhook.core.workloads.workload import Workload

# Domains of a constraint that are listed though they have no pods: more are hosts, of each of thousands of workloads.
_MOST_LISTED = 100


class _Skewed(Struct, frozen=True):
    balance: Balance
    counts: Counts


def has_standing_pods(workload: Workload, *, stand_in: bool) -> bool:
    """Whether the workload keeps pods running that can be told from others, so that their skew is of interest.

    Shape: a pod is of interest as a ``stand_in`` for those of a controller that is not known.
    """
    if workload.is_pod:
        return stand_in
    traits, own = workload.traits, selector_of(workload)
    return workload.whole and own is not None and not (traits.on_every_node or traits.completes or workload.suspended)


def workload_skews(workload: Workload, within: Surroundings, *, stand_in: bool) -> Iterator[ActualSkew]:
    """The skew of each constraint of each template's next pod; ``stand_in`` as in `has_standing_pods`."""
    if has_standing_pods(workload, stand_in=stand_in):
        for made in next_pods(workload, within):
            yield from actual_skews(made)


def actual_skews(of: ScannedTemplate) -> Iterator[ActualSkew]:
    """The skew of each constraint of the next pod, in the pod's order; of one without, by the scheduler's defaults."""
    recorded = {each.identity for each in injected_into(of.sent)}
    for each in _skewed(of.problem):
        balance, index = each.balance, each.balance.index
        if index is None:
            origin = Origin.DEFAULT
        elif of.injected or balance.written.identity in recorded:
            origin = Origin.INJECTED
        else:
            origin = Origin.DECLARED
        written = index is not None and not of.injected
        path = f"{of.template.constraints_path}[{index}]" if written else ""
        yield _actual(each, origin, path)


def _skewed(problem: Problem) -> Iterator[_Skewed]:
    """The constraints, with the pods that match each by slot."""
    counts: dict[Constraint, Counts] = {}
    for counted in (problem.hard, problem.soft):
        counts |= zip(counted.constraints, counted.counts, strict=True)
    for balance in balances_of(Cycle(problem), soft_defaults=True):
        yield _Skewed(balance, counts[balance.domains.constraint])


def _actual(of: _Skewed, origin: Origin, path: str) -> ActualSkew:
    balance, domains = of.balance, of.balance.domains
    constraint, eligible = domains.constraint, domains.column.domain_count(domains.counting)
    counts = _listed(domains, eligible)
    return ActualSkew(
        topology_key=constraint.topology_key,
        when_unsatisfiable=balance.written.when_unsatisfiable or "",
        # A Service and a ReplicaSet, from which the scheduler deduces it, may ask for the same.
        selector=",".join(dict.fromkeys(each.text for each in constraint.selector.requirements)),
        max_skew=constraint.max_skew,
        min_domains=balance.written.min_domains,
        domains=counts,
        empty=eligible - len(counts),
        outside=_outside(domains, of.counts),
        global_minimum=domains.global_minimum if eligible else None,
        skew=max(domains.match_num.values(), default=0) - domains.global_minimum if eligible else None,
        origin=origin,
        name=balance.name,
        path=path,
    )


def _listed(domains: Domains, eligible: int) -> Mapping[str, int]:
    """The pods of each eligible domain; of very many, those of domains that have some."""
    if eligible <= _MOST_LISTED:
        return dict(sorted(domains.counts.items()))
    values = domains.column.values
    return dict(sorted((values[number], pods) for number, pods in domains.match_num.items()))


def _outside(domains: Domains, counts: Counts) -> Mapping[str, int]:
    """The matching pods on nodes that do not count, by what they have for the key."""
    if sum(counts.values()) == sum(domains.match_num.values()):
        return {}
    column, found = domains.column, dict[str, int]()
    counting = node_sets.flags(domains.counting, len(column.of))
    for slot, pods in counts.items():
        if not counting[slot]:
            number = column.of[slot]
            value = column.values[number] if number >= 0 else ""
            found[value] = found.get(value, 0) + pods
    return dict(sorted(found.items()))
