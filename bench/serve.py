"""Compare the webhook over TLS with a Go net/http server with the same answer, in alternating rounds.

    python -m bench.serve [--rounds N] [--seconds S]

Each server has its own core (Go with GOMAXPROCS=1), and the client has another. The output has medians over the rounds
and their ratios: a closed loop with 1, 8 and 64 kept connections, with the CPU time of a request (less sensitive to
other load), an open loop with 200 and 1,000 requests a second, the time from start to the first answer, and resident
memory. Needs Go and taskset.
"""

import argparse
import contextlib
import http.client
import json
import os
import shutil
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.figure import at_most
from bench.static_review import CASES
from certs.authority import issue_authority, issue_leaf
from certs.store import write_pair, write_public

PEER = Path(__file__).parent / "peer"
BODY = CASES["two right constraints"]
CLOSED = (1, 8, 64)
OPEN = (200, 1000)
SERVER_CORE, LOAD_CORE = "0", "1"
MEASURES = ("perSecond", "cpuMicroseconds", "p50Milliseconds", "p99Milliseconds")
# Enough for the API servers' habit of dialling in bursts: six transports of 160.
BURST = 960


def built():
    """The Go program."""
    if shutil.which("go") is None or shutil.which("taskset") is None:
        sys.exit("bench.serve needs Go and taskset (util-linux)")
    done = subprocess.run([PEER / "build.sh"], check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603  our own
    return Path(done.stdout.strip())


def on(core, *command):
    return ["taskset", "-c", core, *map(str, command)]


@contextlib.contextmanager
def running(command, environment, first_line):
    """Start a server. Yields its process, and the line with its address."""
    process = subprocess.Popen(  # noqa: S603  our own program
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | environment
    )
    try:
        while not first_line(line := process.stdout.readline()):
            if not line:
                sys.exit(f"{command[3]} did not start")
        yield process, line
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


@contextlib.contextmanager
def ours(directory):
    command = on(SERVER_CORE, Path(sys.executable).with_name("evenspread"), "webhook", "--bind", "127.0.0.1:0")
    command += ["--health-bind", "127.0.0.1:0", "--drain-seconds", "0"]
    command += ["--cert", str(directory / "tls/live/tls.crt"), "--key", str(directory / "tls/live/tls.key")]
    with running(command, {}, lambda line: '"answering"' in line) as (process, line):
        yield json.loads(line)["url"], process


@contextlib.contextmanager
def theirs(directory, program):
    files = ["-cert", directory / "tls/live/tls.crt", "-key", directory / "tls/live/tls.key"]
    with running(on(SERVER_CORE, program, "serve", *files), {"GOMAXPROCS": "1"}, lambda line: ":" in line) as (
        process,
        line,
    ):
        yield f"https://{line.strip()}", process


def load(program, directory, url, **settings):
    """One run of the generator."""
    flags = [text for name, value in settings.items() for text in (f"-{name}", str(value))]
    asked = ["-url", f"{url}/validate?timeout=2s", "-ca", directory / "ca.crt", "-body", directory / "review.json"]
    done = subprocess.run(  # noqa: S603  our own program
        on(LOAD_CORE, program, "load", *asked, *flags), check=True, capture_output=True, text=True
    )
    made = json.loads(done.stdout)
    if made["errors"]:
        sys.exit(f"{made['errors']} connections failed: {made['firstError']}")
    return made


def alternating(rounds, measure, servers):
    """Return medians by server. Each round measures one server after the other."""
    results = {name: [] for name in servers}
    for _ in range(rounds):
        for name, (url, process) in servers.items():
            before = cpu_seconds(process)
            made = measure(url)
            made["cpuMicroseconds"] = (cpu_seconds(process) - before) / made["requests"] * 1e6
            results[name].append(made)
    return {
        name: {key: statistics.median(result[key] for result in made) for key in MEASURES}
        for name, made in results.items()
    }


def family(process):
    """Return the process ids of a server, its worker and the processes of the worker."""
    found = [process.pid]
    for pid in found:  # grows meanwhile
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            found += map(int, children.read_text().split())
    return found


def cpu_seconds(process):
    """Return user and system time of a server so far."""
    stats = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in family(process))
    return sum(int(fields[11]) + int(fields[12]) for fields in stats) / os.sysconf("SC_CLK_TCK")


def resident(process):
    return memory(family(process))


def memory(pids):
    """Return MiB of these processes. Shared pages count once."""
    rollups = (Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in pids)
    return sum(int(text.partition("\nPss:")[2].split()[0]) for text in rollups) / 1024


def first_answer(directory):
    """Return wall-clock seconds from the start of the process to its first answer, and CPU seconds."""
    began = time.perf_counter()
    with ours(directory) as (url, process):
        host = url.removeprefix("https://")
        trust = ssl.create_default_context(cafile=directory / "ca.crt")
        connection = http.client.HTTPSConnection(host, context=trust, timeout=5)
        connection.request("POST", "/validate?timeout=2s", BODY, {"Content-Type": "application/json"})
        assert connection.getresponse().status == 200
        took = time.perf_counter() - began, cpu_seconds(process)
        connection.close()
    return took


@contextlib.contextmanager
def prepared():
    """Yield a folder with certificates and the posted review, and the Go program."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        directory, now = Path(name), datetime.now(UTC)
        authority = issue_authority(now)
        write_public(directory / "ca.crt", authority.certificate)
        write_pair(directory / "tls", issue_leaf(authority, ("localhost", "127.0.0.1"), now))
        (directory / "review.json").write_bytes(BODY)
        yield directory, built()


def figures():
    with prepared() as (directory, program), ours(directory) as mine, theirs(directory, program) as peer:
        made = alternating(
            3,
            lambda url: load(program, directory, url, connections=8, seconds=1.5),
            {"evenspread": mine, "Go": peer},
        )
    ratio = made["evenspread"]["cpuMicroseconds"] / made["Go"]["cpuMicroseconds"]
    return [at_most("validate, processor time to an empty Go webhook's", ratio, 1.4, "times")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    asked = parser.parse_args()
    with prepared() as (directory, program):
        compare(directory, program, asked)
        starts = [first_answer(directory) for _ in range(asked.rounds)]
        wall, cpu = (sorted(column) for column in zip(*starts, strict=True))
        print(f"\nstart to first answer: median {statistics.median(wall):.2f} s, best {wall[0]:.2f} s", end="")
        print(f"; of CPU {statistics.median(cpu):.2f} s")


def compare(directory, program, asked):
    with ours(directory) as (our_url, our_process), theirs(directory, program) as (their_url, their_process):
        servers = {"evenspread": (our_url, our_process), "Go": (their_url, their_process)}
        idle = resident(our_process), resident(their_process)
        print(f"{len(BODY)} bytes a review, {asked.rounds} rounds of {asked.seconds:g} s each\n")
        print(f"{'closed loop':>16} {'evenspread':>11} {'Go':>8} {'ratio':>6}  requests/s, one core each", end="")
        print(f"  {'evenspread':>11} {'Go':>8} {'ratio':>6}  CPU µs a request")
        for connections in CLOSED:
            made = alternating(
                asked.rounds,
                lambda url: load(program, directory, url, connections=connections, seconds=asked.seconds),  # noqa: B023  called at once
                servers,
            )
            mine, peer = (made[name]["perSecond"] for name in servers)
            print(f"{connections:>4} connections {mine:11.0f} {peer:8.0f} {mine / peer:6.2f} {'':26}", end="")
            mine, peer = (made[name]["cpuMicroseconds"] for name in servers)
            print(f"  {mine:11.0f} {peer:8.0f} {peer / mine:6.2f}", flush=True)
        print(f"\n{'open loop':>16} {'evenspread':>17} {'Go':>17}   p50 / p99 ms, 32 connections")
        for rate in OPEN:
            made = alternating(
                asked.rounds,
                lambda url: load(program, directory, url, connections=32, rate=rate, seconds=asked.seconds),  # noqa: B023  called at once
                servers,
            )
            cells = [f"{made[name]['p50Milliseconds']:.2f} / {made[name]['p99Milliseconds']:.2f}" for name in servers]
            print(f"{rate:>14}/s {cells[0]:>17} {cells[1]:>17}")
        for url, _ in servers.values():
            load(program, directory, url, connections=BURST, seconds=asked.seconds)
        after = resident(our_process), resident(their_process)
        print(f"\n{'resident':>16} {'evenspread':>11} {'Go':>8}   MiB")
        print(f"{'idle':>16} {idle[0]:11.0f} {idle[1]:8.0f}")
        print(f"{f'after {BURST}':>16} {after[0]:11.0f} {after[1]:8.0f}   connections at once")


if __name__ == "__main__":
    main()
