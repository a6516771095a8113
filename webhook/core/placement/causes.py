"""Why some order leaves pods without a node: the same game is played without what may be in the way.

spread      without spread constraints every order places all of them
capacity    without limits of resources it does
other       neither alone
"""

from collections.abc import Sequence

from msgspec.structs import replace

from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.game import Rollout
from webhook.core.placement.game_from_cluster import PodBatch, game_of
from webhook.core.placement.simulation import Effort, always_fits
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT
from webhook.core.scheduler.plugins.pod_topology_spread import Counted
from webhook.core.scheduler.problem import Problem
from webhook.core.scheduler.verdict import Cause


def cause(batches: Sequence[PodBatch], index: ReadOnlyIndex, rollout: Rollout | None, effort: Effort) -> Cause:
    """Shape: the batches, the index and the rollout are those of the game (`crowds.game_of`) of which it is asked."""
    free = [replace(each, problem=replace(each.problem, hard=Counted())) for each in batches]
    if always_fits(game_of(free, index, rollout=rollout), effort):
        return Cause.SPREAD
    roomy = [replace(each, problem=_without_limits(each.problem)) for each in batches]
    return Cause.CAPACITY if always_fits(game_of(roomy, index, rollout=rollout), effort) else Cause.OTHER


def _without_limits(problem: Problem) -> Problem:
    return replace(problem, filters=tuple(each for each in problem.filters if each != NODE_RESOURCES_FIT))
