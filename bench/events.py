"""Measure the effect of a thousand watch events a second on the admission path.

    python -m bench.events [--pods 150000] [--rounds 5] [--seconds 5]

A stub API server lists pods and nodes of real size, and the webhook watches them. A client sends 200 reviews a second,
in turns without events, and with 1,000 MODIFIED pods a second, each moved to another node. The output has p50 and p99,
and those of a Go net/http server with the same answer and no cluster. As installed by the chart, audit-only rules run
in the scan. The servers have one core, the stub and the client the other. Needs Go and taskset.
"""

import argparse
import contextlib
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import NamedTuple

from bench.cluster_list import PER_NODE, Stub, serve
from bench.figure import at_most
from bench.serve import BODY, SERVER_CORE, built, load, on, running, theirs
from certs.authority import issue_authority, issue_leaf
from certs.store import write_pair, write_public

RATE = 200
EVENTS = 1000
_BATCHES = 100  # a second


class Telling(Stub):
    """The stub API server, with pods that move from node to node on request."""

    asked = None

    def tell(self, kind):
        if kind != "pods":
            super().tell(kind)
        number = 0
        while True:
            began = time.monotonic()
            if self.asked.value:
                lines = []
                for _ in range(EVENTS // _BATCHES):
                    number = (number + 7919) % self.counts["pods"]
                    node = number // PER_NODE
                    there, here = b'"node-%d"' % node, b'"node-%d"' % ((node + 1) % self.counts["nodes"])
                    lines.append(b'{"type":"MODIFIED","object":%s}\n' % self.item("pods", number).replace(there, here))
                body = b"".join(lines)
                self.wfile.write(b"%x\r\n%b\r\n" % (len(body), body))
                self.wfile.flush()
            time.sleep(max(0.0, began + 1 / _BATCHES - time.monotonic()))


def stub(folder, counts, ready, asked):
    Telling.asked = asked
    serve(folder, counts, ready, Telling)


def watching(directory):
    command = on(SERVER_CORE, Path(sys.executable).with_name("evenspread"), "webhook", "--bind", "127.0.0.1:0")
    command += ["--kubeconfig", str(directory / "kubeconfig"), "--no-register", "--drain-seconds", "0"]
    command += ["--health-bind", "127.0.0.1:0", "--log-level", "info", "--leave-audit-to-scan"]
    command += ["--cert", str(directory / "tls/live/tls.crt"), "--key", str(directory / "tls/live/tls.key")]
    return running(command, {}, lambda line: '"answering"' in line)


def until_ready(url):
    for _ in range(1200):
        try:
            with urllib.request.urlopen(f"{url}/readyz") as answer:  # noqa: S310  our own server
                return answer.read().decode()
        except urllib.error.HTTPError:
            time.sleep(0.1)
    sys.exit("the webhook did not become ready")


class Servers(NamedTuple):
    """The servers, their addresses and the client. While ``asked`` is 1, pods move."""

    program: Path
    directory: Path
    ours: str
    go: str
    asked: Synchronized


@contextlib.contextmanager
def beside_a_cluster(pods):
    """Start the webhook with the stub's cluster, and the Go server."""
    # The namespace that the reviews name: one that the webhook does not know would be waited for.
    counts = {"pods": pods, "nodes": pods // PER_NODE, "namespaces": 1}
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        directory = Path(name)
        program = built()
        ready, asked = spawn.Queue(), spawn.Value("b", 0)
        process = spawn.Process(target=stub, args=(directory, counts, ready, asked), daemon=True)
        process.start()
        ready.get()
        now = datetime.now(UTC)
        authority = issue_authority(now)
        (directory / "api.crt").write_bytes((directory / "ca.crt").read_bytes())
        write_public(directory / "ca.crt", authority.certificate)
        write_pair(directory / "tls", issue_leaf(authority, ("localhost", "127.0.0.1"), now))
        (directory / "review.json").write_bytes(BODY)
        with watching(directory) as (_, line), theirs(directory, program) as (peer, _):
            said = json.loads(line)
            until_ready(said["health"])
            yield Servers(program, directory, said["url"], peer, asked)
        process.terminate()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0)
    given = parser.parse_args()
    with beside_a_cluster(given.pods) as servers:
        compare(servers, given)


def in_turns(servers, rounds, seconds):
    """Return the results of each round by server."""
    urls = {"still": servers.ours, "events": servers.ours, "Go": servers.go}
    results = {name: [] for name in urls}
    for _ in range(rounds):
        for name, url in urls.items():
            servers.asked.value = name == "events"
            time.sleep(0.5)
            asking = {"connections": 32, "rate": RATE, "seconds": seconds}
            results[name].append(load(servers.program, servers.directory, url, **asking))
            servers.asked.value = 0
    return results


def figures():
    """Return the figures for a fifth of the pods, in three short rounds."""
    with beside_a_cluster(30_000) as servers:
        results = in_turns(servers, 3, 2)
    slower = statistics.median(
        ours["p99Milliseconds"] - go["p99Milliseconds"]
        for ours, go in zip(results["events"], results["Go"], strict=True)
    )
    return [at_most("p99 at 200/s with 1,000 events/s, above Go's", slower, 1.5, "ms")]


def compare(servers, given):
    print(f"{RATE} reviews/s, {given.pods} pods, {given.rounds} rounds of {given.seconds:g} s; p50 / p99 ms")
    printed(in_turns(servers, given.rounds, given.seconds))


def printed(results):
    """Print a line of medians for each name."""
    width = max(map(len, results))
    for name, made in results.items():
        p50, p99 = (statistics.median(each[key] for each in made) for key in ("p50Milliseconds", "p99Milliseconds"))
        rounds = [each["p99Milliseconds"] for each in made]
        print(f"{name:>{width}} {p50:6.2f} / {p99:6.2f}   p99 of each round {rounds}")


if __name__ == "__main__":
    main()
