"""A namespace's administrator replaces the revision from which a StatefulSet's controller makes pods."""

import contextlib

import pytest
from e2e.attacks.tenant import OTHERS
from e2e.objects import clean, constraint, path
from e2e.registration import registered
from e2e.waiting import eventually


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
    plane.api.request("DELETE", where)
    eventually(lambda: plane.api.send("GET", where).status == 404)
    return plane.api.send("POST", path("ControllerRevision", namespace), found)


@pytest.mark.parametrize("reviewed", [False, True], ids=["not reviewed", "reviewed"])
def test_a_revision_in_its_place(plane, namespace, denying, reviewed):
    wrong = [constraint(labelSelector=OTHERS)]
    with registered(plane, namespace, denying.server) if reviewed else contextlib.nullcontext():
        name = running(plane, namespace)
        right = made_anew(plane, namespace)
        answer = replaced(plane, namespace, name, wrong)
        assert answer.status == (403 if reviewed else 201), answer
        assert (made_anew(plane, namespace) == wrong) is not reviewed
        if reviewed:
            assert "selector-not-self" in answer.message
            assert made_anew(plane, namespace) == right


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
