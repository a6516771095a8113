"""Measure `evenspread check` of a file, of 1,000 documents, and of large input.

    python -m bench.command_line [--runs 20]

Each number is for a whole process, from start to exit. The best run is the cost of the command. The median includes
other load of the machine. The first lines compare processor times in turns, as multiples of Python's start with the
three packages of a check. Modules are compiled before the first run.
"""

import argparse
import json
import os
import shlex
import statistics
import sys
import tempfile
import time
from itertools import chain, repeat
from pathlib import Path

from bench.figure import at_most

COMMAND = ["-c", "from webhook.cli.main import run; run()"]
IMPORTS = ["-c", "import click, yaml, msgspec"]
GOAL = 3.5  # times the processor time of IMPORTS, for a check of one file
MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-{number}
  namespace: shop
  labels: {{app.kubernetes.io/name: web, app.kubernetes.io/instance: "{number}"}}
spec:
  replicas: 6
  selector:
    matchLabels: {{app: web-{number}}}
  template:
    metadata:
      labels: {{app: web-{number}, tier: front}}
    spec:
      serviceAccountName: web
      securityContext: {{runAsNonRoot: true, fsGroup: 1000}}
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {{matchLabels: {{app: web-{number}}}}}
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {{matchLabels: {{app: web-{number}}}}}
      containers:
      - name: web
        image: registry.example/web:1.2.3
        env:
        - {{name: A, value: "1"}}
        - name: B
          valueFrom: {{secretKeyRef: {{name: secret, key: key}}}}
        ports:
        - {{name: http, containerPort: 8080, protocol: TCP}}
        livenessProbe: {{httpGet: {{path: /healthz, port: http}}, initialDelaySeconds: 3}}
        readinessProbe: {{httpGet: {{path: /ready, port: http}}}}
        resources:
          requests: {{cpu: 100m, memory: 128Mi}}
          limits: {{memory: 256Mi}}
"""
CONSTRAINT = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


def inputs():
    """Yield the name of each case, with the suffix and the text of its file, in pieces to save memory."""
    yield "one file", ".yaml", [MANIFEST.format(number=0)]
    yield "1,000 documents", ".yaml", ("---\n" + MANIFEST.format(number=number) for number in range(1000))
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"topologySpreadConstraints": [CONSTRAINT] * 5000}}
    yield "5,000 constraints with a finding each", ".json", [json.dumps(pod)]
    lines = (f"  key-{number}: value\n" for number in range(350_000))
    yield "a YAML document of 7 MiB", ".yaml", chain(["apiVersion: v1\nkind: ConfigMap\ndata:\n"], lines)
    yield "a JSON list of 50 MiB, 20,000 objects", ".json", json_list()
    yield "a YAML document of 50 MiB (refused)", ".yaml", repeat("key: value\n", 50 * 2**20 // 11)


def json_list():
    yield '{"apiVersion": "v1", "kind": "List", "items": ['
    for number in range(20_000):
        value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}"}, "data": {"a": "x" * 2500}}
        yield json.dumps(value) + ("," if number < 19_999 else "]}")


def processor_seconds(arguments):
    """Return the processor seconds of a Python process, and its largest resident set in MiB."""
    nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    child = os.posix_spawn(sys.executable, [sys.executable, *arguments], environment, file_actions=nowhere)
    _, _, usage = os.wait4(child, 0)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024


def measured(arguments, runs):
    """Return wall and processor seconds of each run, and the largest resident set in MiB."""
    walls, processor, largest = [], [], 0
    for _ in range(runs):
        start = time.perf_counter()
        seconds, resident = processor_seconds([*COMMAND, *arguments])
        walls.append(time.perf_counter() - start)
        processor.append(seconds)
        largest = max(largest, resident)
    return walls, processor, largest


def times_the_imports(arguments, runs):
    """Return the median ratio of a command's processor time to the time of IMPORTS, in turns."""
    processor_seconds([*COMMAND, *arguments])
    pairs = [(processor_seconds([*COMMAND, *arguments])[0], processor_seconds(IMPORTS)[0]) for _ in range(runs)]
    return statistics.median(ours / imports for ours, imports in pairs)


def figures():
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "web.yaml")
        path.write_text(MANIFEST.format(number=0))
        ratio = times_the_imports(["check", "--fail-on", "never", str(path)], 9)
    return [at_most("check of a file, to importing its three packages", ratio, GOAL, "times")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20, help="of the small cases; the large ones run three times")
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "web.yaml")
        path.write_text(MANIFEST.format(number=0))
        for arguments in (["--version"], ["--help"], ["check", "--fail-on", "never", str(path)]):
            print(f"{arguments[0]}: {times_the_imports(arguments, runs):.2f} times python {shlex.join(IMPORTS)}")
        print(f"The goal of check is at most {GOAL}.")
    print(f"{'case':40} {'best':>8} {'median':>8} {'cpu':>8} {'memory':>9}")
    report("version", ["version"], runs)
    report("check --help", ["check", "--help"], runs)
    with tempfile.TemporaryDirectory() as directory:
        for name, suffix, pieces in inputs():
            path = Path(directory, name.replace(" ", "-") + suffix)
            with path.open("w") as file:
                file.writelines(pieces)
            report(name, ["check", "--fail-on", "never", str(path)], runs if path.stat().st_size < 4096 else 3)


def report(name, arguments, runs):
    walls, processor, memory = measured(arguments, runs)
    best, median = min(walls), statistics.median(walls)
    print(f"{name:40} {best:7.3f}s {median:7.3f}s {min(processor):7.3f}s {memory:5} MiB", flush=True)


if __name__ == "__main__":
    main()
