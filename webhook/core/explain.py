"""Why no node admits a pod, found by asking the same filters again with one thing changed.

Problem, Verdict -> cause        what is in the way: spread, capacity, or something else
"""

from collections.abc import Callable
from enum import StrEnum

from msgspec.structs import replace

from webhook.core import fit, spread
from webhook.core.spread import Counted
from webhook.core.verdict import Problem, Verdict, decide
from webhook.core.volume_limits import NODE_VOLUME_LIMITS

# What a node runs out of: a larger, emptier or further node of the same kind would have it.
CAPACITY_FILTERS = frozenset({fit.NODE_PORTS, fit.NODE_RESOURCES_FIT, NODE_VOLUME_LIMITS})


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
    if verdict.feasible:
        return None
    # A node that only one filter keeps away names that filter.
    asked = {status.plugin for status, members in verdict.failed if members}
    if spread.NAME in asked and decide(without_spread(problem)).feasible:
        return Cause.SPREAD
    if CAPACITY_FILTERS & asked and decide(without_limits(problem)).feasible:
        return Cause.CAPACITY
    return Cause.OTHER


def without_spread(problem: Problem) -> Problem:
    """The same problem for the pod without its hard constraints; its soft ones never keep a node away."""
    return _changed(problem, lambda each: replace(each, hard=Counted()))


def without_limits(problem: Problem) -> Problem:
    """The same problem on nodes that run out of nothing."""
    kept = tuple(plugin for plugin in problem.filters if plugin not in CAPACITY_FILTERS)
    return _changed(problem, lambda each: replace(each, filters=kept))


def _changed(problem: Problem, change: Callable[[Problem], Problem]) -> Problem:
    """The problem with a change that holds beside nominated pods as well."""
    nominated = {slot: change(each) for slot, each in problem.nominated.items()}
    return replace(change(problem), nominated=nominated)
