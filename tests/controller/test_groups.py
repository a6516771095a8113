"""SpreadGroups beside the fake API server: a status that follows what there is, written when it differs."""

from functools import partial

import pytest
from build import pod_names
from cluster.api import FakeApi, refuse
from cluster.following import eventually, feeding, server
from controller.town import Replica, add_nodes, add_workload, figures, owned_by

from webhook.cluster.reflector import Timing
from webhook.cluster.resources import watched
from webhook.controller.bounds import Allowance, Rate
from webhook.controller.groups import GroupReconciler
from webhook.core.api.spread_group import MOST_GROUPS
from webhook.core.policy.policy import Policy
from webhook.core.scan.group_members import group_status

BUG = "groups: failed because of a bug: ZeroDivisionError"
LABELS = {"app": "redis"}
SPEC = {
    "selector": {"matchLabels": LABELS},
    "shard": {"label": "shard", "neverShare": "topology.kubernetes.io/zone"},
    "expected": {"shards": 3, "podsPerShard": 2},
    "planFor": {"shards": 6},
    "caps": [{"topologyKey": "topology.kubernetes.io/zone", "lessThan": "1/2"}],
    "delivery": "status",
}


@pytest.fixture(name="api")
def _api():
    with FakeApi(tls=False) as api:
        api.absent -= {"reports"}
        add_nodes(api)
        api.put("namespaces", "shop")
        yield api


@pytest.fixture(name="replica")
def _replica(api, tmp_path):
    with Replica(api, tmp_path, reports=False) as replica:
        yield replica


def add_group(api, name="cache", namespace="shop", *, generation=1, created="2026-11-23T11:00:00Z", **more):
    before = api.objects["spreadgroups"].get((namespace, name), {})
    meta = {"generation": generation, "creationTimestamp": created}
    return api.put("spreadgroups", name, namespace, metadata=meta, spec=SPEC | more, status=before.get("status", {}))


def status(api, name="cache", namespace="shop"):
    return api.objects["spreadgroups"][namespace, name].get("status") or {}


def conditions(api, *where):
    return {each["type"]: (each["status"], each["reason"]) for each in status(api, *where).get("conditions", ())}


class Reconciler:
    """One that reconciles with the evaluation that the test gives it."""

    def __init__(self, api, folder, feed, **given):
        self.now = 1_795_435_260.0
        plenty = Rate(a_minute=60, burst=100)
        arguments = {
            "policy": Policy,
            "allowance": Allowance(plenty, plenty),
            "events": None,
            "may_write": lambda: True,
        }
        self.groups = GroupReconciler(server(api, folder), clock=lambda: self.now, **arguments | given)
        self.feed = feed

    def turn(self, seconds=30):
        self.now += seconds
        self.groups.turn(self.feed)


@pytest.fixture(name="reconciler")
def _reconciler(api, tmp_path):
    with feeding(api, tmp_path, watched(Policy()), Timing()) as feed:
        eventually(lambda: feed.synced)
        yield partial(Reconciler, api, tmp_path, feed)


def turns(replica, until):
    """Turn, half a minute after half a minute, until it is so."""

    def turned():
        replica.turn()
        return until()

    eventually(turned)


def add_shard(api, number, *nodes, fields=None):
    """A StatefulSet with its pods on these nodes."""
    made = add_workload(api, f"redis-{number}", replicas=2, app="redis", kind="statefulsets", constraint=None)
    template = made["spec"]["template"]
    template["metadata"]["labels"] = LABELS | {"shard": str(number)}
    template["spec"] = {"containers": [{"name": "c", "image": "i"}], **(fields or {})}
    api.put("statefulsets", f"redis-{number}", "shop", spec=made["spec"])
    for each, node in enumerate(nodes):
        meta = {"labels": LABELS | {"shard": str(number)}, "ownerReferences": owned_by(made)}
        spec = template["spec"] | {"nodeName": node}
        api.put("pods", f"redis-{number}-{each}", "shop", metadata=meta, spec=spec, status={"phase": "Running"})


def fields_of(api, number):
    """What the status gives to a shard."""
    found = {each["shard"]: each for each in status(api)["workloads"]}[str(number)]
    return {key: found[key] for key in ("topologySpreadConstraints", "affinity") if key in found}


def group_writes(api):
    return [each for each in api.writes if each.resource == "spreadgroups"]


def messages(caplog):
    return {each.message for each in caplog.records}


def group_events(api):
    """The events about groups. Updates of the scan write events about their workloads, too."""
    return [each for each in api.objects["events"].values() if each["regarding"]["kind"] == "SpreadGroup"]


def told(api):
    return [each["reason"] for each in group_events(api)]


def test_from_the_first_plan_to_a_cap_that_is_broken_and_mended(api, replica):
    add_group(api)
    turns(replica, lambda: conditions(api))
    assert conditions(api)["Delivered"] == ("False", "NothingSelected")
    given = [fields_of(api, number) for number in range(3)]
    for number, nodes in enumerate((("n-a", "n-b"), ("n-a", "n-c"), ("n-b", "n-c"))):
        add_shard(api, number, *nodes, fields=given[number])
    turns(replica, lambda: conditions(api)["Delivered"] == ("True", "Delivered"))
    assert conditions(api)["CapsHeld"] == ("True", "Held")
    revision, pins = status(api)["revision"], [each["zones"] for each in status(api)["workloads"]]
    add_group(api, generation=2, expected={"shards": 5, "podsPerShard": 2})
    turns(replica, lambda: status(api)["observedGeneration"] == 2)
    assert (status(api)["revision"], [each["zones"] for each in status(api)["workloads"]][:3]) == (revision, pins)
    add_group(api, generation=3)
    assert told(api) == []
    add_shard(api, 2, "n-a", "n-a")
    turns(replica, lambda: conditions(api)["CapsHeld"] == ("False", "CapExceeded"))
    eventually(lambda: told(api) == ["GroupCapExceeded"])
    (event,) = group_events(api)
    assert event["note"] == "zone a 4 pods, at most 2"
    assert figures(replica)["evenspread_group_cap_exceeded_pods", "shop", "cache", SPEC["caps"][0]["topologyKey"]] == 2
    assert figures(replica)["evenspread_groups", "CapsHeld", "False"] == 1
    assert figures(replica)["evenspread_group_unguarded_pods",] == 2
    assert status(api)["moves"][0]["from"] == "a"
    add_shard(api, 2, "n-b", "n-c", fields=given[2])
    turns(replica, lambda: conditions(api)["CapsHeld"] == ("True", "Held"))
    api.delete("spreadgroups", "cache", "shop")
    turns(replica, lambda: not replica.scanner.groups.found)
    assert not [key for key in figures(replica) if key[0].startswith("evenspread_group")]


def test_what_does_not_change_is_not_written(api, replica):
    add_group(api)
    turns(replica, lambda: conditions(api))
    before = len(group_writes(api))
    for _ in range(5):
        replica.turn(100)
    assert len(group_writes(api)) == before == 1
    (write,) = group_writes(api)
    assert write.query == {"fieldManager": "evenspread", "force": "true"}


def test_whoever_leads_next_writes_nothing_anew(api, replica, tmp_path):
    add_group(api)
    turns(replica, lambda: conditions(api))
    replica.leads = False
    replica.scanner.turn()
    with Replica(api, tmp_path, reports=False) as other:
        turns(other, lambda: other.scanner.groups.found)
    assert len(group_writes(api)) == 1


def test_a_younger_group_of_the_same_pods_is_told_so(api, replica):
    add_group(api)
    add_group(api, "again", created="2026-11-23T11:30:00Z")
    turns(replica, lambda: conditions(api, "again"))
    assert conditions(api, "again")["Planned"] == ("False", "Overlaps")
    turns(replica, lambda: conditions(api))
    assert conditions(api)["Planned"] == ("True", "Planned")


def test_a_spec_that_says_nothing_is_told_so(api, replica):
    add_group(api, caps=[{"topologyKey": "topology.kubernetes.io/zone"}])
    add_group(api, "other", created="2026-11-23T11:30:00Z")
    turns(replica, lambda: conditions(api) and conditions(api, "other"))
    assert conditions(api)["Planned"] == ("False", "InvalidSpec")
    assert conditions(api, "other")["Planned"] == ("True", "Planned")


def test_a_group_that_goes_meanwhile_is_none(api, replica):
    add_group(api)
    api.strike("any", refuse(404, "not found"), resource="cache", times=50)
    turns(replica, lambda: replica.scanner.feed is not None and replica.scanner.feed.synced)
    for _ in range(3):
        replica.turn(100)
    assert (group_writes(api), replica.scanner.groups.fault) == ([], "")


@pytest.mark.parametrize(
    ("fault", "outcome", "said"),
    [
        pytest.param(refuse(500, "no"), "failed", "groups: 500 no", id="failed"),
        pytest.param(refuse(409, "conflict"), "refused", "", id="another object of that name"),
    ],
)
def test_a_status_that_cannot_be_written_is_tried_again(api, replica, fault, outcome, said):
    add_group(api)
    api.strike("write", fault, resource="spreadgroups", times=1)
    turns(replica, lambda: replica.scanner.groups.writes[outcome])
    assert replica.scanner.groups.fault == said
    assert replica.scanner.lines().get("groups", "") == said
    turns(replica, lambda: conditions(api))
    assert replica.scanner.groups.fault == ""


def test_a_connection_that_breaks_is_said(api, replica):
    add_group(api)
    api.strike("any", refuse(500, "no"), resource="cache", times=1)
    turns(replica, lambda: replica.scanner.groups.fault == "groups: 500 no")


def test_a_bug_in_one_group_keeps_no_other_back(api, reconciler, caplog):
    add_group(api, "bad")
    add_group(api, namespace="bank")
    api.put("namespaces", "bank")

    def raises(of, *rest):
        return 1 / 0 if of.meta.name == "bad" else group_status(of, *rest)

    turns(reconciler(evaluate=raises), lambda: conditions(api, "cache", "bank"))
    assert messages(caplog) == {"a bug stopped the evaluation of a SpreadGroup; other groups continue", BUG}


def test_more_writes_than_a_namespace_may_have_wait(api, reconciler):
    add_group(api)
    none = Rate(a_minute=0, burst=0)
    slow = reconciler(allowance=Allowance(none, none))
    turns(slow, lambda: slow.groups.writes["postponed"])
    assert group_writes(api) == []


def test_who_leads_no_longer_writes_nothing(api, reconciler):
    add_group(api)
    follower, leader = reconciler(may_write=lambda: False), reconciler()
    for _ in range(3):
        follower.turn()
    assert group_writes(api) == []
    turns(leader, lambda: group_writes(api))


def test_without_events_a_broken_cap_stands_in_the_status_alone(api, tmp_path):
    add_group(api)
    add_shard(api, 0, "n-a", "n-a")
    add_shard(api, 1, "n-a", "n-b")
    with Replica(api, tmp_path, reports=False, events=False) as replica:
        turns(replica, lambda: conditions(api))
        assert conditions(api)["CapsHeld"] == ("False", "CapExceeded")
    assert told(api) == []


def test_a_turn_that_takes_long_goes_on_in_the_next(api, reconciler, monkeypatch):
    """One group of each namespace is due, and none of them waits for ever."""
    monkeypatch.setattr("webhook.controller.groups._TURN_SECONDS", 0.0)
    hurried = reconciler()
    names = [f"team-{number}" for number in range(4)]
    for name in names:
        api.put("namespaces", name)
        add_group(api, namespace=name)
    turns(hurried, lambda: any(conditions(api, "cache", name) for name in names))
    assert sum(bool(conditions(api, "cache", name)) for name in names) == 1
    turns(hurried, lambda: all(conditions(api, "cache", name) for name in names))


@pytest.mark.parametrize(("most", "reason"), [(3, "InvalidSpec"), (4, "Planned")])
def test_of_a_group_with_thousands_of_pods_nothing_is_said_but_that(api, reconciler, monkeypatch, most, reason):
    monkeypatch.setattr("webhook.controller.groups.MOST_PODS", most)
    add_group(api)
    add_shard(api, 0, "n-a", "n-b")
    add_shard(api, 1, "n-a", "n-c")
    turns(reconciler(), lambda: conditions(api))
    assert conditions(api)["Planned"][1] == reason
    assert ("CapsHeld" in conditions(api)) == (reason == "Planned")


def test_a_pod_of_a_node_that_is_gone_is_no_news(api, replica):
    add_group(api)
    add_shard(api, 0, "n-a", "n-gone")
    turns(replica, lambda: conditions(api))
    before = api.count("other", "cache")
    for _ in range(5):
        replica.turn(6)
    assert api.count("other", "cache") == before > 0


@pytest.mark.slow
def test_a_group_that_takes_for_ever_keeps_no_other_back(api, reconciler, monkeypatch, caplog):
    monkeypatch.setattr("webhook.controller.groups._CPU_SECONDS", 0.5)
    add_group(api, "slow")
    add_group(api, namespace="bank")
    api.put("namespaces", "bank")
    asked = []

    def endless(of, *rest):
        asked.append(of.meta.name)
        while of.meta.name == "slow":
            sum(range(1000))
        return group_status(of, *rest)

    patient = reconciler(evaluate=endless)
    turns(patient, lambda: conditions(api, "cache", "bank") and conditions(api, "slow"))
    assert conditions(api, "slow")["Planned"] == ("Unknown", "NotEvaluated")
    assert conditions(api, "cache", "bank")["Planned"] == ("True", "Planned")
    assert messages(caplog) == {"a SpreadGroup takes too long: skipping its namespace for an hour"}
    # Its namespace waits for an hour, whatever is written there meanwhile.
    add_group(api, "slow", generation=2)
    patient.turn(1000)
    assert asked.count("slow") == 1
    patient.turn(3000)
    turns(patient, lambda: asked.count("slow") == 2)


@pytest.mark.slow
def test_the_plan_of_a_group_that_takes_for_ever_stays(api, reconciler, monkeypatch, caplog):
    add_group(api)
    turns(reconciler(), lambda: conditions(api))
    planned = status(api)

    def endless(*_rest):
        while True:
            sum(range(1000))

    monkeypatch.setattr("webhook.controller.groups._CPU_SECONDS", 0.5)
    turns(reconciler(evaluate=endless), lambda: messages(caplog))
    assert status(api) == planned


@pytest.mark.slow
def test_of_groups_that_are_not_planned_no_change_is_looked_for(api, reconciler):
    """A tenant makes thousands, and each turn would count the pods of each."""
    names = [f"cache-{number:02}" for number in range(MOST_GROUPS + 1)]
    for number, name in enumerate(names):
        add_group(api, name, created=f"2026-11-23T10:{number:02}:00Z")
    add_shard(api, 0, "n-a", "n-b")
    quick = reconciler()
    turns(quick, lambda: all(conditions(api, name) for name in names))
    before = {name: api.count("other", name) for name in names}
    add_shard(api, 1, "n-a", "n-c")
    eventually(lambda: "redis-1-1" in pod_names(quick.feed.index, "shop"))
    for _ in names:
        quick.turn(1)
    assert [name for name in names if api.count("other", name) > before[name]] == names[:MOST_GROUPS]


def test_pods_that_are_too_long_for_a_page_are_asked_for_one_by_one(api, reconciler):
    add_group(api)
    for number in range(3):
        add_shard(api, number, "n-a", "n-b")
    limits, length = [], 33 * 1024 * 1024  # a MiB too much

    def too_long(handler, request):
        limits.append(request.query["limit"])
        if limits[-1] == "1":
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(length))
        handler.end_headers()
        handler.wfile.write(bytes(length))
        return True

    api.strike("list", too_long, resource="pods", times=2)
    turns(reconciler(), lambda: conditions(api))
    assert (limits, api.pending_faults()) == (["100", "1"], 0)
    assert status(api)["distribution"][0]["domains"] == {"a": 3, "b": 3, "c": 0}
