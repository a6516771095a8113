"""Changes of the cluster, or of the pod's tolerations, after which some node admits the pod. Each was tried."""

from collections.abc import Iterator
from itertools import combinations
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.resources import PODS
from webhook.core.api.types import HONOR, Toleration
from webhook.core.api.well_known import NODE_STATES, TAINT_UNSCHEDULABLE
from webhook.core.changes.candidates import changed
from webhook.core.explain.obstacles import CAPACITY_FILTERS, PARTS, toleration_for, untolerated
from webhook.core.index import node_sets
from webhook.core.index.nodes import NO_NODE
from webhook.core.scheduler.cycle import Cycle, decide
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT
from webhook.core.scheduler.plugins.status import UNRESOLVABLE
from webhook.core.scheduler.problem import Problem
from webhook.core.scheduler.verdict import Verdict

_ANY_CORDON = Toleration(key=TAINT_UNSCHEDULABLE, operator="Exists")


class Relief(Struct, frozen=True):
    """A change that helps, and the nodes on which it would be enough.

    ``room`` on nodes, or ``size`` if they have too little even when empty; ``uncordon``; ``toleration`` with new ones.
    """

    what: Literal["room", "size", "uncordon", "toleration"]
    nodes: int
    tolerations: tuple[Toleration, ...] = ()


class Way(Struct, frozen=True):
    """The smallest set of ``PARTS`` whose filters alone reject some nodes, and those nodes."""

    parts: tuple[str, ...]
    nodes: int


class Shortage(Struct, frozen=True):
    """A resource of which all of some nodes have too little.

    Args:
        free: The most that is free, on ``node``. cpu in milli-CPU, everything else in whole units.
        has: The allocatable amount of the largest node. None if a node would have enough if it were empty.
    """

    resource: str
    needed: int
    free: int
    node: str
    nodes: int
    has: int | None


def _without(problem: Problem, plugins: frozenset[str]) -> Problem:
    kept = tuple(plugin for plugin in problem.filters if plugin not in plugins)
    return changed(problem, lambda each: replace(each, filters=kept))


def without_limits(problem: Problem) -> Problem:
    """The same problem without the filters of limited resources."""
    return _without(problem, CAPACITY_FILTERS)


def too_small(verdict: Verdict) -> int:
    """The nodes that have less than the pod requests even when they are empty.

    Source: noderesources/fit.go ``InsufficientResource``, Unresolvable.
    """
    small = 0
    for status, members in verdict.failed:
        small |= members if status.plugin == NODE_RESOURCES_FIT and status.code == UNRESOLVABLE else 0
    return small


def reliefs(problem: Problem, verdict: Verdict) -> Iterator[Relief]:
    """The changes that would help a pod that no node admits."""
    roomy, small = decide(without_limits(problem)).feasible, too_small(verdict)
    # Emptying helps on nodes that are large enough; where they are not, only larger ones do.
    if roomy & ~small:
        yield Relief("room", roomy & ~small)
    if roomy & small:
        yield Relief("size", roomy & small)
    cordoned = problem.nodes.unschedulable
    honored = any(each.node_taints_policy == HONOR for each in problem.hard.constraints)
    # A toleration stands for lifting all cordons at once. With nodeTaintsPolicy Honor the domains would then be others
    # than after lifting one, unless there is only one.
    if cordoned and (not honored or cordoned.bit_count() == 1):
        # Uncordoning a node has the same effect for this pod as tolerating the cordon.
        open_ = decide(_tolerating(problem, (_ANY_CORDON,))).feasible & cordoned
        if open_:
            yield Relief("uncordon", open_)
    # Taints about a node's state are not to be tolerated, but waited for or repaired.
    wanted = dict.fromkeys(
        taints for taints, _ in untolerated(problem) if not any(each.key in NODE_STATES for each in taints)
    )
    for taints in wanted:
        tolerations = tuple(map(toleration_for, taints))
        open_ = decide(_tolerating(problem, tolerations)).feasible
        if open_:
            yield Relief("toleration", open_, tolerations)


def _tolerating(problem: Problem, tolerations: tuple[Toleration, ...]) -> Problem:
    spec = problem.pod.pod_spec
    pod = replace(problem.pod, spec=replace(spec, tolerations=(*(spec.tolerations or ()), *tolerations)))
    return changed(problem, lambda each: replace(each, pod=pod))


def ways(cycle: Cycle) -> Iterator[Way]:
    """The smallest sets of ``PARTS`` without which some node admits the pod; all have the same size."""
    problem = cycle.problem
    asked = [
        part
        for part, plugins in PARTS.items()
        if any(cycle.verdict_of(plugin).feasible != problem.nodes.live for plugin in plugins & {*problem.filters})
    ]
    # The fewest parts first, and no more once some help: a larger set holds a smaller one that is enough.
    for size in range(1, len(asked) + 1):
        helped = False
        for parts in combinations(asked, size):
            nodes = decide(_without(problem, frozenset().union(*(PARTS[part] for part in parts)))).feasible
            if nodes:
                helped = True
                yield Way(parts, nodes)
        if helped:
            return


def shortages(problem: Problem, nodes: int) -> Iterator[Shortage]:
    """The requested resources of which every one of these nodes has too little free."""
    for name, amount in ((PODS, 1), *problem.request.amounts):
        free, has = problem.resources.free.get(name), problem.resources.allocatable.get(name)
        slots = node_sets.to_slots(nodes)
        if free is None or not slots or not all(free[slot] < amount for slot in slots):
            continue
        most = max(slots, key=lambda slot: (min(free[slot], NO_NODE), -slot))
        largest = None if has is None else max(has[slot] for slot in slots)
        yield Shortage(
            resource=name,
            needed=amount,
            free=max(free[most], 0),
            node=problem.nodes.names[most],
            nodes=len(slots),
            has=largest if largest is not None and largest < amount else None,
        )
