"""A namespace's administrator replaces the revision from which a StatefulSet's controller makes pods."""

import contextlib
import time
from http import HTTPStatus

import pytest
from e2e.attacks.tenant import OTHERS
from e2e.objects import clean, constraint, path
from e2e.registration import GROUP, registered
from e2e.waiting import eventually

from webhook.cluster.writing.registration import configurations
from webhook.core.policy.defaults import Defaults


def running(plane, namespace, *constraints):
    """A StatefulSet with two pods and a partition: both are made from the current revision. The name of that."""
    made = clean("StatefulSet", "web")
    if constraints:
        made["spec"]["template"]["spec"]["topologySpreadConstraints"] = [*constraints]
    made["spec"] |= {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}
    plane.api.request("POST", path("StatefulSet", namespace), made)

    def ready():
        status = plane.api.request("GET", path("StatefulSet", namespace, "web"))["status"]
        return status.get("readyReplicas") == 2 and status["currentRevision"]

    eventually(ready, 60)
    return ready()


def made_anew(plane, namespace):
    """The constraints with which the controller makes the first pod again."""
    where = path("Pod", namespace, "web-0")
    before = plane.api.request("GET", where)["metadata"]["uid"]
    plane.api.request("DELETE", where, {"gracePeriodSeconds": 0})

    def another():
        answer = plane.api.send("GET", where)
        return answer.status == 200 and answer.body["metadata"]["uid"] != before and answer.body

    eventually(another, 60)
    return another()["spec"]["topologySpreadConstraints"]


def replaced(plane, namespace, name, constraints):
    """The revision with the same name and other constraints, as answered."""
    where = path("ControllerRevision", namespace, name)
    found = plane.api.request("GET", where)
    found["data"]["spec"]["template"]["spec"]["topologySpreadConstraints"] = constraints
    found["metadata"] = {key: found["metadata"][key] for key in ("name", "labels", "ownerReferences")}

    def in_time():
        """The answer, unless the controller was faster and made the old revision again."""
        plane.api.send("DELETE", where)
        answer = plane.api.send("POST", path("ControllerRevision", namespace), found)
        return answer if answer.status != HTTPStatus.CONFLICT else None

    return eventually(in_time)


@pytest.mark.parametrize("reviewed", [False, True], ids=["not reviewed", "reviewed"])
def test_a_revision_in_its_place(plane, namespace, denying, reviewed):
    wrong = [constraint(labelSelector=OTHERS)]
    with registered(plane, namespace, denying.server) if reviewed else contextlib.nullcontext():
        name = running(plane, namespace)
        right = made_anew(plane, namespace)
        answer = replaced(plane, namespace, name, wrong)
        assert answer.status == (403 if reviewed else 201), answer
        if reviewed:
            assert "selector-not-self" in answer.message
            assert [made_anew(plane, namespace) for _ in range(2)] == [right, right]
        else:  # the controller may still know the old revision alone
            eventually(lambda: made_anew(plane, namespace) == wrong, 30)


def test_pods_of_an_older_revision_are_made_again(plane, namespace, denying):
    """It was written before the rule: neither the rollout nor a pod that is lost may wait for anybody."""
    wrong = constraint(labelSelector=OTHERS)
    running(plane, namespace, wrong)
    with registered(plane, namespace, denying.server):
        right = clean("StatefulSet", "web")["spec"]["template"]["spec"]["topologySpreadConstraints"]
        change = [{"op": "replace", "path": "/spec/template/spec/topologySpreadConstraints", "value": right}]
        where = path("StatefulSet", namespace, "web")
        plane.api.request("PATCH", where, change, "application/json-patch+json")

        def recorded():
            status = plane.api.request("GET", where)["status"]
            return status["updateRevision"] != status["currentRevision"]

        eventually(recorded, 30)
        assert made_anew(plane, namespace) == [wrong]
        change = [{"op": "replace", "path": "/spec/updateStrategy/rollingUpdate/partition", "value": 0}]
        plane.api.request("PATCH", where, change, "application/json-patch+json")
        eventually(lambda: plane.api.request("GET", where)["status"].get("updatedReplicas") == 2, 60)
        assert made_anew(plane, namespace) == right


AS_AN_OPERATOR = ("--as", "system:serviceaccount:operators:default", "--as-group", "system:masters")


@contextlib.contextmanager
def asked_about(plane, namespace, webhook):
    """The webhook is asked about what the chart's conditions send."""
    chart = configurations("https://localhost", webhook.server.authority, Defaults())[0]
    [asked] = chart["webhooks"]
    with registered(plane, namespace, webhook.server, routes=("validate",)):
        where = f"{GROUP}/validatingwebhookconfigurations"
        [name] = [each["metadata"]["name"] for each in plane.api.request("GET", where)["items"]]
        change = [
            {"op": "replace", "path": f"/webhooks/0/{part}", "value": asked[part]}
            for part in ("matchConditions", "rules")
        ]
        plane.api.request("PATCH", f"{where}/{name}", change, "application/json-patch+json")
        unasked = {**clean("Deployment", "web"), "metadata": {"name": "x", "deletionTimestamp": None}}
        unasked["spec"]["template"]["spec"]["topologySpreadConstraints"] = [constraint(labelSelector=OTHERS)]
        eventually(lambda: plane.api.send("POST", path("Deployment", namespace), unasked).status == 403)
        yield


def collected(plane, namespace, _name):
    """Kubernetes' garbage collector takes the reference to the owner away."""
    plane.api.request("DELETE", path("ConfigMap", namespace, "own"), {"propagationPolicy": "Orphan"})


def deleted(plane, namespace, name):
    """Its author does, once it is being deleted."""
    where = path("ControllerRevision", namespace, name)
    plane.api.request("DELETE", where)
    plane.api.send("PATCH", where, {"metadata": {"ownerReferences": None}}, "application/merge-patch+json")


def written_instead(plane, kubectl, where, revision):
    """Create this revision as an operator. The StatefulSet controller may be faster with its own: delete that one."""
    ran = kubectl("create", *AS_AN_OPERATOR, "-f", "-", stdin=revision)
    if "AlreadyExists" in ran.err:
        plane.api.send("DELETE", where)
        return False
    assert ran.code == 0, ran.err
    return True


@pytest.mark.parametrize("orphaned", [collected, deleted])
def test_an_operators_revision_does_not_become_the_sets(plane, namespace, kubectl, denying, orphaned):
    """Nobody knows what an operator's data mean; once its owner is gone, a StatefulSet takes it for its own."""
    wrong = [constraint(labelSelector=OTHERS)]
    with asked_about(plane, namespace, denying):
        name = running(plane, namespace)
        right = made_anew(plane, namespace)
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own"}}
        made = plane.api.request("POST", path("ConfigMap", namespace), owner)
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "own", "uid": made["metadata"]["uid"]}
        where = path("ControllerRevision", namespace, name)
        found = plane.api.request("GET", where)
        found["data"]["spec"]["template"]["spec"]["topologySpreadConstraints"] = wrong
        labels = found["metadata"]["labels"]
        found["metadata"] = {"name": name, "namespace": namespace, "labels": labels, "finalizers": ["example.com/keep"]}
        found["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
        plane.api.send("DELETE", where)
        eventually(lambda: written_instead(plane, kubectl, where, found), 60)

        orphaned(plane, namespace, name)
        time.sleep(3)
        try:
            assert made_anew(plane, namespace) == right
            still = plane.api.request("GET", where)["metadata"]["ownerReferences"]
            assert [each["kind"] for each in still] == ["ConfigMap"]
        finally:
            plane.api.send("PATCH", where, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
