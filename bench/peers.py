"""Compare pod creations with evenspread, Gatekeeper and Kyverno as the webhook, through a real API server.

    PYTHONPATH=tests python -m bench.peers [--rounds 5] [--pods 100]

All three deny pods with an unknown topologyKey (`bench/engines/*.yaml`), and evenspread also evaluates all other rules
and watches the cluster. A client creates pods in turns in five namespaces: without a webhook, with an empty Go webhook
(`bench/peer`), and with each of the three, over 1 and then 10 connections. The output has medians of the rounds, and
the number of rounds with evenspread ahead of both. Needs the control plane of `make e2e`.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
from pathlib import Path
from typing import NamedTuple

import yaml
from e2e.controlplane.up import HOST, end_with_parent, free_ports, without_proxy
from e2e.objects import constraint, path, pod
from e2e.registration import Server, registered
from e2e.served import certified, serving
from e2e.waiting import eventually

from bench.creation import add_namespace, create, empty, ours, small_cluster
from bench.creation import pod as correct_pod
from bench.serve import memory

ENGINES = Path(__file__).parent / "engines"
CONNECTIONS = (1, 10)
EVENSPREAD, PEERS = "evenspread", ("Gatekeeper", "Kyverno")
POLICY = {"ceiling": "deny", "rules": {"topology-key-typo": "deny"}}
# What the engines' own manifests install, without their workloads, permissions and webhooks.
INSTALLED = ("Namespace", "ConfigMap", "CustomResourceDefinition", "ServiceAccount")
GATEKEEPER_ENVIRONMENT = {"POD_NAMESPACE": "bench-gatekeeper-itself", "POD_NAME": "gatekeeper"}
KYVERNO_ENVIRONMENT = {
    "KYVERNO_NAMESPACE": "kyverno",
    "KYVERNO_SERVICEACCOUNT_NAME": "kyverno",
    "KYVERNO_DEPLOYMENT": "kyverno",
    "KYVERNO_POD_NAME": "kyverno",
    "INIT_CONFIG": "kyverno",
    "METRICS_CONFIG": "kyverno-metrics",
}


class Figures(NamedTuple):
    """A round: milliseconds of a request, processor milliseconds of a pod, MiB of the webhook."""

    p50: float
    p99: float
    processor: float
    memory: float


NAMES = {"p50": "p50, ms", "p99": "p99, ms", "processor": "processor time per pod, ms", "memory": "memory, MiB"}


class Gatekeeper(Server):
    """Gatekeeper serves a path of its own."""

    def client_config(self, route):
        return super().client_config({"validate": "v1/admit"}[route])


def apply(plane, objects):
    """Apply these objects. Returns whether the API server accepted all."""
    command = [plane.binaries / "kubectl", f"--kubeconfig={plane.admin}", "apply", "--server-side", "-f", "-"]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects]})
    return not subprocess.run(command, input=text, text=True, capture_output=True, check=False).returncode  # noqa: S603  our own


def install(plane, manifest):
    """Install an engine's definitions."""
    loaded = yaml.load_all(manifest.read_text(), yaml.CSafeLoader)
    assert apply(plane, (each for each in loaded if each and each["kind"] in INSTALLED)), manifest


def enforce(plane, policy):
    """Apply a policy, each object as soon as the API server serves its kind."""
    for each in yaml.safe_load_all(policy.read_text()):
        eventually(lambda each=each: apply(plane, [each]), 30, every=0.5)


@contextlib.contextmanager
def running(log, command, environment):
    with log.open("wb") as out:
        process = subprocess.Popen(  # noqa: S603  a program that engines/build.sh has built
            list(map(str, command)),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=without_proxy() | environment,
            preexec_fn=end_with_parent,  # noqa: PLW1509  it calls prctl and nothing else
        )
    try:
        yield [process.pid]
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def gatekeeper(plane, folder, engines, namespace):
    """Start Gatekeeper with the operations of the chart's webhook Deployment."""
    certified(folder, plane.authority)
    port, health, metrics = free_ports(3)
    flags = [f"--host={HOST}", f"--port={port}", f"--health-addr={HOST}:{health}", f"--prometheus-port={metrics}"]
    flags += [f"--cert-dir={folder}", "--disable-cert-rotation", f"--kubeconfig={plane.admin}"]
    flags += ["--operation=webhook", "--operation=generate", "--default-create-vap-binding-for-constraints=false"]
    install(plane, engines / "gatekeeper.yaml")
    # The owner of Gatekeeper's reports of its status: the garbage collector deletes reports without an owner.
    add_namespace(plane, GATEKEEPER_ENVIRONMENT["POD_NAMESPACE"])
    owner = correct_pod(GATEKEEPER_ENVIRONMENT["POD_NAME"])
    plane.api.request("POST", path("Pod", GATEKEEPER_ENVIRONMENT["POD_NAMESPACE"]), owner)
    with running(folder / "log", [engines / "gatekeeper", *flags], GATEKEEPER_ENVIRONMENT) as pids:
        enforce(plane, ENGINES / "gatekeeper.yaml")
        server = Gatekeeper(f"https://{HOST}:{port}", plane.authority.pem)
        with registered(plane, namespace, server, routes=("validate",), scope="Namespaced"):
            yield pids


@contextlib.contextmanager
def kyverno(plane, folder, engines, _namespace):
    """Start Kyverno's admission controller. It registers itself, for the namespace in its policy."""
    port, metrics = free_ports(2)
    flags = [f"--serverIP={HOST}:{port}", f"--webhookServerHost={HOST}", f"--webhookServerPort={port}"]
    flags += ["--caSecretName=kyverno-ca", "--tlsSecretName=kyverno-tls", f"--kubeconfig={plane.admin}"]
    flags += [f"--metricsHost={HOST}", f"--metricsPort={metrics}", "--controllerRuntimeMetricsAddress=0"]
    flags += ["--admissionReports=false"]  # nobody would aggregate and delete them
    install(plane, engines / "kyverno.yaml")
    with running(folder / "log", [engines / "kyverno", *flags], KYVERNO_ENVIRONMENT) as pids:
        enforce(plane, ENGINES / "kyverno.yaml")
        yield pids


@contextlib.contextmanager
def itself(plane, folder, _engines, namespace):
    """Start evenspread as the chart does: it watches the cluster, and the scan evaluates audit-only rules."""
    flags = ("--no-register", "--leave-audit-to-scan", f"--kubeconfig={plane.admin}")
    flags += certified(folder, plane.authority)
    with (
        ours(serving(folder, POLICY, *flags)) as (server, pids),
        registered(plane, namespace, server, routes=("validate",), scope="Namespaced"),
    ):
        yield pids


@contextlib.contextmanager
def go(plane, folder, _engines, namespace):
    with (
        empty(folder, plane.authority) as (server, pids),
        registered(plane, namespace, server, routes=("validate",), scope="Namespaced"),
    ):
        yield pids


@contextlib.contextmanager
def nothing(*_):
    yield []


CASES = {"none": nothing, "empty Go": go, EVENSPREAD: itself, "Gatekeeper": gatekeeper, "Kyverno": kyverno}


def refused(plane, namespace):
    """Whether a webhook denies a pod with a misspelt key."""
    wrong = pod("wrong", constraint(topologyKey="topology.kubernetes.io/hostname"))
    answer = plane.api.send("POST", f"{path('Pod', namespace)}?dryRun=All", wrong)
    return "denied the request" in answer.message


def measured(plane, started, asked):
    """Return the rounds of each case by the number of connections. The first round fills caches."""
    found = {count: {case: [] for case in started} for count in CONNECTIONS}
    for count in CONNECTIONS:
        apis = [plane.connect() for _ in range(count)]
        for turn in range(asked.rounds + 1):
            for case, (namespace, pids) in started.items():
                took, spent = create(apis, namespace, asked.pods, pids)
                quantiles = statistics.quantiles(took, n=100, method="inclusive")
                if turn:
                    found[count][case].append(Figures(quantiles[49], quantiles[98], spent, memory(pids)))
    return found


def ahead(rounds):
    """Return in how many rounds each figure of evenspread is lower than those of both peers."""
    turns = zip(rounds[EVENSPREAD], *(rounds[peer] for peer in PEERS), strict=True)
    won = [[mine < min(others) for mine, *others in zip(*turn, strict=True)] for turn in turns]
    return Figures(*map(sum, zip(*won, strict=True)))


def table(found):
    """Yield the lines: medians of each case, and whether evenspread is ahead of both peers."""
    cases = [*next(iter(found.values()))]
    yield f"{'':42}" + "".join(f"{case:>12}" for case in cases) + "  evenspread ahead"
    for count, rounds in found.items():
        medians = {case: Figures(*map(statistics.median, zip(*rounds[case], strict=True))) for case in cases}
        won, turns = ahead(rounds), len(rounds[EVENSPREAD])
        for field, name in NAMES.items():
            cells = "".join(f"{getattr(medians[case], field):12.2f}" for case in cases)
            holds = all(getattr(medians[EVENSPREAD], field) < getattr(medians[peer], field) for peer in PEERS)
            label = f"{name}, {count} connection{'s' * (count > 1)}"
            yield f"{label:42}{cells}  {'yes' if holds else 'no'}, in {getattr(won, field)} of {turns} rounds"


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pods", type=int, default=100)
    return parser.parse_args(given)


def main():
    asked = arguments()
    built = subprocess.run([ENGINES / "build.sh"], check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603  our own
    engines = Path(built.stdout.strip())
    with small_cluster() as (folder, plane), contextlib.ExitStack() as stack:
        started = {}
        for case, start in CASES.items():
            namespace = f"bench-{case.lower().replace(' ', '-')}"
            add_namespace(plane, namespace)
            (own := folder / namespace).mkdir()
            pids = stack.enter_context(start(plane, own, engines, namespace))
            if case in (EVENSPREAD, *PEERS):
                eventually(lambda namespace=namespace: refused(plane, namespace), 30, every=0.2)
            started[case] = namespace, pids
        found = measured(plane, started, asked)
        print(f"{asked.rounds} rounds of {asked.pods} pods, load {os.getloadavg()[0]:.1f}; medians of the rounds\n")
        print(*table(found), sep="\n")


if __name__ == "__main__":
    main()
