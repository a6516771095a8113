"""The limits on the nodes and domains of a pod class.

A pod class is a set of equal pods (`classes.PodClass`). A weight is the number that one pod adds to a count. It is 1
for a counted pod, 0 for another pod, or the requested amount of a resource.
"""

from operator import mul
from typing import NamedTuple

from msgspec import Struct

Pods = tuple[int, ...]  # One number for each pod class.


class NodeLimit(NamedTuple):
    """A limit on a node. The node admits another pod if ``sum(weight * pods) <= bound``.

    The sum is over the pod classes. ``pods`` is the number of pods of a class already on the node.

    Attributes:
        weights: For each pod class, the amount that a single pod adds to the sum.
        bound: The highest sum at which the node admits another pod.
    """

    weights: Pods
    bound: int


class NodeSpread(Struct, frozen=True):
    """A spread constraint with one node per domain (``kubernetes.io/hostname``).

    Attributes:
        weights: By pod class, 1 if the constraint counts its pods, else 0.
        closed_minimum: The lowest count among the counted nodes where the pods cannot run. None without such nodes.
    """

    weights: Pods
    closed_minimum: int | None


class DomainSpread(Struct, frozen=True):
    """A spread constraint over domains of several nodes, such as zones.

    Attributes:
        key: The number of the topology key.
        weights: For each pod class, 1 if the constraint counts its pods, else 0.
        base: The counted pods in each domain at the start, without pods that can be deleted.
        eligible: The numbers of the domains counted for the global minimum.
        counting: For each node class, whether the constraint counts pods on its nodes.
        enough: Whether at least minDomains domains are eligible.
    """

    key: int
    weights: Pods
    base: tuple[int, ...]
    eligible: tuple[int, ...]
    counting: tuple[bool, ...]
    enough: bool


class SpreadLimit(NamedTuple):
    """A spread constraint's limit for the pods of one class.

    Attributes:
        spread: The number of the constraint in the simulation.
        over: A domain admits a pod while the domain's count is at most the global minimum plus ``over``.
    """

    spread: int
    over: int


class AntiAffinityLimit(NamedTuple):
    """Forbids pods of a class in domains of ``key`` that already have matching pods.

    In ``weights``, a class has 1 if its pods match, else 0.
    """

    key: int
    weights: Pods


class AffinityLimit(Struct, frozen=True):
    """A pod class's required pod affinity, one topology key per term.

    A node admits pods of the class only if its domain of every key has a matching pod. The first pod may go anywhere if
    it matches its own terms.

    Attributes:
        keys: The numbers of the topology keys.
        weights: By pod class, 1 if its pods match all terms, else 0.
        base: By key, the domains with a matching pod at the start.
        matches_itself: Whether the class's pods match their own affinity terms.
    """

    keys: tuple[int, ...]
    weights: Pods
    base: tuple[frozenset[int], ...]
    matches_itself: bool


def weighted_sum(weights: Pods, pods: Pods) -> int:
    """Return the sum of weight * pods."""
    return sum(map(mul, weights, pods))
