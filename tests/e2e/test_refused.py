"""Workloads that the real API server accepts and whose pods it refuses: its words are ours, before it has said them."""

import json
import subprocess

import pytest
from e2e.objects import constraint, failures, path, pods, workload
from e2e.registration import registered
from e2e.served import PROGRAM
from e2e.waiting import eventually

from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.json_edits import applied
from webhook.core.policy.policy import Policy
from webhook.core.review.examination import examine

HASH = "pod-template-hash"
TWICE = constraint(matchLabelKeys=["app"])
COPIED = constraint(
    matchLabelKeys=[HASH],
    labelSelector={"matchLabels": {"app": "web"}, "matchExpressions": [{"key": HASH, "operator": "Exists"}]},
)


def job(name, *constraints):
    spec = {"template": workload("Job", name, *constraints)["spec"]["template"]}
    spec["template"]["spec"]["restartPolicy"] = "Never"
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def of_kind(kind, *constraints, name="web"):
    made = workload(kind, name, *constraints)
    if kind == "DaemonSet":
        del made["spec"]["replicas"]
    return made


def said(made):
    """What the rule says of an object: kube-apiserver's words about its pods, the field, and the object as mended."""
    found = examine(made, Context(policy=Policy(), version=RECORDED, now="2026-11-21")).findings
    [finding] = [each.finding for each in found if each.finding.rule == "pods-refused"]
    words = finding.summary.removeprefix("no pod of this workload can be created: ")
    return words, finding.path, applied(made, finding.edits)


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(of_kind("Deployment", TWICE), id="Deployment"),
        pytest.param(of_kind("Deployment", COPIED), id="Deployment, the controller's own label"),
        pytest.param(of_kind("Deployment", constraint(matchLabelKeys=[HASH, HASH])), id="Deployment, a key twice"),
        pytest.param(of_kind("ReplicaSet", TWICE), id="ReplicaSet"),
        pytest.param(of_kind("StatefulSet", TWICE), id="StatefulSet"),
        pytest.param(of_kind("StatefulSet", name="w" * 62), id="StatefulSet, a name of 62 characters"),
        pytest.param(of_kind("DaemonSet", TWICE), id="DaemonSet"),
        pytest.param(job("web", TWICE), id="Job"),
    ],
)
def test_it_is_accepted_and_its_pods_are_refused_in_our_words(plane, namespace, made):
    plane.api.request("POST", path(made["kind"], namespace), made)

    words, _, _ = said(made)
    messages = eventually(lambda: failures(plane, namespace))

    assert any(words in message for message in messages), (words, messages)
    assert pods(plane, namespace) == []


def test_a_name_that_leaves_too_little_room_for_a_hash(plane, namespace):
    """Of such a name the rule is not evaluated: with a hash of two digits the label would fit."""
    made = of_kind("StatefulSet", name="w" * 60)
    plane.api.request("POST", path("StatefulSet", namespace), made)
    messages = eventually(lambda: failures(plane, namespace))
    assert any(f'metadata.labels: Invalid value: "{"w" * 60}-' in message for message in messages), messages


def test_the_deployment_says_so_too_and_explain_says_it_first(plane, namespace):
    made = workload("Deployment", "web", TWICE)
    plane.api.request("POST", path("Deployment", namespace), made)

    def failed():
        status = plane.api.request("GET", path("Deployment", namespace, "web")).get("status", {})
        conditions = status.get("conditions", ())
        return [each for each in conditions if each["type"] == "ReplicaFailure" and each["status"] == "True"]

    words, where, _ = said(made)
    [condition] = eventually(failed)
    assert condition["reason"] == "FailedCreate"
    assert condition["message"].endswith(words)
    command = [PROGRAM, "explain", "--kubeconfig", plane.admin, "deployment/web", "-n", namespace, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    [told] = json.loads(done.stdout)["refused"]
    assert (done.returncode, told["message"], told["path"]) == (1, words, where)
    assert told["title"] == "no pod of this workload can be created"


@pytest.mark.parametrize("fields", [TWICE, COPIED], ids=["in both", "the controller's own label"])
def test_on_deny_it_is_refused_at_once_and_accepted_when_mended(plane, namespace, strict, fields):
    made = workload("Deployment", "web", fields)
    words, where, mended = said(made)
    with registered(plane, namespace, strict.server):
        refused = plane.api.send("POST", path("Deployment", namespace), made)
        assert (refused.status, refused.body["reason"]) == (403, "Forbidden")
        assert f"Deployment {namespace}/web: no pod of this workload can be created: {words}" in refused.message
        assert f"pods-refused  {where}" in refused.message
        plane.api.request("POST", path("Deployment", namespace), mended)
    eventually(lambda: len(pods(plane, namespace)) == 2)


def test_an_update_is_denied_only_if_it_brings_it(plane, namespace, strict):
    merge = "application/merge-patch+json"
    with registered(plane, namespace, strict.server):
        plane.api.request("POST", path("Deployment", namespace), workload("Deployment", "web", constraint()))
        spread = {"spec": {"template": {"spec": {"topologySpreadConstraints": [TWICE]}}}}
        brought = plane.api.send("PATCH", path("Deployment", namespace, "web"), spread, merge)
        assert brought.status == 403
        assert "pods-refused" in brought.message
    plane.api.request("POST", path("Deployment", namespace), workload("Deployment", "old", TWICE))
    with registered(plane, namespace, strict.server):
        image = {"spec": {"template": {"metadata": {"annotations": {"note": "x"}}}}}
        assert plane.api.send("PATCH", path("Deployment", namespace, "old"), image, merge).status == 200
