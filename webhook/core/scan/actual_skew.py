"""How uneven the pods of a workload stand now, by each of its constraints; nothing is placed.

    skew = most matching pods in an eligible domain - global minimum

A scheduler compares with maxSkew what its filter makes of one pod more; pods that have their node are these.

Source: kube-scheduler podtopologyspread/filtering.go ``Filter``.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from webhook.core.api.selectors import Selector
from webhook.core.coming_pods.next_pod import ComingPod
from webhook.core.defaulting.injection import Injection, injected_constraints
from webhook.core.explain.explanation import Balance, balances_of
from webhook.core.index import node_sets
from webhook.core.index.label_column import Column
from webhook.core.index.owners import owner_selector
from webhook.core.index.pods import Counts
from webhook.core.scan.scan_context import ScanContext, next_pods, stands_for
from webhook.core.scan.scanned import ActualSkew, Origin
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.plugins.pod_topology_spread import Constraint, DomainCounts
from webhook.core.text import one_line, plural
from webhook.core.workloads.workload import Workload, compiled, namespace_of, selector_of

# Domains of a constraint that are listed though they have no pods: more are hosts, of each of thousands of workloads.
_MOST_LISTED = 100
_NAME_CHARS = 60
# More are summed up: hosts mostly.
_MOST_DOMAINS = 6


class _Skewed(Struct, frozen=True):
    """A constraint with all matched pods (``counts``) and the workload's own among them (``mine``), by slot."""

    balance: Balance
    counts: Counts
    mine: Counts


def has_standing_pods(workload: Workload, *, stand_in: bool) -> bool:
    """Whether the workload keeps pods running that can be told from others, so that their skew is of interest.

    Shape: a pod is of interest as a ``stand_in`` for those of a controller that is not known.
    """
    if workload.is_pod:
        return stand_in
    traits, own = workload.traits, selector_of(workload)
    return workload.whole and own is not None and not (traits.on_every_node or traits.completes or workload.suspended)


def own_pods(workload: Workload, within: ScanContext) -> Selector | None:
    """The selector of the workload's own pods. For a pod that represents a controller, of that controller's pods.

    Returns: None where they cannot be told from other pods.
    """
    if not workload.is_pod:
        return selector_of(workload)
    here, index = within.context, within.index
    above = stands_for(workload.group_kind, workload.api_version, workload.meta, here.policy.workloads)
    if above is None or index is None or not workload.templates:
        return None
    namespace = namespace_of(workload.meta.namespace, here.namespace)
    owner = index.owners.get(above.api_version, above.kind, namespace, above.name)
    return compiled(owner_selector(workload.templates[0].template, owner))


def workload_skews(workload: Workload, within: ScanContext, *, stand_in: bool) -> Iterator[ActualSkew]:
    """The skew of each constraint of each template's next pod; ``stand_in`` as in `has_standing_pods`."""
    if has_standing_pods(workload, stand_in=stand_in):
        own = own_pods(workload, within)
        for made in next_pods(workload, within):
            yield from actual_skews(made, own)


def actual_skews(of: ComingPod, own: Selector | None) -> Iterator[ActualSkew]:
    """The skew of each constraint of the next pod, in the pod's order; of one without, by the scheduler's defaults.

    Args:
        of: The template and its next pod.
        own: The selector of the workload's pods, from `own_pods`.
    """
    injected = isinstance(of.injected, Injection)
    recorded = {each.identity for each in injected_constraints(of.sent)}
    running = {} if own is None else of.within.cluster.pods.count(of.problem.pod.meta.namespace, own)
    for each in _skewed(of, own, running):
        balance, index = each.balance, each.balance.index
        if index is None:
            origin = Origin.DEFAULT
        elif injected or balance.written.identity in recorded:
            origin = Origin.INJECTED
        else:
            origin = Origin.DECLARED
        written = index is not None and not injected
        path = f"{of.source.template.constraints_path}[{index}]" if written else ""
        yield _actual(each, origin, path, None if own is None else running)


def _skewed(of: ComingPod, own: Selector | None, running: Counts) -> Iterator[_Skewed]:
    """The constraints, with the pods that match each by slot."""
    problem, counts = of.problem, dict[Constraint, Counts]()
    for counted in (problem.hard, problem.soft):
        counts |= zip(counted.constraints, counted.counts, strict=True)
    for balance in balances_of(Cycle(problem), soft_defaults=True):
        constraint = balance.domains.constraint
        matching = counts[constraint]
        yield _Skewed(balance, matching, matching if own is None else _mine(constraint, matching, of, own, running))


def _mine(constraint: Constraint, matching: Counts, of: ComingPod, own: Selector, running: Counts) -> Counts:
    """The workload's own pods that the constraint's selector matches.

    Most selectors are the workload's own, with or without the label of a revision: then nothing is counted anew.
    """
    theirs, ours = {*constraint.selector.requirements}, {*own.requirements}
    if not matching or ours <= theirs:
        return matching
    if theirs <= ours:
        return running
    return of.within.cluster.pods.count(of.problem.pod.meta.namespace, own.joined(theirs - ours))


def _actual(of: _Skewed, origin: Origin, path: str, running: Counts | None) -> ActualSkew:
    balance, domains = of.balance, of.balance.domains
    constraint, eligible = domains.constraint, domains.column.domain_count(domains.counting)
    counts, column = _listed(domains, eligible), domains.column
    counting = node_sets.flags(domains.counting, len(column.of))
    outside, others = of.counts, dict[int, int]()
    if sum(of.counts.values()) == sum(domains.match_num.values()):
        outside = {}
    else:
        outside = {slot: pods for slot, pods in of.counts.items() if not counting[slot]}
    if of.mine is not of.counts:
        rest = {slot: pods - of.mine.get(slot, 0) for slot, pods in of.counts.items() if counting[slot]}
        others = {slot: pods for slot, pods in rest.items() if pods > 0}
    return ActualSkew(
        topology_key=constraint.topology_key,
        when_unsatisfiable=balance.written.when_unsatisfiable or "",
        # A Service and a ReplicaSet, from which the scheduler deduces it, may ask for the same.
        selector=",".join(dict.fromkeys(each.text for each in constraint.selector.requirements)),
        max_skew=constraint.max_skew,
        min_domains=balance.written.min_domains,
        domains=counts,
        empty=eligible - len(counts),
        outside=_by_value(column, outside),
        others=_by_value(column, others),
        own=None if running is None else _by_value(column, running),
        uncounted=0 if running is None else sum(running.values()) - sum(of.mine.values()),
        global_minimum=domains.global_minimum if eligible else None,
        skew=max(domains.match_num.values(), default=0) - domains.global_minimum if eligible else None,
        origin=origin,
        name=balance.name,
        path=path,
    )


def _listed(domains: DomainCounts, eligible: int) -> Mapping[str, int]:
    """The pods of each eligible domain; of very many, those of domains that have some."""
    if eligible <= _MOST_LISTED:
        return dict(sorted(domains.counts.items()))
    values = domains.column.values
    return dict(sorted((values[number], pods) for number, pods in domains.match_num.items()))


def _by_value(column: Column, counts: Counts) -> Mapping[str, int]:
    """Pods by what their nodes have for the key; "" for none."""
    found = dict[str, int]()
    for slot, pods in counts.items():
        number = column.of[slot]
        value = column.values[number] if number >= 0 else ""
        found[value] = found.get(value, 0) + pods
    return dict(sorted(found.items()))


def domain_text(of: ActualSkew) -> str:
    """``a 3, b 1, c 0``, then the owners of these pods and the uncounted pods. Many domains are cut to the extremes."""
    outside = sum(of.outside.values())
    beside = f"{plural(outside, 'pod')} on nodes that do not count" if outside else ""
    return "; ".join(filter(None, (_counts(of), ownership_text(of), beside)))


def ownership_text(of: ActualSkew) -> str:
    """How many counted pods belong to other workloads, and how many of the workload's own the selector does not match.

    Returns: "" where the constraint counts the workload's own pods and no others.
    """
    others, own = sum(of.others.values()), sum((of.own or {}).values())
    verb = "belongs" if others == 1 else "belong"
    told = (
        [f"{others:,} of {plural(sum(of.domains.values()), 'counted pod')} {verb} to other workloads"] if others else []
    )
    if of.uncounted and of.uncounted == own:
        told.append(f"none of its own {plural(own, 'pod')} is counted")
    elif of.uncounted:
        told.append(
            f"{of.uncounted:,} of its own {plural(own, 'pod')} {'is' if of.uncounted == 1 else 'are'} not counted"
        )
    return "; ".join(told)


def _counts(of: ActualSkew) -> str:
    counts, total = of.domains, of.eligible
    if not total:
        return f"no node with {one_line(of.topology_key, _NAME_CHARS)} counts"
    if total <= _MOST_DOMAINS:
        return ", ".join(f"{one_line(name, _NAME_CHARS)} {number}" for name, number in counts.items())
    empty = of.empty + sum(not number for number in counts.values())
    rest = f", {empty:,} of them empty" if empty and of.most else ""
    return f"{f'{of.fewest} to {of.most}' if of.most else 'none'} in {total:,} domains{rest}"
