"""What was found once stays found: every kept input, and some hundred changes of them."""

import random

import pytest
from fuzzing.corpus import kept, mutated
from fuzzing.targets import TARGETS

CHANGES = 100


@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs_and_changes_of_them_are_read_or_refused(name):
    inputs, rng = kept(name), random.Random(14)  # noqa: S311 no secret
    assert len(inputs) > 20
    for data in [*inputs, *(mutated(inputs, rng) for _ in range(CHANGES))]:
        TARGETS[name](data)
