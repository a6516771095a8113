"""The published vectors: as the code has them now, and true by counting."""

import json
from collections import Counter
from fractions import Fraction

import pytest
from core.groups.test_caps import reachable
from core.groups.vectors import FILE, text

LINES = [json.loads(line) for line in FILE.read_text().splitlines()]
SMALL = [
    each for each in LINES if each["pods" if "pods" in each else "podsPerShard"] <= 12 and each.get("domains", 0) <= 6
]


def test_the_file_is_what_the_code_says():
    assert FILE.read_text() == text(), "make docs writes it anew"


@pytest.mark.parametrize("of", ["most", "fullest", "safeMaxSkew", "pins"])
def test_every_formula_is_there_and_true(of):
    mine = [each for each in SMALL if each["of"] == of]
    assert len(mine) > 20
    assert [each for each in mine if not TRUE[of](each)] == []


def is_most(of):
    share = Fraction(of.get("lessThan") or of["atMost"]) * of["pods"]
    fits = [many for many in range(of["pods"] + 1) if (many < share if "lessThan" in of else many <= share)]
    return of["most"] == max(fits)


def is_safe(of):
    kept = [skew for skew in range(1, of["pods"] + 1) if reachable(of["pods"], of["domains"], skew) <= of["most"]]
    return of["maxSkew"] == max(kept, default=None)


def are_pins(of):
    held = sum(min(room, of["shards"]) for room in of["rooms"].values())
    if of["zones"] is None:
        return held < of["shards"] * of["podsPerShard"]
    counts = Counter(zone for each in of["zones"] for zone in each)
    apart = all(len(set(each)) == of["podsPerShard"] for each in of["zones"])
    return apart and all(counts[zone] <= room for zone, room in of["rooms"].items())


TRUE = {
    "most": is_most,
    "fullest": lambda of: of["fullest"] == reachable(of["pods"], of["domains"], of["maxSkew"]),
    "safeMaxSkew": is_safe,
    "pins": are_pins,
}
