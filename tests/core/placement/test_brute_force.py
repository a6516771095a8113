"""What the search says of small worlds, against trying every order with filters that share no code with ours."""

from collections import Counter
from itertools import count, islice

import pytest
from brute_force import World

from conformance.placing.ours import answer, has_packing_pools
from conformance.placing.worlds import FAMILIES, MANIFESTS, world

WORLDS = 20  # of each family; conformance/README.md says how to try more
PLACES = 3_000  # nodes to the power of pods


def small_worlds(family):
    for number in count():
        of = world(family, "brute", number)
        if len(of["nodes"]) ** (of["replicas"] if "template" in of else len(of["ordinals"])) <= PLACES:
            yield of


def tried(of):
    """How probable each number of placed pods is, and the most pods of a rollout that stay."""
    tried, chances, left = World(of), Counter(), 0
    for end, chance in tried.outcomes().items():
        old = sum(kind == 1 for _, kind in end) if "rollout" in of else 0
        chances[len(end) - old] += chance
        left = max(left, old)
    return chances, left


@pytest.mark.parametrize("family", [each for each in FAMILIES if each not in MANIFESTS])
def test_every_order_ends_as_by_brute_force(family):
    for of in islice(small_worlds(family), WORLDS):
        said, (chances, left) = answer(of), tried(of)
        assert (said["ends"].keys(), said["left"]) == (chances.keys(), left), of["id"]
        # How many nodes of a pool still take a pod is not known; deletions are drawn in another way.
        if "rollout" not in of and not has_packing_pools(of):
            assert said["ends"] == pytest.approx({pods: float(chance) for pods, chance in chances.items()}), of["id"]
