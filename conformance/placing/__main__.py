"""Whole workloads beside the scheduler's own filters: python -m conformance.placing ORACLE SEED COUNT [FAMILY...]

Random small clusters and workloads (`worlds`). What our search says of all orders is compared with `oracle place`, which
tries every order with the real plugins: the fewest and the most pods that find a node, how often each number comes out,
and of rollouts the most old pods that stay. Prints the table of docs/exactness-workloads.md, with the smallest world of each family
that differs or is unknown. Exit code 1 for a difference, or where more than 2 % of a family are unknown: one of the two
did not follow every order.

    --record SEED COUNT     the worlds and answers that `make test` compares without Go
"""

import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from conformance.claims.referee import Recording, Referee, write_cases
from conformance.placing.ours import STATES, answer, has_packing_pools
from conformance.placing.worlds import FAMILIES, world

RECORDED = Path(__file__).parent / "recorded.jsonl.gz"
CHUNK = 100
MOST_UNKNOWN = 0.02


def differences(of, referee):
    """What differs: our answer and the referee's, or ``exact`` where one of them did not follow every order."""
    theirs, ours = referee.place({**of, "states": STATES}), answer(of)
    if not (ours["exact"] and theirs["exact"]):
        return {"exact": (ours["exact"], theirs["exact"], ours.get("why", ""))}
    differs = {name: (ours[name], theirs.get(name, 0)) for name in ("fewest", "most", "left") if ours[name] != theirs.get(name, 0)}
    # With several kinds of pods the referee draws one of all pairs of pod and node, we a pod and then its node. How many
    # nodes of a pool still take a pod is not always known.
    if not {"ordinals", "rollout", "manifests"} & of.keys() and not has_packing_pools(of):
        drawn = {int(pods): chance for pods, chance in theirs["ends"].items()}
        if any(abs(ours["ends"].get(pods, 0) - chance) > 1e-9 for pods, chance in drawn.items()):
            differs["ends"] = ours["ends"], drawn
    return differs


def compare(oracle, family, seed, numbers):
    different, stuck = [], 0
    with Referee(oracle) as referee:
        for number in numbers:
            of = world(family, seed, number)
            if differs := differences(of, referee):
                different.append((of, differs))
            placed = referee.place({**of, "states": STATES})  # asked once, see above
            stuck += placed["fewest"] < placed["most"]
    return different, stuck


def run(oracle, seed, count, families):
    began, wrong, unknowns = time.monotonic(), 0, []
    print("| family | clusters | of these, orders place more or fewer | different | unknown |\n|---|---|---|---|---|", flush=True)
    with ProcessPoolExecutor(min(os.cpu_count() or 1, 2), initializer=os.nice, initargs=(10,)) as pool:
        chunks = [range(first, min(first + CHUNK, count)) for first in range(0, count, CHUNK)]
        for family in families:
            asked = [oracle] * len(chunks), [family] * len(chunks), [seed] * len(chunks), chunks
            found = [*pool.map(compare, *asked)]
            different = [each for some, _ in found for each in some]
            unknown = sum("exact" in differs for _, differs in different)
            told = f"{len(different) - unknown or 'none'} | {unknown or 'none'}"
            print(f"| {family} | {count:,} | {sum(stuck for _, stuck in found):,} | {told} |", flush=True)
            wrong += len(different) - unknown
            unknowns.append(unknown)
            if different:
                of, differs = min(different, key=lambda each: len(json.dumps(each[0])))
                print(f"{differs} {json.dumps(of)}")
    left = f"{wrong} different, {sum(unknowns)} unknown"
    print(f"\n{count * len(families):,} clusters of seed {seed}, {left}, {time.monotonic() - began:.0f} s")
    return 1 if wrong or max(unknowns) > max(1, count * MOST_UNKNOWN) else 0


def record(oracle, seed, count):
    cases = []
    with Referee(oracle) as referee:
        for family in FAMILIES:
            for number in range(count):
                recording, of = Recording(referee), world(family, seed, number)
                assert not differences(of, recording), of["id"]
                cases.append((of, recording.answers))
    write_cases(RECORDED, cases)
    print(f"{len(cases)} worlds in {RECORDED}")
    return 0


def main():
    oracle, first, *rest = sys.argv[1:]
    if first == "--record":
        return record(oracle, rest[0], int(rest[1]))
    return run(oracle, first, int(rest[0]), rest[1:] or [*FAMILIES])


if __name__ == "__main__":
    sys.exit(main())
