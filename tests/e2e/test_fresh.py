"""The first pods of many fresh Deployments, which come hard upon their ReplicaSets, while the cluster is busy."""

import concurrent.futures
import contextlib
import time

import pytest
from e2e.injected import injecting, records, running
from e2e.load import relabelling_pods
from e2e.objects import path, workload
from e2e.registration import registered
from e2e.relay import late
from e2e.waiting import eventually

DEPLOYMENTS = 100
CONCURRENCY = 10
LATE = 0.12  # seconds
EVENTS = 500  # a second, beside those of the Deployments and their pods


@pytest.fixture(name="busy")
def _busy(plane):
    """A namespace of which every pod changes all the time."""
    name = "busy"
    plane.api.request(
        "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    )
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    eventually(lambda: plane.api.send("GET", account).status == 200)
    with relabelling_pods(plane, name, EVENTS):
        yield
    plane.api.send("DELETE", f"/api/v1/namespaces/{name}")


def fresh(name):
    made = workload("Deployment", name)
    labels = {"app": name}
    made["spec"]["selector"]["matchLabels"] = labels
    made["spec"]["template"]["metadata"]["labels"] = labels
    return made


def create(plane, namespace, names):
    with contextlib.closing(plane.connect()) as api:
        for name in names:
            api.request("POST", path("Deployment", namespace), fresh(name))


def waits(webhook):
    """How many pods came before their owner, by what became of them."""
    name = "evenspread_arrival_wait_seconds_count"
    return {each: webhook.metric(name, f'outcome="{each}"') for each in ("arrived", "gave-up", "crowded")}


def events(webhook):
    """What its watches have brought so far."""
    return webhook.metric("evenspread_cluster_events_total")


def deploy(plane, namespace, count):
    """So many Deployments of two replicas, some at once; their running pods."""
    names = [f"web-{number}" for number in range(count)]
    with concurrent.futures.ThreadPoolExecutor(CONCURRENCY) as threads:
        for future in [threads.submit(create, plane, namespace, names[at::CONCURRENCY]) for at in range(CONCURRENCY)]:
            future.result()
    return running(plane, namespace, 2 * count, seconds=120)


@pytest.mark.usefixtures("busy")
def test_every_first_pod_of_100_fresh_deployments_gets_the_defaults(plane, shop, webhook, capsys):
    before, began, seen = waits(webhook), time.monotonic(), events(webhook)
    found = deploy(plane, shop, DEPLOYMENTS)
    rate = (events(webhook) - seen) / (time.monotonic() - began)
    early = {each: count - before[each] for each, count in waits(webhook).items()}
    with capsys.disabled():
        print(f"\n{rate:.0f} events a second; pods that came before their owner: {early}")

    assert (len(found), records(found)) == (2 * DEPLOYMENTS, 2 * DEPLOYMENTS), early
    assert rate >= EVENTS / 4, "too few events came to show anything"


def test_pods_that_come_before_their_owner_get_the_defaults_too(plane, namespace, tmp_path):
    """What the watches bring is late, so that no ReplicaSet is known when its first pods come."""
    with (
        late(plane, tmp_path, LATE) as kubeconfig,
        injecting(plane, tmp_path, kubeconfig) as webhook,
        registered(plane, namespace, webhook.server),
    ):
        found = deploy(plane, namespace, 10)
        early = waits(webhook)

    assert (len(found), records(found)) == (20, 20), early
    # At least: while a first pod waits, a worker of the ReplicaSet controller does, and the next come later.
    assert early["arrived"] >= 1
