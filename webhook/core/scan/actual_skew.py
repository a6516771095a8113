"""Measure the skew of a workload's running pods for each of its constraints.

    skew = most matching pods in an eligible domain - global minimum

kube-scheduler compares maxSkew with the skew after one more pod. This module counts only existing pods.

Source: kube-scheduler podtopologyspread/filtering.go ``Filter``.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from webhook.core.api.selectors import Selector
from webhook.core.defaulting.injection import Injection
from webhook.core.defaulting.record import injected_constraints
from webhook.core.explain.explanation import Balance, balances_of
from webhook.core.index import node_sets
from webhook.core.index.label_column import Column
from webhook.core.index.owners import owner_selector
from webhook.core.index.pods import Counts
from webhook.core.pods_to_create.next_pod import NextPod
from webhook.core.scan.scan_context import ScanContext, next_pods, stands_for
from webhook.core.scan.scan_results import ActualSkew, GuardState, Origin, ScaleInState
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.plugins.pod_topology_spread import DomainCounts
from webhook.core.scheduler.plugins.spread_constraints import Constraint
from webhook.core.text import agree, one_line, plural
from webhook.core.workloads.workload import Workload, compiled, namespace_of, selector_of

# Above this number, empty domains are not listed. Such domains are hosts, and thousands of workloads have them.
_MOST_LISTED = 100
_NAME_CHARS = 60  # The most characters of a domain's name in a line of text.
# A text with more domains only has their extremes.
_MOST_DOMAINS = 6


class _Skewed(Struct, frozen=True):
    """A constraint with its matching pods by node slot. ``mine`` counts the workload's own matching pods."""

    balance: Balance
    counts: Counts
    mine: Counts


def has_standing_pods(workload: Workload, *, stand_in: bool) -> bool:
    """Whether the skew of the workload's running pods is meaningful.

    The workload must keep its pods running, and evenspread must be able to identify them. For a single pod, the result
    is ``stand_in``: whether the pod represents the pods of an unknown controller.
    """
    if workload.is_pod:
        return stand_in
    traits, own = workload.traits, selector_of(workload)
    return workload.whole and own is not None and not (traits.on_every_node or traits.completes or workload.suspended)


def own_pods(workload: Workload, within: ScanContext) -> Selector | None:
    """Return the selector of the workload's own pods. None if they are unidentifiable.

    For a single pod with a recognised controller, return the selector of the controller's pods.
    """
    if not workload.is_pod:
        return selector_of(workload)
    context, index = within.context, within.index
    above = stands_for(workload.group_kind, workload.api_version, workload.meta, context.policy.workloads)
    if above is None or index is None or not workload.templates:
        return None
    namespace = namespace_of(workload.meta.namespace, context.namespace)
    owner = index.owners.get(above.api_version, above.kind, namespace, above.name)
    return compiled(owner_selector(workload.templates[0].pod, owner))


def skews_of_templates(
    workload: Workload, within: ScanContext, *, stand_in: bool
) -> Iterator[tuple[NextPod, Selector | None, Sequence[ActualSkew]]]:
    """Yield the next pod of each template, the selector of the workload's pods, and the skew of each constraint.

    Yield nothing if the workload does not keep pods running, or if its pods cannot be identified.

    Args:
        workload: The workload.
        within: The context of the scan.
        stand_in: Whether a single pod represents the pods of an unknown controller.
    """
    if has_standing_pods(workload, stand_in=stand_in):
        own = own_pods(workload, within)
        for next_pod in next_pods(workload, within):
            yield next_pod, own, [*actual_skews(next_pod, own)]


def actual_skews(next_pod: NextPod, own: Selector | None) -> Iterator[ActualSkew]:
    """Yield the skew of each constraint of the next pod, in the pod's order.

    For a pod without constraints, the scheduler's default constraints are measured.

    Args:
        next_pod: The template and its next pod.
        own: The selector of the workload's pods, from `own_pods`.
    """
    injected = isinstance(next_pod.injected, Injection)
    recorded = {constraint.identity for constraint in injected_constraints(next_pod.sent)}
    running = {} if own is None else next_pod.context.cluster.pods.count(next_pod.problem.pod.meta.namespace, own)
    for skewed in _skewed(next_pod, own, running):
        balance, index = skewed.balance, skewed.balance.index
        if index is None:
            origin = Origin.DEFAULT
        elif injected or balance.written.identity in recorded:
            origin = Origin.INJECTED
        else:
            origin = Origin.DECLARED
        written = index is not None and not injected
        path = f"{next_pod.source.template.constraints_path}[{index}]" if written else ""
        yield _actual(skewed, origin, path, None if own is None else running)


def _skewed(next_pod: NextPod, own: Selector | None, running: Counts) -> Iterator[_Skewed]:
    problem, counts = next_pod.problem, dict[Constraint, Counts]()
    for counted in (problem.hard, problem.soft):
        counts |= zip(counted.constraints, counted.counts, strict=True)
    for balance in balances_of(Cycle(problem), soft_defaults=True):
        constraint = balance.domains.constraint
        matching = counts[constraint]
        mine = matching if own is None else _mine(constraint, matching, next_pod, own, running)
        yield _Skewed(balance, matching, mine)


def _mine(constraint: Constraint, matching: Counts, next_pod: NextPod, own: Selector, running: Counts) -> Counts:
    """Count the workload's own pods among the pods that match the constraint.

    Most constraints have the workload's selector, with or without a revision label. Then the result is ``matching``
    (pods of the constraint) or ``running`` (all pods of the workload), without a query.
    """
    theirs, ours = {*constraint.selector.requirements}, {*own.requirements}
    if not matching or ours <= theirs:
        return matching
    if theirs <= ours:
        return running
    return next_pod.context.cluster.pods.count(next_pod.problem.pod.meta.namespace, own.joined(theirs - ours))


def _actual(skewed: _Skewed, origin: Origin, path: str, running: Counts | None) -> ActualSkew:
    balance, domains = skewed.balance, skewed.balance.domains
    constraint, eligible = domains.constraint, domains.column.domain_count(domains.counting)
    counts, column = _listed(domains, eligible), domains.column
    counting = node_sets.flags(domains.counting, len(column.domain_of))
    outside, others = dict[int, int](), dict[int, int]()
    if sum(skewed.counts.values()) != sum(domains.match_num.values()):
        outside = {slot: pods for slot, pods in skewed.counts.items() if not counting[slot]}
    if skewed.mine is not skewed.counts:
        rest = {slot: pods - skewed.mine.get(slot, 0) for slot, pods in skewed.counts.items() if counting[slot]}
        others = {slot: pods for slot, pods in rest.items() if pods > 0}
    return ActualSkew(
        topology_key=constraint.topology_key,
        when_unsatisfiable=balance.written.when_unsatisfiable or "",
        # The scheduler deduces it from Services and ReplicaSets, which can repeat a requirement.
        selector=",".join(dict.fromkeys(each.text for each in constraint.selector.requirements)),
        max_skew=constraint.max_skew,
        min_domains=balance.written.min_domains,
        domains=counts,
        empty=eligible - len(counts),
        outside=_by_value(column, outside),
        others=_by_value(column, others),
        own=None if running is None else _by_value(column, running),
        uncounted=0 if running is None else sum(running.values()) - sum(skewed.mine.values()),
        global_minimum=domains.global_minimum if eligible else None,
        skew=max(domains.match_num.values(), default=0) - domains.global_minimum if eligible else None,
        origin=origin,
        name=balance.name,
        path=path,
    )


def unguarded_scale_in(skews: Sequence[ActualSkew], guard: GuardState) -> ScaleInState:
    """Return the worst scale-in of a workload with these constraints, if the guard is not active."""
    worst = [worst_after_scale_in(skew) for skew in skews]
    above = any(largest > skew.max_skew for skew, largest in zip(skews, worst, strict=True))
    return ScaleInState(worst_skew=max(worst, default=0), above=above, guard=guard)


def worst_after_scale_in(skew: ActualSkew) -> int:
    """Return the largest skew that a scale-in of the workload can leave, if its controller removes pods by chance.

    One domain keeps its pods, and another domain loses all of the workload's pods.
    """
    lowest = sorted(skew.others.get(domain, 0) for domain in skew.domains)[:2]
    is_zero = skew.empty > 0 or (skew.min_domains or 0) > skew.eligible
    worst = 0
    for domain, pods in skew.domains.items():
        if is_zero:
            worst = max(worst, pods)
        elif len(lowest) > 1:
            worst = max(worst, pods - lowest[skew.others.get(domain, 0) == lowest[0]])
    return worst


def _listed(domains: DomainCounts, eligible: int) -> Mapping[str, int]:
    """Return the pods of each eligible domain. Above `_MOST_LISTED` domains, leave out the empty ones."""
    if eligible <= _MOST_LISTED:
        return dict(sorted(domains.counts.items()))
    values = domains.column.values
    return dict(sorted((values[number], pods) for number, pods in domains.match_num.items()))


def _by_value(column: Column, counts: Counts) -> Mapping[str, int]:
    """Count pods by the label value of their node, "" without the label."""
    by_value = dict[str, int]()
    for slot, pods in counts.items():
        number = column.domain_of[slot]
        value = column.values[number] if number >= 0 else ""
        by_value[value] = by_value.get(value, 0) + pods
    return dict(sorted(by_value.items()))


def domain_text(skew: ActualSkew) -> str:
    """Return ``a 3, b 1, c 0``, then facts about uncounted pods and other workloads' pods."""
    outside = sum(skew.outside.values())
    uncounted = f"{plural(outside, 'pod')} on nodes excluded from the count" if outside else ""
    return "; ".join(filter(None, (_counts(skew), ownership_text(skew), uncounted)))


def ownership_text(skew: ActualSkew) -> str:
    """Return the numbers of other workloads' counted pods and of uncounted own pods, else ""."""
    others, own = sum(skew.others.values()), sum((skew.own or {}).values())
    verb, parts = agree(others, "belong"), list[str]()
    if others:
        parts.append(f"{others:,} of {plural(sum(skew.domains.values()), 'counted pod')} {verb} to other workloads")
    if skew.uncounted and skew.uncounted == own:
        parts.append(f"none of its own {plural(own, 'pod')} is counted")
    elif skew.uncounted:
        verb = agree(skew.uncounted, "are")
        parts.append(f"{skew.uncounted:,} of its own {plural(own, 'pod')} {verb} not counted")
    return "; ".join(parts)


def _counts(skew: ActualSkew) -> str:
    counts, total = skew.domains, skew.eligible
    if not total:
        return f"no eligible node has {one_line(skew.topology_key, _NAME_CHARS)}"
    if total <= _MOST_DOMAINS:
        return ", ".join(f"{one_line(name, _NAME_CHARS)} {number}" for name, number in counts.items())
    empty = skew.empty + sum(not number for number in counts.values())
    rest = f", {empty:,} of them empty" if empty and skew.most else ""
    return f"{f'{skew.fewest} to {skew.most}' if skew.most else 'none'} in {total:,} domains{rest}"
