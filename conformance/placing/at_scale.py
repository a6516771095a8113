"""Crossing keys on 80 to 350 nodes beside the scheduler's own filters: python -m conformance.placing.at_scale ORACLE SEED COUNT

No search follows all orders there. `oracle place` tries single orders with the real plugins, and each must end between
our bounds. Where we say that pods can get stuck, the real plugins must admit no further pod at the end that we found.
Prints a row for the table of docs/exactness-workloads.md; exit code 1 for a difference.
"""

import json
import os
import random
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from conformance.claims.referee import Referee
from conformance.placing.ours import index_of, batches_of
from conformance.placing.worlds import crossing_at_scale
from webhook.core.placement.game_from_cluster import game_of
from webhook.core.placement.placement_verdict import PlacementVerdict
from webhook.core.placement.simulation import simulate

ORDERS = 10


def differences(of, found, referee):
    """What the real filters say otherwise."""
    theirs = referee.place({**of, "states": 1, "samples": ORDERS})
    if found.fewest is not None and not found.fewest <= theirs["fewest"] <= theirs["most"] <= found.most:
        yield "bounds", (found.fewest, found.most), (theirs["fewest"], theirs["most"])
    if found.witness:
        placed = []
        for number, step in enumerate(found.witness):
            like = json.loads(json.dumps(of["template"]))
            like["metadata"]["name"], like["spec"]["nodeName"] = f"placed-{number}", step.node
            placed.append(like)
        ended = referee.place({**of, "pods": of["pods"] + placed, "replicas": 1})
        if ended["first"]:
            yield "not stuck", [step.node for step in found.witness], ended["first"]


def compare(oracle, seed, numbers):
    verdicts, slowest, different = Counter(), 0.0, []
    with Referee(oracle) as referee:
        for number in numbers:
            of = {"id": f"at scale/{seed}/{number}", **crossing_at_scale(random.Random(f"at scale/{seed}/{number}"))}
            index = index_of(of)
            began = time.process_time()
            found = simulate(game_of(batches_of(of, index), index))
            slowest = max(slowest, time.process_time() - began)
            verdicts[found.verdict] += 1
            verdicts["without bounds"] += found.fewest is None
            different += [(of["id"], *each) for each in differences(of, found, referee)]
    return verdicts, slowest, different


def main():
    oracle, seed, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    every, slowest, different = Counter(), 0.0, []
    chunks = [range(first, min(first + 10, count)) for first in range(0, count, 10)]
    with ProcessPoolExecutor(min(os.cpu_count() or 1, 2), initializer=os.nice, initargs=(10,)) as pool:
        for verdicts, seconds, found in pool.map(compare, [oracle] * len(chunks), [seed] * len(chunks), chunks):
            every, slowest, different = every + verdicts, max(slowest, seconds), different + found
    for each in different:
        print(each)
    told = ", ".join(f"{outcome} {every[outcome]:,}" for outcome in PlacementVerdict)
    print(f"crossing keys at scale: {count:,} clusters of seed {seed}: {told}; without bounds {every['without bounds']:,}")
    print(f"slowest verdict {slowest:.2f} s of processor time; {len(different)} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
