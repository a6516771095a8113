"""Nodes are divided by many values of several labels as by few: value after value, label after label."""

import random

import pytest

from webhook.core.index.label_column import Column
from webhook.core.placement import node_classes


@pytest.mark.parametrize("seed", range(20))
def test_parts(seed, monkeypatch):
    rng = random.Random(seed)  # noqa: S311 no secret
    nodes = rng.choice([5, 70, 300])
    labels = [
        {key: str(rng.randrange(of)) for key, of in (("few", 3), ("many", nodes // 3 + 1)) if rng.random() < 0.9}
        for _ in range(nodes)
    ]
    columns = [Column(labels, key) for key in rng.sample(["few", "many"], rng.choice([1, 2]))]
    every, masks = rng.getrandbits(nodes), [rng.getrandbits(nodes), rng.getrandbits(nodes)]
    found = []
    for few in (0, 10**6):
        monkeypatch.setattr(node_classes, "_FEW_PARTS", few)
        found.append(node_classes._parts(every, masks, columns))
    assert found[0] == found[1]
    assert sum(found[0]) == every
