"""`evenspread webhook --kubeconfig FILE --yes`: registers itself, and takes itself out again."""

import signal

import pytest
from e2e.objects import ZONE, constraint, path, pod, workload
from e2e.registration import GROUP
from e2e.served import serving
from e2e.waiting import eventually

KINDS = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")


INJECTING = {
    "ceiling": "deny",
    "defaults": {
        "mode": "inject",
        "defaultConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}],
    },
}


@pytest.fixture(name="registering")
def _registering(plane, tmp_path):
    """A webhook that registers itself for the whole cluster; what it leaves behind when killed is removed."""
    with serving(tmp_path, INJECTING, f"--kubeconfig={plane.admin}", "--yes", "--drain-seconds=1") as webhook:
        eventually(lambda: "registered" in webhook.log)
        yield webhook
    for kind in KINDS:
        plane.api.request("DELETE", f"{GROUP}/{kind}")


def configurations(plane):
    return [item for kind in KINDS for item in plane.api.request("GET", f"{GROUP}/{kind}")["items"]]


def broken(plane, namespace):
    return plane.api.send(
        "POST", f"{path('Rollout', namespace)}?dryRun=All", workload("Rollout", "web", constraint(maxSkew=0))
    )


def test_it_registers_and_takes_itself_out_again(plane, namespace, registering):
    assert broken(plane, namespace).status == 403

    registering.process.send_signal(signal.SIGTERM)

    assert registering.process.wait(20) == 0
    assert configurations(plane) == []
    eventually(lambda: broken(plane, namespace).status == 201)


@pytest.mark.usefixtures("registering")
def test_what_it_registers_fails_open_and_leaves_out_what_is_not_its_business(plane):
    webhooks = [webhook for item in configurations(plane) for webhook in item["webhooks"]]

    assert len(configurations(plane)) == len(KINDS)
    assert {webhook["failurePolicy"] for webhook in webhooks} == {"Ignore"}
    assert {webhook["sideEffects"] for webhook in webhooks} == {"None"}
    assert max(webhook["timeoutSeconds"] for webhook in webhooks) <= 3
    rules = [rule for webhook in webhooks for rule in webhook["rules"]]
    assert {operation for rule in rules for operation in rule["operations"]} <= {"CREATE", "UPDATE"}
    named = {resource for rule in rules for resource in rule["resources"]}
    assert [resource for resource in named if "*" in resource or "/" in resource] == []
    assert {"pods", "deployments", "statefulsets", "rollouts"} <= named
    for webhook in webhooks:
        excluded = {
            value
            for expression in webhook["namespaceSelector"]["matchExpressions"]
            if (expression["key"], expression["operator"]) == ("kubernetes.io/metadata.name", "NotIn")
            for value in expression["values"]
        }
        assert {"kube-system", "kube-public", "kube-node-lease"} <= excluded


def test_a_system_namespace_is_left_alone(plane, registering):
    before = registering.reviews("mutate"), registering.reviews("validate")

    created = plane.api.send("POST", f"{path('Pod', 'kube-system')}?dryRun=All", pod("web", schedulerName="none"))

    assert (created.status, (registering.reviews("mutate"), registering.reviews("validate"))) == (201, before)


def test_killed_it_leaves_an_api_server_that_works(plane, namespace, registering):
    registering.kill()

    assert broken(plane, namespace).status == 201
    assert len(configurations(plane)) == len(KINDS)


def test_started_again_it_takes_over_what_it_left(plane, namespace, registering):
    registering.kill()
    second = registering.again()
    try:
        eventually(lambda: broken(plane, namespace).status == 403)
        second.process.send_signal(signal.SIGTERM)
        assert (second.process.wait(20), configurations(plane)) == (0, [])
    finally:
        second.kill()
