"""Compare static reviews of two checkouts of this repository in one run, by processor time.

    python -m bench.alternating ../before .

Each checkout needs its own ``.venv``, and runs the cases of its own `bench.static_review`. The output has the median of
each checkout, and the median ratio of neighbouring chunks. Other load affects both sides of a ratio. The garbage
collector runs as rarely as in the program. The case "scanned" has 5,000 nodes and a controller, so audit-only rules run
in its scan.
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path

ROUNDS = 15
CALLS = {"alone": 400, "5,000 nodes": 40, "scanned": 40}

WORKER = """
import gc, json, sys, time
from bench import static_review as bench
cluster = bench.beside_nodes(0)
scanned = getattr(bench, "scanned", lambda engine: engine)  # older checkouts leave nothing to a scan
engines = {"alone": bench.ENGINE, "5,000 nodes": cluster, "scanned": scanned(cluster)}
gc.collect(); gc.freeze(); gc.set_threshold(getattr(bench, "COLLECT_AFTER", 700))
print(json.dumps([*bench.CASES]), flush=True)
for line in sys.stdin:
    case, engine, calls = json.loads(line)
    body, engine = bench.CASES[case], engines[engine]
    started = time.process_time()
    for _ in range(calls):
        bench.call(body, engine)
    print((time.process_time() - started) / calls * 1e6, flush=True)
"""


def start(tree):
    python = Path(tree).resolve() / ".venv" / "bin" / "python"
    pipe = subprocess.PIPE
    return subprocess.Popen([python, "-c", WORKER], cwd=tree, stdin=pipe, stdout=pipe, text=True)  # noqa: S603 - ours


def chunk(worker, *asked):
    """Unit: µs a call."""
    worker.stdin.write(f"{json.dumps(asked)}\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


def main():
    workers = [start(tree) for tree in sys.argv[1:3]]
    names, _ = [json.loads(worker.stdout.readline()) for worker in workers]
    print(f"{'case':30} {'':12} {'first µs':>9} {'second µs':>10} {'ratio':>6}")
    for engine, calls in CALLS.items():
        for name in names:
            for worker in workers:
                chunk(worker, name, engine, calls)
            pairs = []
            for number in range(ROUNDS):
                order = workers if number % 2 else workers[::-1]
                found = {id(worker): chunk(worker, name, engine, calls) for worker in order}
                pairs.append([found[id(worker)] for worker in workers])
            first, second = (statistics.median(column) for column in zip(*pairs, strict=True))
            ratio = statistics.median(now / before for before, now in pairs)
            print(f"{name:30} {engine:12} {first:9.1f} {second:10.1f} {ratio:6.2f}", flush=True)
    for worker in workers:
        worker.stdin.close()
        worker.wait()


if __name__ == "__main__":
    main()
