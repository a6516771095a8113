"""Changes of a workload's hard constraints that may make all of its pods fit, smallest first.

What helps one pod need not help all of them, and looser is not always better: a larger maxSkew can open a new way to
get stuck. So the caller tries each change with all pods.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from msgspec import Struct

from webhook.core.api.types import SpreadConstraint
from webhook.core.changes.change import NODE_AFFINITY_POLICY, NODE_TAINTS_POLICY, Change, Changes, honored, softened


class Loosenings(Struct, frozen=True, kw_only=True):
    """What is known of the constraints that are to be changed.

    Shape: by index in ``constraints``: ``domains`` are the domains that count, ``skews`` the lowest maxSkew that can
    help, where that is known. ``revision`` is the label that tells revisions apart, during a rolling update.
    ``further`` says how much further maxSkew is raised. ``pairs`` that two of the changes are tried together.
    """

    constraints: Sequence[SpreadConstraint]
    domains: Mapping[int, int] = {}
    skews: Mapping[int, int] = {}
    revision: str = ""
    further: int = 2
    pairs: bool = True
    first: Sequence[Changes] = ()

    def that_help(self, fits: Callable[[Changes], bool]) -> Iterator[Changes]:
        """The changes with which all pods fit: those that keep the pods spread, and then those that do not.

        Shape: two together, or all constraints at once, only where one alone does not help; of a field, the first value
        that does.
        """
        small = [*self._small()]
        pairs = (pair for pair in combinations(small, 2) if self.pairs and pair[0].at != pair[1].at)
        yield from _tried(fits, (*self.first, *((each,) for each in small)), pairs)
        soft = [softened(self.constraints, index) for index, each in enumerate(self.constraints) if each.hard]
        yield from _tried(fits, soft, [tuple(each for some in soft for each in some)] * (len(soft) > 1))

    def _small(self) -> Iterator[Change]:
        """One field of one constraint, after which pods are spread still."""
        hard = [(index, each) for index, each in enumerate(self.constraints) if each.hard]
        for field in (NODE_TAINTS_POLICY, NODE_AFFINITY_POLICY):
            for index, _ in hard:
                yield from honored(self.constraints, index, field)
        for index, each in hard:
            there = self.domains.get(index, 0)
            if (each.min_domains or 1) > max(1, there):
                yield Change(index, "minDomains", there if there > 1 else None)
        for index, each in hard:
            keys = each.match_label_keys or ()
            if self.revision and self.revision not in keys and each.label_selector is not None:
                yield Change(index, "matchLabelKeys", (*keys, self.revision))
        for more in range(self.further):
            for index, each in hard:
                least = max(self.skews.get(index, 0), (each.max_skew or 0) + 1)
                yield Change(index, "maxSkew", least + more)


def _tried(
    fits: Callable[[Changes], bool], alone: Iterable[Changes], otherwise: Iterable[Changes]
) -> Iterator[Changes]:
    solved: set[str] = set()
    for changes in alone:
        if changes[0].at not in solved and fits(changes):
            solved.add(changes[0].at)
            yield changes
    if not solved:
        yield from (found for found in [next(filter(fits, otherwise), None)] if found is not None)
