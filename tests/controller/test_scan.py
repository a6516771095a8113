"""The scan beside the fake API server: what it looks at, what it writes, and how it goes on after faults."""

import copy
import json
import re
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from cluster.api import KINDS, cut, raw, refuse
from cluster.following import eventually, server
from controller.town import HARD, Replica, add_deployment, add_pods, add_set, add_workload, figures
from msgspec import Raw
from msgspec.structs import replace

from webhook.cluster.errors import ClusterError
from webhook.cluster.listing import ListedPage
from webhook.cluster.unowned_pods import UnownedPod
from webhook.controller import workload_lister
from webhook.controller.scan_inputs import check_age
from webhook.controller.workload_lister import WorkloadLister
from webhook.core.api.types import TypeMeta
from webhook.core.policy.policy import Policy
from webhook.core.scan.scan_results import PendingCause, ScanFailure

EXAMPLE = Path(workload_lister.__file__).parents[1] / "example" / "cluster.jsonl"
WRONG = {**HARD, "labelSelector": {"matchLabels": {"app": "other"}}}
EVEN = ["n-a", "n-b", "n-c"]


@pytest.fixture(name="replica")
def _replica(api, tmp_path):
    with Replica(api, tmp_path) as replica:
        yield replica


@pytest.fixture(name="hurried")
def _hurried(api, tmp_path):
    """A replica with half a second for each workload."""
    with Replica(api, tmp_path, workload_seconds=0.5) as replica:
        yield replica


def results(api):
    """What reports say: workload -> policies."""
    return {
        each["scope"]["name"]: {one["policy"] for one in each["results"]} for each in api.objects["reports"].values()
    }


def events(api):
    return sorted((each["reason"], each["regarding"]["name"]) for each in api.objects["events"].values())


def titles(found):
    return [f"{each.kind}/{each.name}" for each in found.workloads]


# -- what follows what happens


def move(api, places):
    """The pods of web, by their nodes."""
    for number, node in enumerate(places):
        pod = api.objects["pods"]["shop", f"web-{number}"]
        api.put("pods", f"web-{number}", "shop", **{**pod, "spec": {**pod["spec"], "nodeName": node}})


def test_drift_is_reported_told_and_counted_until_it_is_gone(api, replica):
    add_set(api, EVEN)
    replica.scans()
    before = results(api)["web"]
    assert events(api) == []
    move(api, ["n-a"] * 3)
    eventually(lambda: replica.scans() and "spread-drift" in results(api)["web"])
    assert events(api) == [("SpreadDrift", "web")]
    labels = ("shop", "StatefulSet", "web", HARD["topologyKey"], "DoNotSchedule")
    assert (figures(replica)["evenspread_skew", *labels], figures(replica)["evenspread_max_skew", *labels]) == (3, 1)
    move(api, EVEN)
    eventually(lambda: replica.scans() and results(api)["web"] == before)
    assert not [key for key in figures(replica) if key[0] == "evenspread_skew"]
    assert events(api) == [("SpreadDrift", "web")]
    api.delete("statefulsets", "web", "shop")
    replica.scans()
    assert results(api) == {}


def cordon(api, zone):
    node = api.objects["nodes"]["", f"n-{zone}"]
    taints = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    api.put("nodes", f"n-{zone}", **{**node, "spec": {"unschedulable": True, "taints": taints}})


def test_a_pod_that_waits_for_its_own_constraints_is_told_of_itself_after_a_minute(api, replica):
    cordon(api, "c")
    add_set(api, ["n-a", "n-b", "", ""], created="2026-11-23T12:05:30Z")
    found = replica.scans()  # at 12:06
    assert found.pending == {PendingCause.SPREAD: 2}
    assert "spread-infeasible" in results(api)["web"]
    assert [each for each in events(api) if each[0] == "SpreadInfeasible"] == []
    for _ in range(2):
        replica.scans()
    assert [each for each in events(api) if each[0] == "SpreadInfeasible"] == [
        ("SpreadInfeasible", "web-2"),
        ("SpreadInfeasible", "web-3"),
    ]
    (note, _) = [each["note"] for each in api.objects["events"].values() if each["reason"] == "SpreadInfeasible"]
    assert note.startswith(
        "no node fits because of the pod's own spread constraints; zone[0] a 1, b 1, c 0 with maxSkew 1"
    )
    assert figures(replica)["evenspread_pending_pods", "spread"] == 2
    assert figures(replica)["evenspread_zone_loss_pending_pods", "a"] >= 2


# -- what is looked at


def test_what_a_workload_made_is_looked_at_in_the_workload(api, replica):
    add_deployment(api, EVEN)
    add_pods(api, ["n-a"], app="bare")
    made = add_workload(api, "canary", kind="rollouts", app="canary")
    add_pods(api, EVEN, made, app="canary")
    of_operator = {"apiVersion": "db.example.com/v1", "kind": "Db", "metadata": {"name": "db", "uid": "u"}}
    add_pods(api, EVEN, of_operator, app="db")
    assert sorted(titles(replica.scans())) == ["Deployment/web", "Pod/bare-0", "Pod/db-0", "Rollout/canary"]


def test_an_operators_kind_is_looked_at_beside_what_it_makes(api, replica):
    api.absent.discard("prometheuses")
    made = api.put(
        "prometheuses", "main", "shop", spec={"replicas": 3, "topologySpreadConstraints": [{**HARD, "maxSkew": 0}]}
    )
    add_pods(api, EVEN, made, app="prometheus")
    assert sorted(titles(replica.scans())) == ["Pod/prometheus-0", "Prometheus/main"]
    assert results(api)["main"] == {"max-skew"}
    api.forbidden.add("prometheuses")
    assert titles(replica.scans()) == ["Pod/prometheus-0"]
    assert "main" in results(api)


def test_pods_without_a_workload_are_fetched_up_to_a_number_of_all_namespaces(api, replica, monkeypatch, caplog):
    api.put("namespaces", "bank")
    add_pods(api, EVEN, namespace="bank", app="loud", constraint=WRONG)
    add_pods(api, ["n-a"], app="bare", constraint=WRONG)
    replica.scans()
    before = results(api)
    assert sorted(before) == ["bare-0", "loud-0", "loud-1", "loud-2"]
    monkeypatch.setattr(workload_lister, "_MOST_UNOWNED", 2)
    assert titles(replica.scans()) == ["Pod/loud-0", "Pod/bare-0"]
    assert "too many pods without a workload: only 2 are scanned" in caplog.text
    assert results(api) == before


def test_pods_of_a_node_are_left_out(api, replica):
    add_pods(api, ["n-a"], {"metadata": {"name": "n-a", "uid": "u"}, "apiVersion": "v1", "kind": "Node"}, app="static")
    assert titles(replica.scans()) == []


def test_pods_without_a_workload_are_fetched_together(api, tmp_path):
    add_pods(api, EVEN, app="bare")
    pods = tuple(UnownedPod("shop", f"bare-{number}", None) for number in range(3))
    lister = WorkloadLister(server(api, tmp_path), Policy(), pods, time.sleep)
    assert [len(page) for page in lister.objects() if page] == [3]


@pytest.mark.parametrize("code", [429, 500])
def test_a_pod_that_is_not_told_of_is_asked_for_again(api, replica, code):
    add_pods(api, EVEN, app="bare")
    api.strike("any", refuse(code, "no"), resource="bare-1")
    faults = []
    replica.now += 300
    eventually(lambda: replica.scanner.turn() and (faults.append(replica.scanner.fault) or replica.scanner.latest))
    assert f"waiting: {code} no" in faults
    assert titles(replica.scanner.latest.scan) == ["Pod/bare-0", "Pod/bare-1", "Pod/bare-2"]


def test_pods_that_may_not_be_read_keep_their_reports(api, replica):
    add_pods(api, ["n-a"], app="bare", constraint=WRONG)
    replica.scans()
    api.strike("any", refuse(403, "no"), resource="bare-0")
    assert titles(replica.scans()) == []
    assert [*results(api)] == ["bare-0"]


def test_a_pod_that_is_gone_meanwhile_is_none(api, replica):
    add_pods(api, ["n-a"], app="bare")
    api.strike("any", refuse(404, "not found"), resource="bare-0")
    assert titles(replica.scans()) == []


DEEP = '{"f:a":' * 3000 + "{}" + "}" * 3000  # more than Python's decoder follows; the API server keeps them


def test_a_pod_with_deep_fields_that_nobody_reads_keeps_no_scan_from_its_end(api, replica):
    add_pods(api, ["n-a"], app="deep", constraint=WRONG)
    add_pods(api, ["n-a"], app="flat", constraint=WRONG)
    pod = copy.deepcopy(api.objects["pods"]["shop", "deep-0"])
    pod["metadata"]["managedFields"] = "DEEP"
    text = json.dumps(pod).replace('"DEEP"', f'[{{"fieldsV1": {DEEP}}}]')
    api.strike("any", raw(text), resource="deep-0", times=9999)
    assert titles(replica.scans()) == ["Pod/deep-0", "Pod/flat-0"]
    assert [*results(api)] == ["deep-0", "flat-0"]


def test_deep_fields_do_not_hide_a_workload(api, tmp_path):
    """A page is decoded a few calls above its objects: what the decoder just follows there it may not follow here."""
    made = add_workload(api, constraint=WRONG)
    made["metadata"]["managedFields"] = "DEEP"
    item, of = Raw(json.dumps(made).replace('"DEEP"', DEEP).encode()), TypeMeta("apps/v1", "Deployment")
    pages = {of.kind: [ListedPage("deployments", (item,), of, first=True)]}
    lister = WorkloadLister(
        server(api, tmp_path), Policy(), (), time.sleep, lambda resource: iter(pages.get(resource.kind, []))
    )
    assert [json.loads(found)["metadata"]["name"] for page in lister.objects() for found in page] == ["web"]


def test_what_is_no_object_is_left_out(api, replica):
    api.objects["deployments"]["shop", "odd"] = {"metadata": {"name": 7}, "apiVersion": "apps/v1", "kind": "Deployment"}
    add_deployment(api, EVEN)
    assert titles(replica.scans()) == ["Deployment/web"]


def fill(api):
    """The bundled example."""
    plurals = {(version, kind): name for name, (version, kind) in KINDS.items()}
    for line in EXAMPLE.read_text().splitlines()[1:]:
        made = json.loads(line)
        meta = made["metadata"]
        resource = plurals[made["apiVersion"], made["kind"]]
        api.put(resource, meta.pop("name"), meta.pop("namespace", ""), **made)


@pytest.mark.slow
def test_a_report_names_nothing_of_other_tenants(api, replica):
    fill(api)
    replica.scans()
    assert len(results(api)) > 2
    nodes = {name for _, name in api.objects["nodes"]}
    foreign = {}
    for resource in ("namespaces", "deployments", "statefulsets", "pods"):
        for namespace, name in api.objects[resource]:
            foreign.setdefault(namespace or name, set()).add(name)
    for (namespace, _), report in api.objects["reports"].items():
        words = {*re.findall(r"[\w.-]+", json.dumps(report["results"]))}
        others = {name for other, names in foreign.items() if other != namespace for name in names}
        assert not words & (others - foreign[namespace] - {"default"}), report
        assert not words & nodes, report


# -- who leads


def test_who_does_not_lead_asks_nothing(api, replica):
    replica.leads = False
    for _ in range(3):
        replica.scanner.turn()
    assert (api.requests, replica.scanner.feed, replica.scanner.latest) == ([], None, None)


def test_who_leads_no_longer_stops_at_once_and_writes_nothing_more(api, replica):
    for number in range(5):
        add_workload(api, f"w{number}", constraint=WRONG)

    def loses(*_):
        replica.leads = False
        return False

    api.strike("write", loses, resource="reports")
    replica.now += 300
    eventually(lambda: replica.scanner.turn() and not replica.leads)
    eventually(lambda: replica.scanner.turn() and replica.scanner.feed is None)
    assert len(api.writes) == 1
    assert replica.scanner.latest is None


@pytest.mark.slow
def test_whoever_follows_neither_loses_nor_doubles_anything(api, replica, tmp_path):
    for number in range(5):
        add_workload(api, f"w{number}", constraint=WRONG)

    def loses(*_):
        replica.leads = False
        return False

    api.strike("write", loses, resource="events", times=1)
    replica.now += 300
    eventually(lambda: replica.scanner.turn() and not replica.leads)
    replica.scanner.turn()
    with Replica(api, tmp_path) as other:
        other.scans()
        other.scans()
    assert len(results(api)) == 5
    assert events(api) == [("SpreadViolation", f"w{number}") for number in range(5)]


# -- faults


@pytest.mark.slow
def test_it_goes_on_after_a_fault_with_the_kind_that_failed(api, replica):
    add_workload(api, "set", kind="statefulsets", constraint=WRONG)
    add_deployment(api, EVEN)
    eventually(lambda: replica.scanner.turn() and replica.scanner.feed is not None and replica.scanner.feed.synced)
    api.strike("list", cut, resource="daemonsets", times=5)
    replica.now += 300
    before = api.count("list", "jobs"), api.count("list", "daemonsets")
    waits = []
    eventually(lambda: waits.append(replica.scanner.turn()) or replica.scanner.fault)
    assert replica.scanner.fault.startswith("waiting: ")
    assert waits[-1] == 2.0
    assert replica.scanner.lines()["scan"] == replica.scanner.fault
    eventually(lambda: replica.scanner.turn() and replica.scanner.latest)
    assert sorted(titles(replica.scanner.latest.scan)) == ["Deployment/web", "StatefulSet/set"]
    assert api.count("list", "jobs") - before[0] == 1
    assert replica.scanner.fault == ""


def test_a_kind_that_may_not_be_listed_keeps_its_reports_and_hides_no_other(api, replica):
    add_workload(api, "daily", kind="daemonsets", constraint=WRONG)
    add_workload(api, "web", constraint=WRONG)
    replica.scans()
    assert sorted(results(api)) == ["daily", "web"]
    api.forbidden.add("daemonsets")
    assert titles(replica.scans()) == ["Deployment/web"]
    assert sorted(results(api)) == ["daily", "web"]


@pytest.mark.slow
def test_a_list_that_begins_again_gives_each_object_once(api, replica):
    for number in range(150):
        add_workload(api, f"w{number:03}")
    api.strike("page", refuse(410), resource="deployments", times=2)
    assert len(replica.scans().workloads) == 150


def test_a_bug_ends_that_scan_and_the_next_one_begins_anew(api, replica, caplog):
    add_workload(api, constraint=WRONG)
    scanned, replica.evaluate = replica.evaluate, lambda *_: 1 / 0
    replica.now += 300
    eventually(lambda: replica.scanner.turn() and replica.scanner.fault)
    replica.evaluate = scanned
    assert replica.scanner.fault == "failed because of a bug: ZeroDivisionError"
    assert "the scan failed because of a bug" in caplog.text
    assert titles(replica.scans()) == ["Deployment/web"]


@pytest.mark.slow
def test_a_workload_that_takes_for_ever_is_left_out(api, hurried, caplog):
    replica = hurried
    add_workload(api, "endless", constraint=WRONG)
    add_workload(api, constraint=WRONG)
    replica.scans()
    scanned = replica.evaluate

    def look(raw, within):
        while b'"endless"' in raw:
            sum(range(1000))
        return scanned(raw, within)

    replica.evaluate = look
    before = results(api)
    assert before.keys() == {"endless", "web"}
    assert titles(replica.scans()) == ["Deployment/web"]
    assert "a workload takes too long to scan; its report stays unchanged" in caplog.text
    assert results(api) == before
    # What was told of it stays told.
    replica.evaluate = scanned
    assert titles(replica.scans()) == ["Deployment/endless", "Deployment/web"]
    assert [each["reason"] for each in api.objects["events"].values()] == ["SpreadViolation"] * 2
    assert not any("series" in each for each in api.objects["events"].values())


def test_a_part_that_fails_is_logged_and_the_others_answer(api, replica, caplog):
    add_workload(api, constraint=WRONG)
    once, failures = replica.evaluate, (ScanFailure("zone losses", ZeroDivisionError()),)
    replica.evaluate = lambda raw, within: replace(once(raw, within), failures=failures)
    replica.scans()
    assert "a bug stopped a part of the scan; the other parts are complete" in caplog.text
    assert "selector-not-self" in results(api)["web"]


# -- how it stands


def test_its_lines(api, replica):
    lines = replica.scanner.lines
    assert lines() == {"scan": "waiting for the cluster", "reports": "not checked yet"}
    replica.scans()
    replica.now += 7
    assert lines() == {"scan": "0 workloads scanned 7 s ago", "reports": "openreports.io/v1alpha1"}
    api.absent.add("reports")
    replica.scans()
    assert lines()["reports"].startswith("no API for reports")


def test_no_scan_reports_what_watches_that_are_too_old_hold(api, replica):
    replica.policy = Policy(max_staleness_seconds=0.0)  # so any time without a watch is too long
    add_set(api, ["n-a"] * 3)
    found = replica.scans()
    reports, feed = api.objects["reports"].copy(), replica.scanner.feed
    api.strike("watch", refuse(503, "down"), resource="nodes", times=9999)
    api.drop_connections()
    eventually(lambda: feed.age > 0)
    api.delete("statefulsets", "web", "shop")
    replica.now += 300
    assert replica.scanner.turn() > 0
    assert replica.scanner.latest.scan is found
    assert api.objects["reports"] == reports
    assert re.fullmatch(
        r"waiting: the copy of the cluster is \d+ s old; maxStaleness is 0 s", replica.scanner.lines()["scan"]
    )
    api.faults.clear()
    eventually(lambda: feed.age == 0)
    replica.scans()
    assert api.objects["reports"] == {}


@pytest.mark.parametrize(
    ("age", "fault"), [(60.0, None), (61.0, "the copy of the cluster is 61 s old; maxStaleness is 60 s")]
)
def test_a_copy_may_be_as_old_as_max_staleness(age, fault):
    with pytest.raises(ClusterError, match=f"^{fault}$") if fault else nullcontext():
        check_age(Policy(), SimpleNamespace(age=age))


def test_objects_that_are_left_out_have_a_line(api, replica):
    api.put("pods", "odd", "shop", spec={"nodeName": 7})
    replica.scans()
    assert replica.scanner.lines()["cluster pods"].startswith("1 object left out: shop/odd: Expected `str | null`")
    assert figures(replica)["evenspread_cluster_left_out_objects", "pods"] == 1


def test_nothing_is_written_where_that_is_switched_off(api, tmp_path):
    add_workload(api, constraint=WRONG)
    with Replica(api, tmp_path, reports=False, events=False) as replica:
        replica.scans()
        assert replica.scanner.lines() == {"scan": "1 workload scanned 0 s ago"}
        assert ("evenspread_scan_workloads",) in figures(replica)
    assert api.writes == []


def used(replica):
    return figures(replica)["evenspread_scan_cpu_seconds_total",]


@pytest.mark.slow
def test_it_runs_in_a_thread_until_it_is_stopped(api, tmp_path):
    add_workload(api, constraint=WRONG)
    with Replica(api, tmp_path) as replica:
        until = time.thread_time() + 0.5  # what the process did before, as the imports of a real start
        while time.thread_time() < until:
            pass
        replica.scanner.start()
        readings = [used(replica)]
        eventually(lambda: readings.append(used(replica)) or replica.scanner.latest)
        assert readings == sorted(readings)
        assert readings[0] >= 0
        assert 0 < replica.scanner.latest.used <= used(replica) < 0.5
        replica.scanner.stop()
        assert replica.scanner.feed is None
        assert "selector-not-self" in results(api)["web"]
