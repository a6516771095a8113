"""Random reviews are answered; see `bodies`, which runs for as long as one likes."""

import os
import random

import pytest
from properties import bodies
from properties.bodies import faults

REVIEWS = 300


@pytest.mark.slow
def test_every_review_is_answered_and_no_patch_repeats():
    start = 0 if "CI" in os.environ else random.randrange(10**9)  # noqa: S311 nothing secret
    for number in range(start, start + REVIEWS):
        assert faults(number) == [], f"review {number}"


def test_a_review_that_raises_is_a_fault(monkeypatch):
    monkeypatch.setattr("webhook.admission.review", lambda *_, **__: 1 / 0)
    assert faults(0)[0].startswith("validate failed")


def test_a_patch_that_repeats_is_a_fault(monkeypatch):
    monkeypatch.setattr(bodies, "patched", lambda value, *_: value)
    assert any(each.startswith("the patch repeats") for number in range(200) for each in faults(number))
