"""Measure a replica's memory for a cluster.

    python -m bench.memory

The whole program lists clusters of real-size objects from a stub (bench/cluster_list.py), each in a new process. Adding
one kind of object at a time gives the memory of each. Two further clusters are compared with the sum. Memory is MiB of
all processes, each page counted once: after the lists, and at most. Needs taskset.
"""

import json
import multiprocessing
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.cluster_list import serve
from bench.events import until_ready, watching
from bench.serve import family, resident
from certs.authority import issue_authority, issue_leaf
from certs.store import write_pair

KINDS = ("nodes", "pods", "replicasets")
STEPS = ((1, 0, 0), (5000, 0, 0), (5000, 150_000, 0), (5000, 150_000, 50_000))
OTHERS = ((100, 3000, 1000), (1000, 30_000, 10_000), (15_000, 450_000, 150_000))
SETTLED = 10  # seconds after the last list: the collector has run, and allocators have given back


def measured(counts):
    """Return MiB after the lists, and at most."""
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        directory, ready = Path(name), spawn.Queue()
        stub = spawn.Process(target=serve, args=(directory, dict(zip(KINDS, counts, strict=True)), ready), daemon=True)
        stub.start()
        ready.get()
        now = datetime.now(UTC)
        write_pair(directory / "tls", issue_leaf(issue_authority(now), ("localhost", "127.0.0.1"), now))
        with watching(directory) as (process, line):
            until_ready(json.loads(line)["health"])
            time.sleep(SETTLED)
            kept = resident(process)
            most = kept + sum(above(pid) for pid in family(process))
        stub.terminate()
        stub.join()
    return kept, most


def above(pid):
    """Return MiB that a process has used at most and has returned."""
    status = Path(f"/proc/{pid}/status").read_text()
    most, now = (int(status.partition(f"{name}:")[2].split()[0]) for name in ("VmHWM", "VmRSS"))
    return (most - now) / 1024


def main():
    found = []
    for counts in STEPS:
        found.append(measured(counts))
        told(counts, *found[-1])
    base = found[0][0]
    each = [
        (later - earlier) / added * 1024
        for (earlier, _), (later, _), added in zip(found, found[1:], STEPS[-1], strict=False)
    ]
    print(
        f"{base:.0f} MiB, and of KiB "
        + ", ".join(f"{size:.2f} a {kind[:-1]}" for kind, size in zip(KINDS, each, strict=True))
    )
    for counts in OTHERS:
        kept, most = measured(counts)
        told(counts, kept, most)
        summed = base + sum(count * size for count, size in zip(counts, each, strict=True)) / 1024
        print(f"    the sum gives {summed:.0f}, {(summed / kept - 1) * 100:+.0f} %")


def told(counts, kept, most):
    print(", ".join(f"{count:,} {kind}" for kind, count in zip(KINDS, counts, strict=True)), end=": ")
    print(f"{kept:.0f} MiB, {most:.0f} at most", flush=True)


if __name__ == "__main__":
    main()
