"""Find changes of the cluster, and tolerations, after which a node admits the pod. Each change is tested."""

from collections.abc import Iterator
from itertools import combinations
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.resources import PODS
from webhook.core.api.types import HONOR, Toleration
from webhook.core.api.well_known import NODE_STATES, TAINT_UNSCHEDULABLE
from webhook.core.changes.candidates import first_stage
from webhook.core.explain.filter_words import PARTS
from webhook.core.explain.obstacles import toleration_for, untolerated
from webhook.core.index import node_sets
from webhook.core.index.nodes import NO_NODE
from webhook.core.scheduler.cycle import Cycle, decide
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT
from webhook.core.scheduler.plugins.status import Code
from webhook.core.scheduler.problem import Problem, change_problem, without_filters, without_limits
from webhook.core.scheduler.verdict import Verdict

_ANY_CORDON = Toleration(key=TAINT_UNSCHEDULABLE, operator="Exists")


class Relief(Struct, frozen=True):
    """A helpful change of the cluster or the pod.

    Attributes:
        what: ``room`` (free resources on nodes), ``size`` (larger nodes), ``uncordon``, or ``toleration``.
        nodes: A bit set of the nodes that admit the pod after this change alone.
        tolerations: The tolerations to add to the pod.
    """

    what: Literal["room", "size", "uncordon", "toleration"]
    nodes: int
    tolerations: tuple[Toleration, ...] = ()


class BlockingParts(Struct, frozen=True):
    """Requirements of a pod, and the nodes that admit the pod without all of them.

    No smaller set of requirements helps. ``parts`` are keys of ``PARTS``. ``nodes`` is a bit set.
    """

    parts: tuple[str, ...]
    nodes: int


class Shortage(Struct, frozen=True):
    """A requested resource without a sufficient free amount on any examined node.

    CPU is in milli-CPU, every other resource in whole units.

    Attributes:
        needed: The pod's request.
        free: The highest free amount, on ``node``.
        nodes: The number of examined nodes.
        has: The allocatable amount of the largest node. None if a node would suffice when empty.
    """

    resource: str
    needed: int
    free: int
    node: str
    nodes: int
    has: int | None


def too_small(verdict: Verdict) -> int:
    """Return the nodes with less than the pod's request even when empty.

    Source: noderesources/fit.go ``InsufficientResource``, Unresolvable.
    """
    small = 0
    for status, members in verdict.failed:
        small |= members if status.plugin == NODE_RESOURCES_FIT and status.code == Code.UNRESOLVABLE else 0
    return small


def reliefs(problem: Problem, verdict: Verdict) -> Iterator[Relief]:
    """Yield the helpful changes for a pod without an admitting node."""
    roomy, small = decide(without_limits(problem)).feasible, too_small(verdict)
    # Emptying helps on nodes of sufficient size. Otherwise only larger nodes do.
    if roomy & ~small:
        yield Relief("room", roomy & ~small)
    if roomy & small:
        yield Relief("size", roomy & small)
    cordoned = problem.nodes.unschedulable
    honored = any(constraint.node_taints_policy == HONOR for constraint in problem.hard.constraints)
    # A toleration for the cordon replaces the lifting of all cordons at once. With nodeTaintsPolicy Honor this gives
    # other domains than lifting a single cordon.
    if cordoned and (not honored or cordoned.bit_count() == 1):
        # Uncordoning a node has the same effect on this pod as tolerating the cordon.
        open_ = decide(_tolerating(problem, (_ANY_CORDON,))).feasible & cordoned
        if open_:
            yield Relief("uncordon", open_)
    # Taints about a node's state need a repair or time, not a toleration.
    wanted = dict.fromkeys(
        taints for taints, _ in untolerated(problem) if not any(taint.key in NODE_STATES for taint in taints)
    )
    for taints in wanted:
        tolerations = tuple(map(toleration_for, taints))
        open_ = decide(_tolerating(problem, tolerations)).feasible
        if open_:
            yield Relief("toleration", open_, tolerations)


def _tolerating(problem: Problem, tolerations: tuple[Toleration, ...]) -> Problem:
    spec = problem.pod.pod_spec
    pod = replace(problem.pod, spec=replace(spec, tolerations=(*(spec.tolerations or ()), *tolerations)))
    return change_problem(problem, lambda each: replace(each, pod=pod))


def blocking_parts(cycle: Cycle) -> Iterator[BlockingParts]:
    """Yield each smallest set of pod requirements that keeps the pod from all nodes.

    The possible requirements are the keys of ``PARTS``. If the pod had none of the requirements in the set, at least
    one node would admit it.
    """
    problem = cycle.problem
    asked = [
        part
        for part, plugins in PARTS.items()
        if any(cycle.verdict_of(plugin).feasible != problem.nodes.live for plugin in plugins & {*problem.filters})
    ]

    def tried(size: int) -> Iterator[BlockingParts | None]:
        for parts in combinations(asked, size):
            nodes = decide(without_filters(problem, frozenset().union(*(PARTS[part] for part in parts)))).feasible
            yield BlockingParts(parts, nodes) if nodes else None

    # The fewest parts first. Larger sets would include these.
    yield from first_stage(*map(tried, range(1, len(asked) + 1)))


def shortages(problem: Problem, nodes: int) -> Iterator[Shortage]:
    """Yield a shortage for each requested resource with too little free on all of ``nodes``."""
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
