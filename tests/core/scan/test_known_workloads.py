"""The workloads scanned again after one event, and the results after a failed scan."""

import pytest
from properties.test_known_workloads import (
    CURRENT,
    Town,
    apart,
    autoscaler,
    claim,
    constraint,
    limits,
    made,
    node,
    pod,
    priority,
    replica_set,
    service,
    workload,
)

from webhook.core.policy.policy import Policy
from webhook.core.scan.workload_scan import scan_workload

OTHER = [constraint(app="api", action="ScheduleAnyway")]


def big(name, zone, **more):
    return node(name, zone, **{"cpu": "64", "pods": "110", **more})


def town():
    """Two Deployments and a StatefulSet in shop, and a Deployment in bank. A node has no room for two pods of bank."""
    return Town(
        *(big(f"n{number}", zone) for number, zone in enumerate("abc")),
        *(made("Namespace", name) for name in ("shop", "bank")),
        workload("Deployment", "web", "shop", constraints=[constraint()]),
        workload("Deployment", "other", "shop", constraints=OTHER),
        workload("StatefulSet", "api", "shop", constraints=[constraint(app="api", action="ScheduleAnyway")]),
        workload("Deployment", "web", "bank", cpu="40", constraints=[constraint()]),
        *(replica_set("web", namespace) for namespace in ("shop", "bank")),
        *(pod(number, "web", "shop", f"n{number}", kind="ReplicaSet") for number in range(2)),
        *(pod(number, "api", "shop", f"n{number}", cpu="500m") for number in range(2)),
        priority(),
    )


ALL = {"shop/web", "shop/other", "shop/api", "bank/web"}
SHOP = ALL - {"bank/web"}


@pytest.mark.parametrize(
    ("what", "event", "expected"),
    [
        pytest.param("MODIFIED", big("n0", "a"), set(), id="a heartbeat of a node concerns none"),
        pytest.param("MODIFIED", big("n0", "a", cordoned=True), ALL, id="a cordon concerns all"),
        pytest.param("MODIFIED", big("n0", "b"), ALL, id="a node's zone concerns all"),
        pytest.param("ADDED", big("n9", "c"), ALL, id="a new node concerns all"),
        pytest.param("DELETED", big("n2", "c"), ALL, id="a lost node concerns all"),
        pytest.param(
            "MODIFIED", big("n2", "c", cpu="65"), {"bank/web"}, id="a node's size concerns workloads short of room"
        ),
        pytest.param(
            "MODIFIED", pod(0, "web", "shop", "n0", kind="ReplicaSet"), set(), id="a status of a pod concerns none"
        ),
        pytest.param(
            "MODIFIED",
            pod(0, "web", "shop", "n2", kind="ReplicaSet"),
            {"shop/web", "bank/web"},
            id="a pod on another node concerns its workload, and workloads short of room",
        ),
        pytest.param(
            "MODIFIED",
            pod(0, "api", "shop", "n2", cpu="500m"),
            {"shop/api", "shop/other", "bank/web"},
            id="a pod concerns every workload that counts it",
        ),
        pytest.param("ADDED", pod(2, "web", "shop", kind="ReplicaSet"), {"shop/web"}, id="a Pending pod"),
        pytest.param("ADDED", pod(7, "lone", "zoo", kind="ReplicaSet"), set(), id="a Pending pod of others"),
        pytest.param(
            "MODIFIED",
            workload("Deployment", "web", "shop", replicas=5, constraints=[constraint()]),
            {"shop/web"},
            id="a workload's replicas concern itself",
        ),
        pytest.param(
            "ADDED",
            workload("Deployment", "more", "shop", app="api"),
            {"shop/more", "shop/other", "shop/api"},
            id="a new workload concerns those whose selector matches its pods",
        ),
        pytest.param(
            "MODIFIED", replica_set("web", "shop", 7), {"shop/web"}, id="a ReplicaSet concerns its Deployment"
        ),
        pytest.param("ADDED", autoscaler("web", "shop"), {"shop/web"}, id="an autoscaler concerns its target"),
        pytest.param("ADDED", limits("1", "shop"), SHOP, id="a LimitRange concerns its namespace"),
        pytest.param("MODIFIED", priority(5), ALL, id="a default priority concerns all"),
        pytest.param("ADDED", service("web", "zoo"), set(), id="a Service elsewhere concerns none"),
        pytest.param("MODIFIED", made("Namespace", "bank", labels={"a": "b"}), {"bank/web"}, id="a namespace's labels"),
    ],
)
def test_one_event_concerns(what, event, expected):
    after = town()
    after.looks()
    after.put(event, what)
    assert after.missed() == CURRENT
    assert after.looks() == expected
    assert (after.kept(), after.looks()) == (after.anew(), set())


def elsewhere(labels):
    """A pod in a namespace of no workload that rejects pods of web in namespaces with these labels."""
    affinity = apart("web", namespaceSelector={"matchLabels": labels})
    return pod(0, "lone", "zoo", "n0", kind="ReplicaSet", cpu="0", affinity=affinity)


RED = {"team": "red"}


@pytest.mark.parametrize(
    ("before", "event", "expected"),
    [
        pytest.param(
            pod(2, "web", "shop", kind="ReplicaSet"),
            pod(2, "web", "shop", kind="ReplicaSet", cpu="90"),
            {"shop/web"},
            id="a Pending pod's request",
        ),
        pytest.param(
            made("Namespace", "zoo"), elsewhere({}), {"shop/web", "bank/web"}, id="a pod that rejects pods elsewhere"
        ),
        pytest.param(
            elsewhere(RED), made("Namespace", "shop", labels=RED), SHOP, id="a namespace whose pods a pod now rejects"
        ),
        pytest.param(
            workload("Deployment", "disk", "shop", claim="data"), claim("data", "shop"), {"shop/disk"}, id="a claim"
        ),
    ],
)
def test_one_event_after_another_concerns(before, event, expected):
    after = town()
    after.put(before)
    after.looks()
    after.put(event)
    assert after.missed() == CURRENT
    assert after.looks() == expected
    assert after.kept() == after.anew()


def test_the_policy_concerns_all():
    after = town()
    after.looks()
    after.policy = Policy(max_staleness_seconds=7.0)
    assert after.looks() == ALL


def test_the_versions_of_owners_concern_none():
    after = town()
    after.looks()
    whole = replica_set("web", "shop")
    after.put({**whole, "metadata": {**whole["metadata"], "resourceVersion": "9"}})
    assert after.looks() == set()


def test_the_age_of_a_cordon_and_the_date_concern_all():
    after = town()
    after.put(big("n0", "a", cordoned=True, since="2026-11-23T11:59:30Z"))
    after.looks()
    after.now = "2026-11-23T12:59:00Z"
    assert after.looks() == set()
    after.now = "2026-11-23T12:59:31Z"
    assert after.looks() > {"shop/web"}
    after.now = "2026-11-24T00:00:00Z"
    assert after.looks() == ALL


def test_many_workloads_with_a_change_of_the_whole_cluster_wait(monkeypatch):
    monkeypatch.setattr("webhook.core.scan.known_workloads._FEW", 2)
    after = town()
    after.looks()
    after.put(big("n0", "a", cordoned=True))
    after.put(pod(2, "web", "shop", kind="ReplicaSet"))
    assert after.looks(every=False) == {"shop/web"}
    assert after.looks(every=True) == ALL - {"shop/web"}


def test_a_failed_scan_keeps_the_result_and_is_no_difference():
    after = town()
    after.looks()
    (key,) = {key for key in after.raw if (key.namespace, key.name) == ("shop", "api")}
    before = after.kept()
    after.put(pod(2, "web", "shop", kind="ReplicaSet"))
    after.put(pod(0, "api", "shop", "n2", cpu="500m"))

    def fails(raw, within):
        if b'"api"' in raw and b"StatefulSet" in raw:
            raise ZeroDivisionError
        return scan_workload(raw, within)

    within = after.within()
    after.known.note(after.changes.take()[0], within)
    for each in sorted(after.known.due(every=True)):
        if each == key:
            with pytest.raises(ZeroDivisionError):
                after.known.scan(after.raw[each], within, fails)
        else:
            after.known.scan(after.raw[each], within, fails)
    assert after.known.scan_of(key) == before[key]
    assert after.looks() == set()
    after.known.scan(after.raw[key], after.within(), scan_workload)
    assert (after.kept(), after.known.take_differing()) == (after.anew(), [])


def test_a_result_that_differs_without_a_changed_fact_is_counted():
    after = town()
    after.looks()
    (key,) = {key for key in after.raw if (key.namespace, key.name) == ("bank", "web")}
    within = after.within()
    after.known.scan(after.raw[key], within, scan_workload)
    assert after.known.take_differing() == []
    after.known.scan(after.raw[key], within, lambda _raw, _within: None)
    assert after.known.take_differing() == [key]
    assert after.known.take_differing() == []


def test_objects_without_pods_and_deleted_workloads_have_no_scan():
    after = town()
    after.looks()
    raw = b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}}'
    assert after.known.scan(raw, after.within(), scan_workload) is None
    keys = after.known.keys()
    assert (len(keys), len(after.known.scans())) == (5, 4)
    assert after.known.is_current(raw)
    after.known.drop(keys)
    assert (after.known.keys(), after.known.scans(), after.known.due(every=True)) == (frozenset(), [], [])
    assert (after.known.raw(min(keys)), after.known.scan_of(min(keys))) == (None, None)
