"""`evenspread explain` at a real cluster: the scheduler's own sentence, fixes that place the pod, and the warning."""

import json
import os
import subprocess

import pytest
from e2e.objects import HOST, constraint, path, pod, workload
from e2e.registration import registered
from e2e.served import NO_INSTALLATION, PROGRAM, certified, serving
from e2e.waiting import eventually

# Six nodes: eight replicas leave two Pending, since with fewer domains than minDomains none may hold a second.
ALONE = constraint(topologyKey=HOST, minDomains=20)


def explain(plane, *arguments):
    command = [PROGRAM, "explain", "--kubeconfig", plane.admin, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert NO_INSTALLATION.fullmatch(done.stderr), done.stderr
    return done.returncode, done.stdout


def refused(plane, namespace):
    """The pods that the scheduler found no node for, each with its sentence."""
    found = {}
    for each in plane.api.request("GET", path("Pod", namespace))["items"]:
        conditions = each["status"].get("conditions", ())
        messages = [one["message"] for one in conditions if one["type"] == "PodScheduled" and one["status"] == "False"]
        if messages and not each["spec"].get("nodeName"):
            found[each["metadata"]["name"]] = messages[0]
    return found


@pytest.fixture(name="stuck")
def _stuck(plane, namespace):
    """The two Pending pods of a Deployment, with the scheduler's sentences."""
    made = workload("Deployment", "web", ALONE, replicas=8)
    plane.api.request("POST", path("Deployment", namespace), made)
    return eventually(lambda: len(found := refused(plane, namespace)) == 2 and found, 60)


def test_the_sentence_is_the_schedulers(plane, namespace, stuck):
    for name, message in stuck.items():
        code, out = explain(plane, f"pod/{name}", "-n", namespace, "-o", "json")
        found = json.loads(out)
        assert (code, found["cause"]) == (1, "spread")
        assert message.startswith(found["message"])


@pytest.mark.usefixtures("stuck")
def test_a_workload_and_all_that_waits(plane, namespace):
    code, out = explain(plane, "deployment/web", "-n", namespace)
    assert code == 1
    assert out.splitlines()[0].endswith(f"(1 of 2 pending pods of Deployment {namespace}/web): no node admits it")
    code, out = explain(plane, "--pending", "-n", namespace)
    assert code == 1
    waits = "blocked by spread constraints"
    assert out.startswith(f"2 Pending pods in namespace {namespace}: 2 {waits}\n\n2 pods {waits}: Deployment ")


@pytest.mark.usefixtures("stuck")
def test_every_fix_that_is_offered_places_the_pod(plane, namespace):
    _, out = explain(plane, "deployment/web", "-n", namespace)
    fixes = [line.split("  ")[1].strip() for line in out.partition("\nfixes, ")[2].splitlines()[1:] if " nodes" in line]
    assert fixes == [
        "set minDomains: 6",
        "set maxSkew: 2",
        "set whenUnsatisfiable: ScheduleAnyway and remove minDomains",
    ]
    changes = ({"minDomains": 6}, {"maxSkew": 2}, {"whenUnsatisfiable": "ScheduleAnyway", "minDomains": None})
    for number, change in enumerate(changes):
        fixed = {name: value for name, value in {**ALONE, **change}.items() if value is not None}
        plane.api.request("POST", path("Pod", namespace), {**pod(f"fixed-{number}", fixed)})
        where = path("Pod", namespace, f"fixed-{number}")
        eventually(lambda at=where: plane.api.request("GET", at)["spec"].get("nodeName"), 30)
        plane.api.request("DELETE", f"{where}?gracePeriodSeconds=0")


@pytest.mark.usefixtures("stuck")
def test_who_creates_such_a_pod_is_warned(plane, namespace, tmp_path):
    flags = ("--no-register", f"--kubeconfig={plane.admin}", *certified(tmp_path, plane.authority))
    with serving(tmp_path, {"ceiling": "warn"}, *flags) as webhook, registered(plane, namespace, webhook.server):
        answer = plane.api.send("POST", path("Pod", namespace), pod("ninth", ALONE))
    assert answer.status == 201
    told = "6 hostnames, fewer than minDomains 20: the minimum is 0; set minDomains: 6"
    assert any(f"evenspread/replicas-do-not-fit: {told}" in each for each in answer.warnings), answer.warnings


@pytest.mark.usefixtures("stuck")
def test_the_command_that_is_printed_places_the_pods(plane, namespace, binaries):
    _, out = explain(plane, "deployment/web", "-n", namespace, "-o", "json")
    command = json.loads(out)["fixes"][0]["command"]
    path_with_kubectl = {"PATH": f"{binaries}:{os.environ['PATH']}"}
    shell = ["/bin/sh", "-c", command]
    done = subprocess.run(shell, env=path_with_kubectl, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "deployment.apps/web patched\n"), done.stderr
    deployment = path("Deployment", namespace, "web")
    eventually(lambda: plane.api.request("GET", deployment)["status"].get("readyReplicas") == 8, 60)
    assert not refused(plane, namespace)
