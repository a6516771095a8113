"""Defaults beside a second webhook, and what must not happen: a rollout, a restart, a constraint twice."""

import base64
import json

import pytest
from e2e.double import answering, review, uid
from e2e.injected import CONSTRAINTS, RECORD, constraints, create, injecting, pods, records, running, spreading
from e2e.objects import path, workload
from e2e.registration import registered
from e2e.waiting import eventually

# -- a second webhook


def labelling(body):
    """Adds a label to every pod that lacks it, as a mesh or a cost tool does."""
    request = json.loads(body)["request"]
    answer = {"uid": uid(body), "allowed": True}
    creation = (request["kind"]["kind"], request["operation"]) == ("Pod", "CREATE")
    if creation and "team" not in request["object"]["metadata"]["labels"]:
        patch = json.dumps([{"op": "add", "path": "/metadata/labels/team", "value": "x"}])
        answer |= {"patchType": "JSONPatch", "patch": base64.b64encode(patch.encode()).decode()}
    return review(answer)


@pytest.fixture(name="labeller")
def _labeller(tmp_path):
    with answering(tmp_path, labelling) as server:
        yield server


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(("z", ("app", "pod-template-hash"), 2), id="it labels after us, and we are asked again"),
        pytest.param(("a", ("app", "pod-template-hash", "team"), 0), id="it labels before us"),
    ],
)
def test_a_second_webhook_that_adds_labels(plane, shop, webhook, labeller, case):
    order, selects, again = case
    service = {"selector": {"team": "x"}, "ports": [{"port": 80}]}
    create(plane, shop, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": service})
    asked = webhook.metric("evenspread_injections_skipped_total", 'reason="own-constraints"')
    with registered(plane, shop, labeller, routes=("mutate",), order=order):
        create(plane, shop, workload("Deployment", "web"))
        found = running(plane, shop, 2)

    labels = found[0]["metadata"]["labels"]
    expected = spreading({key: labels[key] for key in selects}, ("pod-template-hash",))
    assert [constraints(made) for made in found] == [expected] * 2
    assert [made["metadata"]["labels"]["team"] for made in found] == ["x"] * 2
    assert records(found) == 2
    assert webhook.metric("evenspread_injections_skipped_total", 'reason="own-constraints"') - asked == again


# -- nothing is rolled out


def standing(plane, namespace):
    """What a rollout or a restart would change."""
    workloads = [plane.api.request("GET", path(kind, namespace, "web")) for kind in ("Deployment", "StatefulSet")]
    return {
        "specs": [made["spec"] for made in workloads],
        "generations": [made["metadata"]["generation"] for made in workloads],
        "revisions": [made["metadata"]["uid"] for made in replica_sets(plane, namespace)],
        "pods": {made["metadata"]["uid"] for made in pods(plane, namespace)},
    }


def settled(plane, namespace):
    """Both controllers have seen the latest of their workloads."""
    for kind in ("Deployment", "StatefulSet"):
        made = plane.api.request("GET", path(kind, namespace, "web"))
        if made["status"].get("observedGeneration") != made["metadata"]["generation"]:
            return False
    return True


@pytest.fixture(name="workloads")
def _workloads(plane, shop):
    create(plane, shop, workload("Deployment", "web"))
    create(plane, shop, workload("StatefulSet", "web"))
    running(plane, shop, 4)
    return shop


def change(plane, namespace, kind, name, metadata):
    where = path(kind, namespace, name)
    plane.api.request("PATCH", where, {"metadata": metadata}, "application/merge-patch+json")


def replica_sets(plane, namespace):
    return plane.api.request("GET", path("ReplicaSet", namespace))["items"]


def test_changes_of_metadata_roll_nothing_out(plane, workloads):
    before = standing(plane, workloads)
    for made in replica_sets(plane, workloads):
        change(plane, workloads, "ReplicaSet", made["metadata"]["name"], {"labels": {"touched": "x"}})
    for made in pods(plane, workloads):
        change(plane, workloads, "Pod", made["metadata"]["name"], {"labels": {"touched": "x"}})
    for kind in ("Deployment", "StatefulSet"):
        change(plane, workloads, kind, "web", {"annotations": {"note": "x"}, "labels": {"touched": "x"}})

    def copied():  # a Deployment hands its annotations to its ReplicaSet: its controller has been at work
        notes = [made["metadata"]["annotations"].get("note") for made in replica_sets(plane, workloads)]
        return notes == ["x"] and settled(plane, workloads)

    eventually(copied)
    # The API server itself counts a change of a Deployment's annotations as a new generation.
    assert standing(plane, workloads) == before | {"generations": [2, 1]}


def recorded(made):
    return json.loads(made["metadata"]["annotations"][RECORD])


def test_other_defaults_are_for_new_pods_only(plane, namespace, tmp_path):
    with injecting(plane, tmp_path) as webhook, registered(plane, namespace, webhook.server):
        create(plane, namespace, workload("Deployment", "web"))
        create(plane, namespace, workload("StatefulSet", "web"))
        before = running(plane, namespace, 4) and standing(plane, namespace)
        webhook.configure({"defaults": {"mode": "inject", "defaultConstraints": [CONSTRAINTS[1]]}})
        assert standing(plane, namespace) == before
        scale = {"spec": {"replicas": 3}}
        for kind in ("Deployment", "StatefulSet"):
            plane.api.request("PATCH", f"{path(kind, namespace, 'web')}/scale", scale, "application/merge-patch+json")
        found = running(plane, namespace, 6)
        eventually(lambda: settled(plane, namespace))
        after = standing(plane, namespace)

    assert after["revisions"] == before["revisions"]
    assert after["pods"] > before["pods"]
    old = [made for made in found if made["metadata"]["uid"] in before["pods"]]
    new = [made for made in found if made["metadata"]["uid"] not in before["pods"]]
    assert [len(constraints(made)) for made in old] == [2] * 4
    assert [len(constraints(made)) for made in new] == [1] * 2
    first, second = ({recorded(made)["revision"] for made in some} for some in (old, new))
    assert (len(first), len(second), first & second) == (1, 1, set())
