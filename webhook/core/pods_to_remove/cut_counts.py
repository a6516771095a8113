"""The pods of each domain, if a scale-in keeps some pods of a tie group: best, worst and likely.

pods of a domain afterwards = pods that stay in every order + kept pods of the cut group
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush, nsmallest

from msgspec import Struct


class CutCounts(Struct, frozen=True, kw_only=True):
    """The pods of each eligible domain around a cut group.

    Attributes:
        staying: The matching pods that stay in every order.
        cut: The matching pods of the cut group.
        uncounted: The other pods of the cut group.
        kept: The number of kept pods of the cut group.
        too_few: Whether there are fewer domains than minDomains. The global minimum is 0 then.
    """

    staying: Sequence[int]
    cut: Sequence[int]
    uncounted: int = 0
    kept: int
    too_few: bool = False

    def skew(self, counts: Sequence[int]) -> int:
        """Source: kube-scheduler podtopologyspread/filtering.go ``minMatchNum``, ``Filter``."""
        return max(counts, default=0) - (0 if self.too_few else min(counts, default=0))

    def best(self) -> list[int]:
        """Return the counts with the smallest skew: each kept pod is in the lowest possible domain."""
        counts, left = [*self.staying], [*self.cut]
        lowest = [(pods, domain) for domain, pods in enumerate(counts) if left[domain]]
        heapify(lowest)
        # Uncounted pods can stay instead of counted pods. Fewer counted pods can have the smaller skew.
        answers = list[list[int]]()
        for number in range(self.kept + 1):
            if number >= self.kept - self.uncounted:
                answers.append([*counts])
            if not lowest:
                break
            pods, domain = heappop(lowest)
            counts[domain] += 1
            left[domain] -= 1
            if left[domain]:
                heappush(lowest, (pods + 1, domain))
        return min(reversed(answers), key=self.skew)

    def worst(self) -> list[int]:
        """Return the counts with the largest skew: one domain keeps the most pods, another the fewest."""
        _, most, fewest, low = self._extremes()
        counts, rest = [*self.staying], self.kept
        for domain, limit in self._turns(most, fewest, low):
            pods = min(limit, rest)
            rest -= pods
            if domain is not None:
                counts[domain] += pods
        return counts

    def worst_skew(self) -> int:
        """Return the skew of `worst`."""
        return self._extremes()[0]

    def _extremes(self) -> tuple[int, int, int, Sequence[int]]:
        """Return the largest skew, its domains with the most and the fewest pods, and the fewest pods of each domain.

        The domain with the fewest pods is -1 if the global minimum is 0, or if there is no other domain.
        """
        others = self.uncounted + sum(self.cut)
        high = [pods + min(cut, self.kept) for pods, cut in zip(self.staying, self.cut, strict=True)]
        low = [pods + max(0, self.kept - others + cut) for pods, cut in zip(self.staying, self.cut, strict=True)]
        domains = range(len(high))
        full = nsmallest(2, domains, key=lambda domain: -high[domain])
        if self.too_few:
            return max(high, default=0), next(iter(full), 0), -1, low
        bare = nsmallest(2, domains, key=low.__getitem__)
        pairs = [(high[most] - low[fewest], most, fewest) for most in full for fewest in bare if most != fewest]
        return *max(pairs, key=lambda pair: pair[0], default=(0, 0, -1)), low

    def _turns(self, most: int, fewest: int, low: Sequence[int]) -> list[tuple[int | None, int]]:
        """Return the domains in the order in which the worst case keeps their pods, each with its number of pods.

        After the two extremes, domains with a pod are first, so that many domains stay empty. None has uncounted pods.
        """
        rest = sorted(
            (domain for domain in range(len(self.cut)) if domain not in {most, fewest}),
            key=lambda domain: (not self.staying[domain], -self.cut[domain]),
        )
        first: list[tuple[int | None, int]] = []
        if fewest >= 0:
            first.append((fewest, low[fewest] - self.staying[fewest]))
        if most < len(self.cut):
            first.append((most, self.cut[most]))
        return [*first, (None, self.uncounted), *((domain, self.cut[domain]) for domain in rest)]

    def likely(self) -> list[int]:
        """Return the most probable counts, if each set of kept pods is equally probable.

        This is the mode of a multivariate hypergeometric distribution.
        """
        sizes, counts = [*self.cut, self.uncounted], [0] * (len(self.cut) + 1)
        # Of c pods, k+1 are kept (c-k)/(k+1) times as often as k.
        ratios = [(-float(size), domain) for domain, size in enumerate(sizes) if size]
        heapify(ratios)
        for _ in range(self.kept):
            _, domain = heappop(ratios)
            counts[domain] += 1
            if counts[domain] < sizes[domain]:
                ratio = (sizes[domain] - counts[domain]) / (counts[domain] + 1)
                heappush(ratios, (-ratio, domain))
        return [pods + kept for pods, kept in zip(self.staying, counts, strict=False)]

    def repair(self, counts: Sequence[int], max_skew: int, *, matches: bool) -> int | None:
        """Return the number of new pods until the skew is within maxSkew, if each goes to the lowest domain.

        None if the global minimum has to rise, and does not: new pods do not match, or there are too few domains.
        """
        if self.skew(counts) <= max_skew:
            return 0
        if self.too_few or not matches:
            return None
        return sum(max(0, max(counts) - max_skew - pods) for pods in counts)
