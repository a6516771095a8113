"""What reports and events cost etcd and the API server, of 1,000 workloads with findings, on a real control plane.

    PYTHONPATH=tests python -m e2e.report_cost [--workloads 1000] [--namespaces 10]

Deployments without pods, each with a faulty constraint, and the controller with the chart's rights. It scans for the
first time; then nothing changes for a while; then every constraint changes at once, so that every report says something
else; then all are deleted. Counted are what etcd holds of reports and events, and its puts and deletes. Prints a table
for docs/reports.md.
"""

import argparse
import base64
import json
import pathlib
import re
import tempfile
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import NamedTuple

from e2e.controlplane.up import ControlPlane, built
from e2e.objects import constraint, path, workload
from e2e.scanning import Scanning, permit, scanning
from e2e.test_reports import served
from e2e.waiting import eventually, within

_API = "openreports.io/v1alpha1"
_REPORTS, _EVENTS = "/registry/openreports.io/", "/registry/events/"
_QUIET_SECONDS = 60.0
_LONGEST_SECONDS = 900.0


class Held(NamedTuple):
    """Keys and bytes in etcd, keys included."""

    keys: int
    bytes: int


def held(plane: ControlPlane, prefix: str) -> Held:
    """What etcd holds under a prefix, without what it keeps of the past."""
    end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    asked = {"key": base64.b64encode(prefix.encode()).decode(), "range_end": base64.b64encode(end.encode()).decode()}
    where, content = f"{plane.etcd}/v3/kv/range", json.dumps(asked).encode()
    with urllib.request.urlopen(where, content, timeout=60) as answer:  # noqa: S310 our own
        found = json.load(answer).get("kvs", ())
    return Held(len(found), sum(len(base64.b64decode(each[part])) for each in found for part in ("key", "value")))


def changes(plane: ControlPlane) -> int:
    """Puts and deletes since etcd began, whoever asked for them."""
    with urllib.request.urlopen(f"{plane.etcd}/metrics", timeout=10) as answer:  # noqa: S310 our own
        text = answer.read().decode()
    return sum(int(float(each)) for each in re.findall(r"^etcd_mvcc_(?:put|delete)_total (\S+)$", text, re.MULTILINE))


def everywhere(plane: ControlPlane, names: list[tuple[str, str]], act: Callable[..., object]) -> None:
    """Do something for each workload, a few at a time."""

    def some(at: int) -> None:
        with closing(plane.connect()) as api:
            for namespace, name in names[at::8]:
                act(api, namespace, name)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(some, range(8)))


def create(api, namespace: str, name: str) -> None:
    wrong = constraint(labelSelector={"matchLabels": {"app": "old"}})
    api.request("POST", path("Deployment", namespace), workload("Deployment", name, wrong, replicas=0))


def change(api, namespace: str, name: str) -> None:
    other = [constraint(labelSelector={"matchLabels": {"app": "older"}})]
    patch = {"spec": {"template": {"spec": {"topologySpreadConstraints": other}}}}
    api.request("PATCH", path("Deployment", namespace, name), patch, "application/merge-patch+json")


def delete(api, namespace: str, name: str) -> None:
    api.request("DELETE", path("Deployment", namespace, name))


class Row(NamedTuple):
    what: str
    seconds: float
    writes: float
    changes: int
    reports: Held
    events: Held


def settled(plane: ControlPlane, leader: Scanning, fact: Callable[[], bool], what: str) -> Row:
    """What it took until the fact; ``writes`` are the controller's own, of reports and events."""
    began, before, done = time.monotonic(), written(leader), changes(plane)
    within(_LONGEST_SECONDS, fact, 0.5)
    took = time.monotonic() - began
    return Row(what, took, written(leader) - before, changes(plane) - done, held(plane, _REPORTS), held(plane, _EVENTS))


def written(leader: Scanning) -> float:
    reports = [leader.metric("evenspread_report_writes_total", f'outcome="{each}"') for each in ("written", "removed")]
    return sum(each or 0 for each in (*reports, leader.metric("evenspread_scan_events_total", 'outcome="told"')))


def measured(plane: ControlPlane, folder: pathlib.Path, names: list[tuple[str, str]]) -> list[Row]:
    permit(plane)
    account = eventually(lambda: plane.service_account("scanning", "evenspread-controller"), 30)
    with served(plane, _API), scanning(folder / "controller", account) as leader:
        eventually(lambda: leader.metric("evenspread_leader") == 1, 30)
        leader.scanned()
        everywhere(plane, names, create)
        rows = [settled(plane, leader, lambda: held(plane, _REPORTS).keys == len(names), "all are new")]
        leader.scanned()
        until = time.monotonic() + _QUIET_SECONDS
        rows.append(settled(plane, leader, lambda: time.monotonic() > until, "nothing changes"))
        everywhere(plane, names, change)
        before = written(leader)
        rows.append(
            settled(plane, leader, lambda: written(leader) - before >= len(names), "all change, once the objects have")
        )
        everywhere(plane, names, delete)
        rows.append(settled(plane, leader, lambda: not held(plane, _REPORTS).keys, "all are deleted"))
        return rows


def table(rows: list[Row]) -> str:
    lines = ["| | seconds | our writes a minute | etcd's changes a minute | reports | events |"]
    lines.append("|---|---:|---:|---:|---:|---:|")
    for each in rows:
        minutes = each.seconds / 60
        held_ = " | ".join(f"{of.keys:,}, {of.bytes / 1024:,.0f} KiB" for of in (each.reports, each.events))
        rates = f"{each.writes / minutes:,.0f} | {each.changes / minutes:,.0f}"
        lines.append(f"| {each.what} | {each.seconds:.0f} | {rates} | {held_} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workloads", type=int, default=1000)
    parser.add_argument("--namespaces", type=int, default=10)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ControlPlane(pathlib.Path(folder) / "plane", built()) as plane:
        plane.add_nodes({"a": 2, "b": 2, "c": 2})
        plane.await_nodes()
        names = [f"team-{number}" for number in range(asked.namespaces)]
        for name in names:
            plane.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        workloads = [(names[number % len(names)], f"web-{number}") for number in range(asked.workloads)]
        rows = measured(plane, pathlib.Path(folder), workloads)
    print(f"{asked.workloads:,} workloads in {asked.namespaces} namespaces, {time.strftime('%-d %B %Y')}\n")
    print(table(rows))


if __name__ == "__main__":
    main()
