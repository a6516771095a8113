"""The background scan beside a real API server: reports, events and metrics follow what happens, whoever leads."""

import pytest
from e2e.objects import constraint, path, pod_spec, workload
from e2e.scanning import forbid, permissions, permit, scanning
from e2e.test_groups import GROUPS, ZONE, _definition, group  # noqa: F401 a fixture
from e2e.test_reports import APIS, served
from e2e.waiting import eventually

WRONG = constraint(labelSelector={"matchLabels": {"app": "old"}})


@pytest.fixture(name="account", scope="module")
def _account(plane):
    permit(plane)
    yield eventually(lambda: plane.service_account("scanning", "evenspread-controller"))
    forbid(plane)


@pytest.fixture(name="reports")
def _reports(plane, request):
    with served(plane, request.param) as reports:
        yield reports


def db():
    """Pods of its own, spread over the zones that are open."""
    labels = {"app": "db"}
    made = workload(
        "StatefulSet",
        "db",
        constraint(nodeTaintsPolicy="Honor", labelSelector={"matchLabels": labels}),
        replicas=4,
    )
    made["spec"] |= {"selector": {"matchLabels": labels}, "podManagementPolicy": "Parallel"}
    made["spec"]["template"]["metadata"]["labels"] = labels
    return made


def reported(plane, namespace, reports):
    """Workload -> policies, and when its report was written."""
    version, plural = reports
    items = plane.api.request("GET", f"/apis/{version}/namespaces/{namespace}/{plural}")["items"]
    return {
        each["scope"]["name"]: ({one["policy"] for one in each["results"]}, each["metadata"]["resourceVersion"])
        for each in items
    }


def told(plane, namespace):
    items = plane.api.request("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    ours = [each for each in items if each["reportingController"] == "evenspread.io/controller"]
    return sorted((each["reason"], each["regarding"]["name"]) for each in ours)


def cordon(plane, zone, *, closed):
    for node in plane.api.request("GET", "/api/v1/nodes")["items"]:
        if node["metadata"]["labels"]["topology.kubernetes.io/zone"] == zone:
            plane.api.request(
                "PATCH",
                f"/api/v1/nodes/{node['metadata']['name']}",
                {"spec": {"unschedulable": closed}},
                "application/merge-patch+json",
            )


def placed(plane, namespace):
    pods = plane.api.request("GET", path("Pod", namespace))["items"]
    return [each for each in pods if each["spec"].get("nodeName") and each["status"].get("phase") == "Running"]


def change_leaders(plane, kubectl, namespace, reports, leader, other):  # noqa: PLR0917 as the test has them
    """One ends, the other takes over: it repeats nothing, and says what it may not do."""
    # Another leader: nothing is written anew, nothing is told twice.
    leader.scanned()
    before, events = reported(plane, namespace, reports), told(plane, namespace)
    leader.end()
    eventually(lambda: other.metric("evenspread_leader") == 1, 30, 0.2)
    other.scanned()
    assert reported(plane, namespace, reports) == before
    assert told(plane, namespace) == events
    assert len({*events}) == len(events)

    # Forbidden: said, and nothing is lost; then permitted again.
    permissions(kubectl, without=("openreports.io", "wgpolicyk8s.io"))
    eventually(lambda: "reports: reports cannot be read: 403" in other.page("/readyz"), 60, 0.2)
    assert reported(plane, namespace, reports) == before
    permissions(kubectl)


@pytest.mark.parametrize("reports", APIS, indirect=True)
def test_what_is_told_follows_what_happens(  # noqa: PLR0917 fixtures
    plane, kubectl, namespace, reports, account, tmp_path
):
    version, _ = reports
    with scanning(tmp_path / "one", account) as first, scanning(tmp_path / "two", account) as second:
        # Created, and wrong.
        plane.api.request("POST", path("Deployment", namespace), workload("Deployment", "web", WRONG))
        # Even in two zones, while the third is closed.
        cordon(plane, "c", closed=True)
        plane.api.request("POST", path("StatefulSet", namespace), db())
        eventually(lambda: len(placed(plane, namespace)) >= 4, 30)
        leader = eventually(
            lambda: next((each for each in (first, second) if each.metric("evenspread_leader") == 1), None), 30
        )
        eventually(lambda: "web" in reported(plane, namespace, reports), 60, 0.2)
        assert "selector-not-self" in reported(plane, namespace, reports)["web"][0]
        assert f"reports: {version}\n" in leader.page("/readyz")

        # Drift: the zone opens, and is empty.
        cordon(plane, "c", closed=False)
        eventually(lambda: "spread-drift" in reported(plane, namespace, reports).get("db", ([],))[0], 60, 0.2)
        eventually(lambda: ("SpreadDrift", "db") in told(plane, namespace), 30, 0.2)  # the event follows the report
        assert "SpreadDrift" in kubectl("describe", "statefulset", "db", "-n", namespace).out
        eventually(lambda: leader.metric("evenspread_skew", f'namespace="{namespace}"'), 30, 0.2)

        other = second if leader is first else first
        if version.startswith("openreports.io"):  # once is enough: it takes half a minute
            change_leaders(plane, kubectl, namespace, reports, leader, other)
        else:
            leader.end()

        # Mended: one pod moves to the empty zone; what is gone leaves nothing.
        plane.api.request("DELETE", f"{path('Pod', namespace)}/db-3")
        eventually(lambda: "spread-drift" not in reported(plane, namespace, reports).get("db", ([],))[0], 60, 0.2)
        eventually(lambda: not other.metric("evenspread_skew", f'namespace="{namespace}"'), 30, 0.2)
        for kind, name in (("Deployment", "web"), ("StatefulSet", "db")):
            plane.api.request("DELETE", path(kind, namespace, name))
        eventually(lambda: reported(plane, namespace, reports) == {}, 60, 0.2)
        other.end()


def shard(number, fields):
    """A StatefulSet of two pods with the fields of the status."""
    labels = {"app": "redis", "shard": str(number)}
    made = workload("StatefulSet", f"redis-{number}", replicas=2)
    made["spec"]["selector"] = {"matchLabels": labels}
    made["spec"]["template"]["metadata"]["labels"] = labels
    made["spec"]["template"]["spec"] |= fields
    return made


def stray(zone):
    """A pod of the group without any fields, in that zone; of no shard whose pods keep others away."""
    meta = {"name": "stray", "labels": {"app": "redis", "shard": "9"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod_spec() | {"nodeSelector": {ZONE: zone}}}


@pytest.mark.usefixtures("definition")
def test_a_group_is_planned_and_its_caps_are_watched(plane, kubectl, namespace, account, tmp_path):
    where = f"{GROUPS.format(namespace)}/cache"

    def status():
        return plane.api.request("GET", where).get("status") or {}

    def said(of):
        found = {each["type"]: each for each in status().get("conditions", ())}
        return found.get(of, {}).get("reason")

    def resize(shards):
        change = {"spec": {"expected": {"shards": shards, "podsPerShard": 2}}}
        after = plane.api.request("PATCH", where, change, "application/merge-patch+json")["metadata"]["generation"]
        eventually(lambda: status()["observedGeneration"] == after, 30, 0.2)

    caps = [{"topologyKey": ZONE, "lessThan": "1/2"}]
    size = {"shards": 3, "podsPerShard": 2}
    with scanning(tmp_path / "one", account):
        asked = group(requiredDomains=None, planFor={"shards": 6}, expected=size, caps=caps)
        plane.api.request("POST", GROUPS.format(namespace), asked)
        eventually(lambda: said("Delivered") == "NothingSelected", 60, 0.2)
        first = status()
        assert said("CannotGetStuck") == "ZoneByZone", first
        for each in first["workloads"]:
            fields = {key: each[key] for key in ("topologySpreadConstraints", "affinity") if key in each}
            plane.api.request("POST", path("StatefulSet", namespace), shard(each["shard"], fields))
        eventually(lambda: said("Delivered") == "Delivered" and len(placed(plane, namespace)) == 6, 60, 0.2)
        resize(5)
        pins = [each["zones"] for each in first["workloads"]]
        assert [each["zones"] for each in status()["workloads"][:3]] == pins
        assert status()["revision"] == first["revision"]
        resize(3)

        full = max(status()["distribution"][0]["domains"].items(), key=lambda each: each[1])[0]
        plane.api.request("POST", path("Pod", namespace), stray(full))
        eventually(lambda: said("CapsHeld") == "CapExceeded", 60, 0.2)
        assert status()["unguarded"]["pods"] == ["stray"]
        assert status()["distribution"][0]["domains"][full] == 3
        eventually(lambda: ("GroupCapExceeded", "cache") in told(plane, namespace), 30, 0.2)
        assert "GroupCapExceeded" in kubectl("describe", "sg", "cache", "-n", namespace).out

        plane.api.request("DELETE", f"{path('Pod', namespace)}/stray")
        eventually(lambda: said("CapsHeld") == "Held", 60, 0.2)
        plane.api.request("DELETE", where)
        for number in range(3):
            plane.api.request("DELETE", path("StatefulSet", namespace, f"redis-{number}"))
