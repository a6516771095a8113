"""How many pods a hard spread constraint can admit, in closed form.

All pods are equal and match the selectors, so only numbers matter. Take a domain with c matching pods and room for k
more (k = 0 without an admitting node). For one constraint:

    reachable minimum = min(c + k) over the domains, 0 if they are fewer than minDomains
    addable pods      = sum of max(0, min(c + k, minimum + maxSkew) - c)

Every order reaches this number, and none exceeds it. A domain without room keeps its count and limits all others. The
other functions give upper bounds for any order. Tests compare all of them with exhaustive searches.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

# The most pods on a host to try in proofs. kubelets allow 110 by default.
MAX_PODS_ON_A_HOST = 256


class DomainState(NamedTuple):
    """The pods of a domain, and its capacity for more pods.

    Domains with equal numbers are interchangeable.

    Attributes:
        pods: The matching pods.
        room: How many more pods the domain can take. None if unlimited.
    """

    pods: int
    room: int | None = None


class PinnedDomain(NamedTuple):
    """A domain with pods that can run nowhere else.

    Attributes:
        pods: Its matching pods.
        pinned: The pods to place that need this domain.
        is_open: Whether other pods can be placed there.
    """

    pods: int
    pinned: int
    is_open: bool = True


class SkewLimit(NamedTuple):
    """The limit of a spread constraint.

    Attributes:
        max_skew: maxSkew.
        enough: Whether there are at least minDomains domains. If not, the global minimum is 0.
    """

    max_skew: int
    enough: bool = True


def reachable_minimum(cells: Mapping[DomainState, int], limit: SkewLimit) -> int | None:
    """The highest global minimum that an order can reach. None if unlimited."""
    if not limit.enough:
        return 0
    return min((cell.pods + cell.room for cell in cells if cell.room is not None), default=None)


def addable(cells: Mapping[DomainState, int], limit: SkewLimit) -> int | None:
    """Return the exact number of pods admitted by a constraint, equal in every order.

    None if unlimited.

    Args:
        cells: The number of domains, grouped by their matching pods and by their capacity for more pods.
        limit: The maxSkew and minDomains limits of the constraint.
    """
    minimum = reachable_minimum(cells, limit)
    if minimum is None:
        return None if cells else 0
    top = minimum + limit.max_skew
    total = 0
    for (count, room), domains in cells.items():
        reached = top if room is None else min(count + room, top)
        if reached > count:
            total += domains * (reached - count)
    return total


def addable_pinned(homes: Sequence[PinnedDomain], limit: SkewLimit, free: int) -> int:
    """The most pods that a constraint admits if volumes pin some pods to a domain.

    ``homes`` are all eligible domains. ``free`` is the number of pods for any open domain.
    """
    minimum = 0
    if limit.enough and homes:
        minimum = min(home.pods for home in homes)
        while _reaches(homes, minimum + 1, free):
            minimum += 1
    top = minimum + limit.max_skew
    pinned = rest = 0
    for home in homes:
        if home.is_open:
            left = max(0, top - home.pods)
            pinned += min(home.pinned, left)
            rest += max(0, left - home.pinned)
    return pinned + min(free, rest)


def _reaches(homes: Sequence[PinnedDomain], minimum: int, free: int) -> bool:
    if any(home.pods < minimum and not home.is_open for home in homes):
        return False
    # Pinned pods fill their own domains. Free pods have to supply the rest.
    return sum(max(0, minimum - home.pods - home.pinned) for home in homes) <= free


@lru_cache(maxsize=1024)  # Zones differ by their names more than by these numbers.
def stranded(replicas: int, max_skew: int, staying: int, lost: int, *, pinned: bool) -> int:
    """Return the fewest Pending pods after a loss of domains.

    The lost domains still count, with 0 pods. Before the loss, the replicas had any distribution allowed by maxSkew.
    The result is 0 if no larger number can be proved.

    Args:
        replicas: The number of pods.
        max_skew: maxSkew.
        staying: The number of domains left.
        lost: The number of lost domains.
        pinned: Whether the global minimum was 0 before the loss.
    """
    if replicas <= max_skew * staying:
        return 0
    domains = staying + lost
    most = 0 if pinned else replicas // domains
    if min(max_skew, most) > MAX_PODS_ON_A_HOST:
        return 0
    # The lost domains had at least minimum * lost pods. They also had all pods beyond the room of the staying domains,
    # replicas - (minimum + maxSkew) * staying. Above maxSkew, the loss is smallest where both numbers are equal. Minima
    # up to maxSkew are all tried.
    equal = (replicas - max_skew * staying) // domains
    minima = {*range(min(max_skew, most) + 1), *(minimum for minimum in (equal, equal + 1, most) if minimum <= most)}
    waiting = [
        replicas - _left(replicas, minimum, max_skew, staying, lost)
        for minimum in minima
        if replicas <= (minimum + max_skew) * domains
    ]
    return max(0, min(waiting, default=0))


def _left(replicas: int, minimum: int, max_skew: int, staying: int, lost: int) -> int:
    """Return the most pods that can run after a loss of domains.

    Args:
        replicas: The number of pods before the loss. Lost pods are replaced in the domains left.
        minimum: The global minimum before the loss.
        max_skew: maxSkew.
        staying: The number of domains left.
        lost: The number of lost domains.
    """
    survivors = replicas - max(minimum * lost, replicas - (minimum + max_skew) * staying)
    if minimum >= max_skew:
        return survivors
    # With a minimum of 0, a domain takes replacements up to maxSkew. The best case is the most uneven: as many domains
    # as possible are above maxSkew already, and the others have as few pods as possible.
    full, rest = divmod(survivors - minimum * staying, max_skew)
    if full >= staying:
        return survivors
    return full * (minimum + max_skew) + (staying - full - 1) * max_skew + max(minimum + rest, max_skew)
