"""How unevenly a rolling update can leave its new pods, whatever the scheduler chooses and whichever old pods go first.

Where a constraint counts both revisions, new pods avoid the domains that old ones still hold. Nobody moves them later.
"""

from collections.abc import Iterable, Iterator

from webhook.core.placement.game import Game, State
from webhook.core.placement.search import End


def worst_skew(game: Game, crowd: int, ends: Iterable[End]) -> int | None:
    """The largest difference between two domains, in pods of the crowd, at an end where nothing is missing.

    Shape: of the crowd's constraints whose minimum can change; the crowd has no pods at the start. None if no order
    finishes.
    """
    done = [end for end in ends if end.done]
    counts = [each for end in done for each in _counts(game, crowd, end.state)]
    return max((max(each) - min(each) for each in counts if each), default=0) if done else None


def _counts(game: Game, crowd: int, state: State) -> Iterator[list[int]]:
    """The crowd's pods in each domain that counts for the minimum, constraint by constraint."""
    for limit in game.crowds[crowd].on_domains:
        spread = game.domain_spreads[limit.spread]
        found = dict.fromkeys(spread.eligible, 0)
        for of, nodes in zip(game.classes, state, strict=True):
            if (domain := of.domains[spread.key]) in found:
                found[domain] += sum(pods[crowd] * many for pods, many in nodes)
        yield [*found.values()]
    for limit in game.crowds[crowd].on_nodes:
        on_nodes = [0] if game.node_spreads[limit.spread].floor is not None else []
        for of, nodes in zip(game.classes, state, strict=True):
            if of.held[limit.spread] is not None:
                untouched = of.size - sum(many for _, many in nodes)
                on_nodes += [0] * (untouched > 0) + [pods[crowd] for pods, _ in nodes]
        yield on_nodes
