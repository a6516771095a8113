"""Which pods controllers remove, beside their own code: python -m conformance.removals PROGRAM SEED COUNT

For each random case (`cases`), compares what `webhook/core/pods_to_remove` reads and orders with the code of the
ReplicaSet, Job and StatefulSet controllers (`main.go`):

- which pods are active, and their ordinals
- which of two pods is removed first, with their UIDs
- the sets of pods that the controllers remove. With up to four pods every UID and order is tried, and each set that the
  tie groups allow has to come out.

Exit code 1 for a difference; prints the smallest case that shows it.

    --record SEED COUNT     the cases and answers that `make test` compares without Go
"""

import gzip
import json
import math
import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from conformance.removals.cases import NOW, case
from webhook.core.decoders import converted
from webhook.core.pods_to_remove.removal_order import job_groups, removal_groups
from webhook.core.pods_to_remove.running_pod import RemovalFields, active_pod

RECORDED = Path(__file__).parent / "recorded.jsonl.gz"
CHUNK = 250
NANOSECONDS = int(NOW.timestamp()) * 10**9


def running(pods):
    read = (active_pod(converted(pod, RemovalFields)) for pod in pods)
    return [pod for pod in read if pod is not None]


def differences(of, answer):
    """What differs: our answer and the controllers'."""
    pods = running(of["pods"])
    related = Counter(pod.node for pod in running(of["related"]))
    replica_set, job = removal_groups(pods, related, NANOSECONDS), job_groups(pods)
    ours = {
        "active": [pod.name for pod in pods],
        "ordinals": {pod.name: -1 if pod.ordinal is None else pod.ordinal for pod in pods},
        "less": {pod.name: [other.name for other in pods if is_less(pod, other, related)] for pod in pods},
    }
    theirs = {**answer, "ordinals": {name: answer["ordinals"][name] for name in ours["ordinals"]}}
    differs = {name: (value, theirs[name]) for name, value in ours.items() if value != theirs[name]}
    every = of["tries"] == 0
    for name, groups in (("replicaSet", replica_set), ("job", job)):
        if of["tries"] >= 0 and (wrong := misplaced(groups, answer[name], every)):
            differs[name] = wrong
    return differs


def is_less(pod, other, related):
    """Whether the ReplicaSet controller removes this pod before the other: by our groups, and in a group by UIDs."""
    first, *rest = removal_groups((pod, other), related, NANOSECONDS)
    if rest:
        return first == (pod,)
    times = (pod.ready_since, pod.created), (other.ready_since, other.created)
    return times[0] != times[1] and pod.uid < other.uid


def misplaced(groups, removed, every):
    """Sets of removed pods that the groups do not allow; with ``every``, also the number of those that never came out."""
    names = [{pod.name for pod in group} for group in groups]
    wrong, found = [], Counter()
    for text in removed:
        left = set(text.split())
        found[len(left)] += 1
        for group in names:
            if not group <= left:
                break
            left -= group
        if not left <= group:
            wrong.append(text)
    if every:
        wrong += [(size, count) for size, count in allowed(names).items() if found[size] != count]
    return wrong


def allowed(names):
    """How many sets of each size the groups allow."""
    counts, before = {}, 0
    for group in names:
        counts |= {before + some: math.comb(len(group), some) for some in range(1, len(group) + 1)}
        before += len(group)
    return {size: count for size, count in counts.items() if size < before}


def asked(program, cases):
    lines = "".join(json.dumps(of) + "\n" for of in cases)
    answered = subprocess.run([program], input=lines, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [json.loads(line) for line in answered.splitlines()]


def compare(program, seed, numbers):
    cases = [case(seed, number) for number in numbers]
    compared, different = Counter(), []
    for of, answer in zip(cases, asked(program, cases), strict=True):
        pods = len(answer["active"])
        compared += Counter(pairs=pods * (pods - 1), sets=len(answer["replicaSet"]) + len(answer["job"]), all=of["tries"] == 0)
        if differs := differences(of, answer):
            different.append((of, differs))
    return compared, different


def run(program, seed, count):
    began, compared, different = time.monotonic(), Counter(), []
    chunks = [range(first, min(first + CHUNK, count)) for first in range(0, count, CHUNK)]
    with ProcessPoolExecutor(min(os.cpu_count() or 1, 2), initializer=os.nice, initargs=(10,)) as pool:
        for some, wrong in pool.map(compare, [program] * len(chunks), [seed] * len(chunks), chunks):
            compared += some
            different += wrong
    if different:
        of, differs = min(different, key=lambda each: len(json.dumps(each[0])))
        print(f"{differs} {json.dumps(of)}")
    print(
        f"{count:,} cases of seed {seed}, {compared['pairs']:,} pairs of pods, {compared['sets']:,} sets of removed pods, "
        f"every UID and order in {compared['all']:,} cases: {len(different)} different, {time.monotonic() - began:.0f} s"
    )
    return 1 if different else 0


def record(program, seed, count):
    cases = [case(seed, number) for number in range(count)]
    with open(RECORDED, "wb") as out, gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="") as packed:
        for of, answer in zip(cases, asked(program, cases), strict=True):
            assert not differences(of, answer), of["id"]
            packed.write((json.dumps({"case": of, "answer": answer}, sort_keys=True) + "\n").encode())
    print(f"{count} cases in {RECORDED}")
    return 0


def main():
    program, first, *rest = sys.argv[1:]
    return record(program, rest[0], int(rest[1])) if first == "--record" else run(program, first, int(rest[0]))


if __name__ == "__main__":
    sys.exit(main())
