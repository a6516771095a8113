"""`evenspread webhook --kubeconfig FILE --yes`: registers itself, and takes itself out again."""

import signal
import subprocess

import pytest
from e2e.objects import ZONE, constraint, path, pod, workload
from e2e.registration import GROUP
from e2e.served import PROGRAM, serving
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
    assert [resource for resource in named if "*" in resource] == []
    assert {resource for resource in named if "/" in resource} == {
        "deployments/scale",
        "statefulsets/scale",
        "replicasets/scale",
    }
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


def refused(*arguments):
    """The program where it does not come up: exit code and standard error."""
    ran = subprocess.run(
        [PROGRAM, "webhook", "--yes", *arguments], capture_output=True, text=True, timeout=20, check=False
    )
    return ran.returncode, ran.stdout, ran.stderr


def test_a_configuration_of_somebody_else_is_left_where_it_is(plane):
    foreign = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "evenspread-local"},
    }
    plane.api.request("POST", f"{GROUP}/{KINDS[0]}", foreign)
    try:
        ran = refused(f"--kubeconfig={plane.admin}")
        left = [item["metadata"]["name"] for item in configurations(plane)]
    finally:
        plane.api.request("DELETE", f"{GROUP}/{KINDS[0]}/evenspread-local")

    what = "ValidatingWebhookConfiguration evenspread-local"
    assert ran == (4, "", f"evenspread: {what} exists, but evenspread did not create it; delete it first\n")
    assert left == ["evenspread-local"]


def test_one_who_may_not_register_is_told_so_before_anything_starts(plane):
    code, out, err = refused(f"--kubeconfig={plane.kubeconfig('nobody', 'nobody')}")

    assert (code, out, err.count("\n")) == (4, "", 1)
    assert err.startswith("evenspread: ValidatingWebhookConfiguration evenspread-local: 403 ")
    assert 'User "nobody" cannot patch resource "validatingwebhookconfigurations"' in err


def test_a_cluster_that_is_not_there_is_one_line(plane, tmp_path):
    elsewhere = tmp_path / "kubeconfig"
    elsewhere.write_text(plane.admin.read_text().replace(plane.url, "https://127.0.0.1:1"))

    assert refused(f"--kubeconfig={elsewhere}") == (4, "", "evenspread: https://127.0.0.1:1: Connection refused\n")
