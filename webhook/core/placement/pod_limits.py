"""The limits on where the pods of a class can go.

A pod class is a set of equal pods (`classes.PodClass`). A weight is the addition of a pod to a count: 1 for a counted
pod, 0 for other pods, or the requested amount of a resource.
"""

from operator import mul
from typing import NamedTuple

from msgspec import Struct

Pods = tuple[int, ...]  # One number for each pod class.


class NodeLimit(NamedTuple):
    """A limit on a node: it admits a pod while ``sum(weight * pods) <= bound``.

    The sum is over the pods already on the node.
    """

    weights: Pods
    bound: int


class NodeSpread(Struct, frozen=True):
    """A spread constraint with one node per domain (``kubernetes.io/hostname``).

    Attributes:
        weights: 1 for each counted pod class.
        floor: The lowest count on nodes closed to the pods. None without such nodes.
    """

    weights: Pods
    floor: int | None


class DomainSpread(Struct, frozen=True):
    """A spread constraint over domains of several nodes, such as zones.

    Attributes:
        key: The number of the topology key.
        weights: 1 for each counted pod class.
        base: The pods in each domain at the start, without pods that can be deleted.
        eligible: The domains that count for the global minimum.
        counting: By node class, whether its pods count.
        enough: Whether there are at least minDomains eligible domains.
    """

    key: int
    weights: Pods
    base: tuple[int, ...]
    eligible: tuple[int, ...]
    counting: tuple[bool, ...]
    enough: bool


class SpreadLimit(NamedTuple):
    """The limit of a pod class by a spread constraint.

    Attributes:
        spread: The number of the constraint in the game.
        over: A domain admits a pod while its count is at most the global minimum plus this number.
    """

    spread: int
    over: int


class AntiAffinityLimit(NamedTuple):
    """Keeps pods of the class out of every domain of the key with a pod of non-zero weight."""

    key: int
    weights: Pods


class AffinityLimit(Struct, frozen=True):
    """Keeps pods of the class in domains with a pod of non-zero weight, for each of the keys.

    The first pod may go anywhere if it matches its own terms.

    Attributes:
        base: By key, the domains with a matching pod at the start.
    """

    keys: tuple[int, ...]
    weights: Pods
    base: tuple[frozenset[int], ...]
    matches_itself: bool


def weighted_sum(weights: Pods, pods: Pods) -> int:
    """Return the sum of weight * pods."""
    return sum(map(mul, weights, pods))
