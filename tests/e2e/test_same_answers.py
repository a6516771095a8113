"""A watched index answers as a new one: 300 reviews, between bursts of changes to nodes, workloads and pods."""

import concurrent.futures
import contextlib
import http.client
import json
import random
import ssl
import time
import urllib.parse

import pytest
from e2e import chance
from e2e.objects import ZONE, path
from e2e.served import POLICY, certified, serving
from e2e.waiting import eventually

from webhook.admission import Engine, answer
from webhook.admission_request import decode_review
from webhook.cli.cluster_source import read_cluster
from webhook.cli.live_cluster import ClusterSelection
from webhook.config import parse_policy
from webhook.core.rules.rule_set import RULES

ROUNDS, REVIEWS = 10, 30
SEED = 30
WRITERS = 4
POLICY_HERE = {
    "ceiling": "warn",
    "rules": {rule.id: "warn" for rule in RULES},
    "messages": {"detail": "full"},  # whatever depends on an order shows
}
KINDS = ("Deployment", "Deployment", "StatefulSet", "ReplicaSet")


@pytest.fixture(name="_zones_as_before", autouse=True)
def _zones_as_before(plane):
    """Other tests have the same nodes, `node-<zone>-<n>`, and expect one zone each."""
    yield
    for node in plane.api.request("GET", "/api/v1/nodes")["items"]:
        name = node["metadata"]["name"]
        body = {"metadata": {"labels": {"rack": None, ZONE: name.split("-")[1]}}}
        plane.api.request("PATCH", f"/api/v1/nodes/{name}", body, "application/merge-patch+json")


@pytest.fixture(name="watching")
def _watching(plane, tmp_path):
    flags = ("--no-register", f"--kubeconfig={plane.admin}", *certified(tmp_path, plane.authority))
    with serving(tmp_path, POLICY_HERE, *flags) as webhook:
        yield webhook


def made(dice, namespace, name, kind):
    """A workload of the pods of `chance`."""
    pod = chance.pod(dice, name)
    labels = pod["metadata"]["labels"]
    spec = {"replicas": dice.choice((1, 2, 3, 7)), "selector": {"matchLabels": labels}}
    spec["template"] = {"metadata": {"labels": labels}, "spec": pod["spec"]}
    if kind == "StatefulSet":
        spec["serviceName"] = "web"
    if kind == "Pod":
        return {**pod, "metadata": {"name": name, "namespace": namespace, "labels": labels}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": spec,
    }


def churn(plane, namespace, dice):
    """Create, change and delete what there is, node labels too, for a second."""
    with contextlib.closing(plane.connect()) as api:
        until = time.monotonic() + 1.0
        while time.monotonic() < until:
            kind, name = dice.choice(KINDS), f"w-{dice.randrange(9)}"
            match dice.randrange(6):
                case 0 | 1:
                    api.send("POST", path(kind, namespace), made(dice, namespace, name, kind))
                case 2:
                    api.send("DELETE", path(kind, namespace, name))
                case 3:
                    body = {"spec": {"replicas": dice.randrange(6)}}
                    api.send("PATCH", path(kind, namespace, name), body, "application/merge-patch+json")
                case 4:
                    found = api.request("GET", path("Pod", namespace))["items"]
                    for pod in dice.sample(found, min(2, len(found))):
                        gone = path("Pod", namespace, pod["metadata"]["name"])
                        api.send("DELETE", gone, {"gracePeriodSeconds": 0})
                case _:
                    node = dice.choice(api.request("GET", "/api/v1/nodes")["items"])["metadata"]["name"]
                    labels = {"rack": dice.choice((None, "r0", "r1")), ZONE: dice.choice("abc")}
                    body = {"metadata": {"labels": labels}}
                    api.send("PATCH", f"/api/v1/nodes/{node}", body, "application/merge-patch+json")


def state(plane):
    """The versions of all objects that an index has."""
    kinds = ("Pod", "Deployment", "ReplicaSet", "StatefulSet")
    listed = [path(kind, "x").replace("/namespaces/x", "") for kind in kinds]
    return [
        sorted(
            (each["metadata"]["uid"], each["metadata"]["resourceVersion"])
            for each in plane.api.request("GET", of)["items"]
        )
        for of in (*listed, "/api/v1/nodes")
    ]


def at_rest(plane, webhook):
    """The state, once neither it nor what the watches bring changes for a second."""

    def rests():
        before, seen = state(plane), webhook.metric("evenspread_cluster_events_total")
        time.sleep(1.0)
        same = before == state(plane) and seen == webhook.metric("evenspread_cluster_events_total")
        return before if same else None

    return eventually(rests, 30)


def body_of(made, number):
    group, _, version = made["apiVersion"].rpartition("/")
    request = {
        "uid": str(number),
        "kind": {"group": group, "version": version, "kind": made["kind"]},
        "operation": "CREATE",
        "namespace": made["metadata"]["namespace"],
        "name": made["metadata"]["name"],
        "object": made,
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


def asked(webhook, bodies):
    where = urllib.parse.urlsplit(webhook.server.url)
    context = ssl.create_default_context(cadata=(webhook.folder / "ca.crt").read_text())
    with contextlib.closing(http.client.HTTPSConnection(where.netloc, context=context, timeout=30)) as connection:
        for body in bodies:
            connection.request("POST", "/validate?timeout=30s", body, {"Content-Type": "application/json"})
            yield json.loads(connection.getresponse().read())["response"]


def test_300_of_300_answers_are_those_of_a_new_index(plane, namespace, watching, capsys):
    policy = parse_policy(json.dumps(POLICY | POLICY_HERE), file="p", today=time.strftime("%Y-%m-%d")).policy
    compared, spoke, different = 0, 0, []
    for number in range(ROUNDS):
        dice = [random.Random(f"{SEED} {number} {each}") for each in range(WRITERS)]  # noqa: S311 no secret
        with concurrent.futures.ThreadPoolExecutor(WRITERS) as threads:
            for future in [threads.submit(churn, plane, namespace, each) for each in dice]:
                future.result()
        bodies = [
            body_of(made(dice[0], namespace, f"w-{dice[0].randrange(12)}", dice[0].choice((*KINDS, "Pod"))), each)
            for each in range(REVIEWS)
        ]
        for _ in range(5):
            before = at_rest(plane, watching)
            live = [*asked(watching, bodies)]
            known = read_cluster(ClusterSelection(kubeconfig=str(plane.admin)), policy, lambda _objects: None)
            engine = Engine(policy=policy, version=known.version, index=known.index)
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            fresh = [
                json.loads(answer("validate", decode_review(each), engine, now=now).body)["response"] for each in bodies
            ]
            if state(plane) == before:
                break
        compared += len(bodies)
        spoke += sum("warnings" in each for each in live)
        different += [(one, other) for one, other in zip(live, fresh, strict=True) if one != other]
    with capsys.disabled():
        print(
            f"\n{compared - len(different)} of {compared} live answers are those of a new index; {spoke} with warnings"
        )
    assert different == []
    assert compared == ROUNDS * REVIEWS
    assert spoke > compared / 10
