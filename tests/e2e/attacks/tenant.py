"""What somebody sends who may create pods and workloads in one namespace, and nothing else."""

import functools
import http.client
import json
import ssl
import threading
import time
import urllib.parse
from collections import Counter
from typing import NamedTuple

from e2e.objects import HOST, constraint, costly, path, pod, workload

from bench import field_cost
from webhook.admission import Engine
from webhook.core.api.version import RECORDED

THREADS = 4
RANKED_BESIDE = 60  # nodes: the order of what costs most is the same beside many
RANKED_AT = 8  # KiB
OTHERS = {"matchLabels": {"app": "other"}}
FAULT = constraint(labelSelector=OTHERS)
JOB_SETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "jobsets.jobset.x-k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, experimental-only"},
    },
    "spec": {
        "group": "jobset.x-k8s.io",
        "names": {"kind": "JobSet", "listKind": "JobSetList", "plural": "jobsets", "singular": "jobset"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha2",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


class Sent(NamedTuple):
    where: str  # the collection, with its query
    made: dict

    @property
    def dry(self) -> "Sent":
        return self._replace(where=f"{self.where}?dryRun=All")


class Credentials(NamedTuple):
    url: str
    authority: str  # files
    certificate: str
    key: str

    def connect(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=self.authority)
        context.load_cert_chain(self.certificate, self.key)
        where = urllib.parse.urlsplit(self.url)
        return http.client.HTTPSConnection(where.hostname or "", where.port, context=context, timeout=30)


# -- objects


def costliest(count: int) -> list[tuple]:
    """The lists of a pod that cost a review most when they are long, measured; one or two for each, as paths."""
    engine = Engine(policy=field_cost.POLICY, version=RECORDED, index=field_cost.cluster(RANKED_BESIDE))
    took = {}
    for parts in field_cost.cases():
        _, asked = field_cost.filled("Pod", parts, RANKED_AT)
        took[parts] = field_cost.milliseconds(engine, asked)[0]
    return sorted(took, key=took.__getitem__, reverse=True)[:count]


@functools.cache
def filled(namespace: str, parts: tuple, kib: int) -> tuple[Sent, Sent]:
    """A Rollout and a pod with a list as long as fits, with constraints that count other pods, which is denied.

    The API server itself refuses many such pods for their names and values before it asks, never a Rollout.
    """
    _, asked = field_cost.filled("Pod", parts, kib)
    spec = json.loads(asked)["request"]["object"]["spec"]
    rollout = workload("Rollout", "x")
    rollout["spec"]["template"]["spec"] = spec
    made = pod("x-")
    made["spec"] = spec
    return _sent("Rollout", namespace, rollout), _sent("Pod", namespace, made)


def templates(namespace: str, count: int) -> list[Sent]:
    spec = workload("Rollout", "x", constraint(), FAULT)["spec"]["template"]
    jobs = [{"name": f"j{number}", "replicas": 2, "template": {"spec": {"template": spec}}} for number in range(count)]
    made = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": {"replicatedJobs": jobs}}
    return [_sent("JobSet", namespace, made | {"metadata": {}})]


def unknown_keys(namespace: str, count: int) -> list[Sent]:
    """Node labels that no node carries, in a nodeSelector and as topology keys."""
    keys = [f"example.com/{'unknown'[: 3 + number % 4]}-{number}" for number in range(count)]
    selecting = workload("Rollout", "x", FAULT)
    selecting["spec"]["template"]["spec"]["nodeSelector"] = dict.fromkeys(keys, "x")
    spreading = workload("Rollout", "x", FAULT, *(constraint(topologyKey=key) for key in keys))
    few = workload("Rollout", "x", FAULT, *(constraint(topologyKey=key) for key in keys[:15]))
    return [_sent("Rollout", namespace, each) for each in (selecting, spreading, few)]


def pretences(namespace: str) -> list[Sent]:
    """A fault, and what its author writes to have it passed over."""
    mirror = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    exempt = {"annotations": {"evenspread.io/exempt": "selector-not-self", "evenspread.io/skip": "true"}}
    owners = [("v1", "ConfigMap"), ("v1", "Pod"), ("apps/v1", "ReplicaSet"), ("batch/v1", "Job")]
    metas = [mirror, exempt, *({"ownerReferences": [_controller(*each)]} for each in owners)]
    soft = [constraint(topologyKey=f"example.com/{n}", whenUnsatisfiable="ScheduleAnyway") for n in range(16)]
    made = []
    for kind in ("Rollout", "Deployment", "Pod"):
        made += [_faulty(kind, meta) for meta in metas]
        made.append(_faulty(kind, {}, *soft))
    made += [revision(), revision(_controller("apps/v1", "StatefulSet")), revision(_controller("example.com/v1", "X"))]
    return [_sent(each["kind"], namespace, each) for each in made]


def revision(*owners: dict) -> dict:
    """A ControllerRevision as a StatefulSet's controller writes it, which makes pods with a fault."""
    template = workload("StatefulSet", "x", FAULT)["spec"]["template"] | {"$patch": "replace"}
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": "x", "labels": {"app": "web"}, "ownerReferences": [*owners]},
        "data": {"spec": {"template": template}},
        "revision": 1,
    }


def costly_everywhere(namespaces: tuple[str, ...]) -> list[Sent]:
    """A costly object with a fault in each of them."""
    return [_sent("Deployment", each, costly("Deployment", FAULT)) for each in namespaces]


def escaped(namespace: str, kib: int) -> list[Sent]:
    """Faults beside so many characters, which the API server sends as six bytes each."""
    made = []
    for kind in ("Deployment", "Rollout", "Pod"):
        each = _faulty(kind, {})
        spec = each["spec"] if kind == "Pod" else each["spec"]["template"]["spec"]
        spec["containers"][0]["args"] = ["<>&\x01" * (kib * 256)]
        made.append(_sent(kind, namespace, each))
    return made


def over_racks(namespace: str, app: str) -> list[Sent]:
    """Small objects with a fault, over a label with many values that nodes share, beside pods of their own."""
    own = {"matchLabels": {"app": app}}
    keys = (("rack",), ("rack", "pool"), ("rack", HOST))
    made = []
    for kind in ("Deployment", "Rollout"):
        for several in keys:
            each = workload(kind, "x", *(constraint(topologyKey=key, labelSelector=own) for key in several), FAULT)
            each["spec"] |= {"replicas": 300, "selector": own}
            each["spec"]["template"]["metadata"]["labels"] = {"app": app}
            made.append(_sent(kind, namespace, each))
    return made


def lasting(namespace: str, parts: list[tuple], kib: int, nodes: int) -> list[Sent]:
    """Pods without a fault, already on a node, so that they are kept and counted; made in earnest."""
    found = []
    for number, each in enumerate(parts):
        _, asked = field_cost.filled("Pod", each, kib)
        made = pod("x-")
        made["spec"] = json.loads(asked)["request"]["object"]["spec"]
        made["spec"].pop("topologySpreadConstraints")
        made["spec"]["nodeName"] = f"node-{number % nodes:05}"
        found.append(_sent("Pod", namespace, made))
    return found


def resources(namespace: str, count: int, nodes: int) -> list[Sent]:
    """Pods on a node, each with resource names of its own."""
    found = []
    for number in range(16):
        names = {f"example.com/r-{number}-{n}": "1" for n in range(count)}
        container = {"name": "c", "image": "x", "resources": {"requests": names, "limits": names}}
        made = pod("x-", nodeName=f"node-{number % nodes:05}", containers=[container])
        found.append(_sent("Pod", namespace, made))
    return found


# Amounts that the API server stores. Their sums once had more digits than could be read again.
IMMENSE = (("1e999", "1m"), ("9" * 999,), ("1e999",) * 9, ("1e999", "1e-999"), ("0." + "9" * 990, "1e999"))


def immense(namespace: str, nodes: int) -> list[Sent]:
    """Pods on a node, whose containers request immense amounts of all that a node has."""
    found = []
    for number, amounts in enumerate(IMMENSE):
        for resource in ("cpu", "memory", "ephemeral-storage"):
            containers = [
                {"name": f"c{n}", "image": "x", "resources": {"requests": {resource: amount}}}
                for n, amount in enumerate(amounts)
            ]
            made = pod("x-", nodeName=f"node-{number % nodes:05}", containers=containers)
            found.append(_sent("Pod", namespace, made))
    return found


def _sent(kind: str, namespace: str, made: dict) -> Sent:
    meta = {key: value for key, value in made["metadata"].items() if key != "name"}
    return Sent(path(kind, namespace), made | {"metadata": {**meta, "generateName": "x-"}})


def _faulty(kind: str, meta: dict, *more: dict) -> dict:
    made = pod("x", FAULT, *more) if kind == "Pod" else workload(kind, "x", FAULT, *more)
    made["metadata"] |= meta
    return made


def _controller(api_version: str, kind: str) -> dict:
    return {"apiVersion": api_version, "kind": kind, "name": "own", "uid": "1", "controller": True}


# -- sending


class Outcome(NamedTuple):
    statuses: Counter
    said: Counter  # the beginnings of messages, by how often

    @property
    def let_in(self) -> int:
        return self.statuses[201]


def hammer(credentials: list[Credentials], sent: list[Sent], seconds: float, threads: int = THREADS) -> Outcome:
    """All of them in turn, again and again, by a few threads that go on as soon as they can.

    Each thread is one of these users, and sends what stands in its place in the list.
    """
    found = Outcome(Counter(), Counter())
    bodies = [(each.where, json.dumps(each.made).encode()) for each in sent]
    until = time.monotonic() + seconds

    def send(first: int) -> None:
        connection = credentials[first % len(credentials)].connect()
        number = first
        while time.monotonic() < until:
            where, body = bodies[number % len(bodies)]
            number += len(credentials)
            try:
                connection.request("POST", where, body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                content = answer.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                found.statuses[0] += 1
                found.said[repr(error)[:100]] += 1
                continue
            found.statuses[answer.status] += 1
            if answer.status != 201:
                found.said[json.loads(content)["message"][:160]] += 1
        connection.close()

    running = [threading.Thread(target=send, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return found
