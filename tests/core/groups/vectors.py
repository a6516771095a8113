"""Writes docs/group-vectors.jsonl.

A line is one question with its answer; ``of`` says which.
"""

import json
from fractions import Fraction
from itertools import product
from pathlib import Path

from webhook.core.api.well_known import ZONE
from webhook.core.groups.caps import Cap, fullest, safe_max_skew
from webhook.core.groups.pins import pin_zones

FILE = Path(__file__).parents[3] / "docs" / "group-vectors.jsonl"
PODS, DOMAINS = (2, 3, 4, 6, 8, 10, 12, 18, 24, 36, 60), (2, 3, 4, 6, 9, 14)
SHARES = ("1/3", "1/2", "2/3")


def vectors():
    for pods, share, strict in product(PODS, SHARES, (True, False)):
        most = Cap(topology_key=ZONE, amount=Fraction(share), of_pods=True, strict=strict).most(pods)
        yield {"of": "most", "pods": pods, "lessThan" if strict else "atMost": share, "most": most}
    for pods, domains in product(PODS, DOMAINS):
        for skew in sorted({1, 2, pods // 3, pods // 2, pods} - {0}):
            full = fullest(pods, domains, skew)
            yield {"of": "fullest", "pods": pods, "domains": domains, "maxSkew": skew, "fullest": full}
        for most in sorted({1, 2, -(-pods // 3) - 1, -(-pods // 2) - 1, pods} - {0}):
            safe = safe_max_skew(pods, domains, most)
            yield {"of": "safeMaxSkew", "pods": pods, "domains": domains, "most": most, "maxSkew": safe}
    for shards, pods, rooms in product((1, 3, 5, 9), (1, 2, 3), ((9, 9, 9), (2, 4, 6), (9, 9), (3, 3, 3, 9))):
        named = dict(zip("abcd", rooms, strict=False))
        loads = pin_zones(((),) * shards, pods, named)
        zones = None if loads is None else loads.of_shards
        yield {"of": "pins", "shards": shards, "podsPerShard": pods, "rooms": named, "zones": zones}


def text():
    return "".join(f"{json.dumps(each)}\n" for each in vectors())


if __name__ == "__main__":
    FILE.write_text(text())
