"""Measure the webhook's share of a pod's creation through a real API server, next to a minimal Go webhook.

    PYTHONPATH=tests python -m bench.creation [--rounds 7] [--pods 100]

A client creates pods over one connection, in turns in five namespaces: without a webhook, with a Go webhook
(`bench/peer`, it reads only the uid), with evenspread validating without a cluster, with evenspread mutating and
validating with a live feed, and with the policies of `evenspread compile`. The output has the median of a request, its
excess over the first namespace in the same round, and the webhook's processor time for a pod. Needs the control plane
of `make e2e`.
"""

import argparse
import contextlib
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from e2e.controlplane.up import ControlPlane
from e2e.controlplane.up import built as control_plane
from e2e.injected import injecting
from e2e.objects import path
from e2e.registration import Server, registered
from e2e.served import certified, serving
from e2e.waiting import eventually

from bench.serve import built, running
from bench.static_review import HOST, ZONE, container
from webhook.core.admission_policies.policies import admission_policies
from webhook.core.api.version import RECORDED
from webhook.core.policy.policy import Policy

SETTLING = 0.2  # seconds, in which the feed hears of the last pods
LABELS = {"app": "web", "team": "shop"}


def pod(name):
    """Return a pod for no scheduler and no kubelet, so that nothing else runs meanwhile."""
    spread = [{key: value for key, value in each.items() if key != "matchLabelKeys"} for each in (ZONE, HOST)]
    spec = {
        "containers": [container(number) for number in range(3)],
        "topologySpreadConstraints": spread,
        "schedulingGates": [{"name": "bench.example/wait"}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": LABELS}, "spec": spec}


def processor_seconds(pids):
    """Return the processor time of all threads of these processes."""
    files = [file for pid in pids for file in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(file.read_text().split()[0]) for file in files) / 1e9


def create(apis, namespace, pods, pids):
    """Create the pods over all connections at once.

    Returns the time of each request, and these processes' processor time for a pod, in ms.
    """

    def requests(first):
        took = []
        for number in range(first, pods, len(apis)):
            made = pod(f"web-{number}")
            began = time.perf_counter()
            apis[first].request("POST", path("Pod", namespace), made)
            took.append((time.perf_counter() - began) * 1e3)
        return took

    before = processor_seconds(pids)
    with ThreadPoolExecutor(len(apis)) as threads:
        took = [each for some in threads.map(requests, range(len(apis))) for each in some]
    time.sleep(SETTLING)
    spent = (processor_seconds(pids) - before) / pods * 1e3
    apis[0].request("DELETE", f"{path('Pod', namespace)}?gracePeriodSeconds=0")
    eventually(lambda: not apis[0].request("GET", path("Pod", namespace))["items"], 30)
    return took, spent


@contextlib.contextmanager
def empty(folder, authority):
    """Start the Go webhook. Yields its address and its process ids."""
    certified(folder, authority)
    command = [built(), "serve", "-cert", folder / "tls.crt", "-key", folder / "tls.key"]
    with running(list(map(str, command)), {}, lambda line: ":" in line) as (process, line):
        yield Server(f"https://{line.strip()}/empty", authority.pem), [process.pid]


@contextlib.contextmanager
def ours(webhook):
    with webhook as started:
        yield started.server, [started.process.pid, *started.workers()]


def cases(plane, folder):
    """Return the registered routes and the webhook of each namespace."""
    folders = {name: folder / name for name in ("go", "validate", "both")}
    for each in folders.values():
        each.mkdir()
    validating = serving(folders["validate"], {}, *certified(folders["validate"], plane.authority))
    return {
        "empty webhook in Go": (("validate",), empty(folders["go"], plane.authority)),
        "validate": (("validate",), ours(validating)),
        "mutate and validate, live feed": (("validate", "mutate"), ours(injecting(plane, folders["both"]))),
    }


@contextlib.contextmanager
def small_cluster():
    """Start a control plane with six nodes. Yields a folder for further files, and the control plane."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        with ControlPlane(folder / "plane", control_plane()) as plane:
            plane.add_nodes({"a": 2, "b": 2, "c": 2})
            plane.await_nodes()
            yield folder, plane


def add_namespace(plane, name):
    """Create a namespace, and wait until it accepts pods."""
    new = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    plane.api.request("POST", "/api/v1/namespaces", new)
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    eventually(lambda: plane.api.send("GET", account).status == 200)


def add_policies(plane, namespace):
    """Create the policies of `evenspread compile` for a single namespace."""
    chosen = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]}
    for made in admission_policies(Policy(), RECORDED, "2026-01-01"):
        if "matchConstraints" in made["spec"]:
            made["spec"]["matchConstraints"]["namespaceSelector"] = {"matchExpressions": [chosen]}
        kind = "policies" if made["kind"].endswith("Policy") else "policybindings"
        plane.api.request("POST", f"/apis/admissionregistration.k8s.io/v1/validatingadmission{kind}", made)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--pods", type=int, default=100)
    asked = parser.parse_args()
    with small_cluster() as (folder, plane), contextlib.ExitStack() as stack:
        namespaces = {"nothing": ("bench-0", [])}
        made = cases(plane, folder)
        for number in range(len(made) + 1):
            add_namespace(plane, f"bench-{number}")
        for number, (case, (routes, webhook)) in enumerate(made.items(), start=1):
            server, pids = stack.enter_context(webhook)
            stack.enter_context(registered(plane, f"bench-{number}", server, routes=routes))
            namespaces[case] = f"bench-{number}", pids
        add_namespace(plane, "bench-policies")
        add_policies(plane, "bench-policies")
        namespaces["evenspread compile, no webhook"] = "bench-policies", []
        compare(plane, namespaces, asked)


def compare(plane, namespaces, asked):
    found = {case: [] for case in namespaces}
    for turn in range(asked.rounds + 1):
        for case, (namespace, pids) in namespaces.items():
            took, spent = create([plane.api], namespace, asked.pods, pids)
            if turn:  # the first round opens connections and fills caches
                found[case].append((statistics.median(took), spent))
    print(f"{asked.rounds} rounds of {asked.pods} pods, medians of the rounds\n")
    print(f"{'':32} {'p50 ms':>7} {'added ms':>9} {'processor ms a pod':>19}")
    alone = [wall for wall, _ in found["nothing"]]
    for case, rounds in found.items():
        wall, spent = (statistics.median(column) for column in zip(*rounds, strict=True))
        added = statistics.median(each - base for (each, _), base in zip(rounds, alone, strict=True))
        print(f"{case:32} {wall:7.2f} {added:9.2f} {spent:19.2f}")


if __name__ == "__main__":
    main()
