"""Updates between two full scans, and their requests to the API server."""

import itertools

import pytest
from cluster.api import refuse
from cluster.following import eventually
from controller.test_scan import EVEN, WRONG, events, move, results, titles
from controller.town import HARD, Replica, add_deployment, add_pods, add_set, add_workload, figures
from msgspec.structs import replace

from webhook.controller.updates import Updates
from webhook.core.api.types import ObjectMeta
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import Owner
from webhook.core.policy.policy import Policy
from webhook.core.scan.scan_context import scan_context
from webhook.core.scan.workload_scan import scan_workload

INTERVAL, FULL = 1e6, 1e8  # no loop of updates gets there
OF_API = {**HARD, "labelSelector": {"matchLabels": {"app": "api"}}}


@pytest.fixture(name="replica")
def _replica(api, tmp_path):
    with Replica(api, tmp_path, interval=INTERVAL, full_interval=FULL) as replica:
        yield replica


@pytest.fixture(name="sliced")
def _sliced(api, tmp_path):
    """A replica with a workload in each slice."""
    with Replica(api, tmp_path, interval=INTERVAL, full_interval=FULL, slice_seconds=1e-4) as replica:
        yield replica


def first(replica):
    eventually(lambda: replica.scanner.turn() and replica.scanner.latest)
    return replica.scanner.latest.scan


def workloads(api):
    return {name for _, name in api.objects["deployments"]}


def scanned_again(replica):
    """The names of the workloads scanned from now on."""
    names, once = [], replica.evaluate
    replica.evaluate = lambda raw, within: names.append(once(raw, within).name) or once(raw, within)
    return names


def test_drift_is_reported_told_and_counted_by_an_update(api, replica):
    add_set(api, EVEN)
    add_set(api, EVEN, "api", constraint=OF_API)
    before = first(replica)
    again = scanned_again(replica)
    lists = api.count("list")
    move(api, ["n-a"] * 3)
    eventually(lambda: replica.updates() and events(api) == [("SpreadDrift", "web")])
    assert "spread-drift" in results(api)["web"]
    assert replica.scanner.latest.scan is not before
    assert {*again} == {"web"}
    move(api, EVEN)
    eventually(lambda: replica.updates() and "spread-drift" not in results(api).get("web", ()))
    assert api.count("list") == lists
    assert figures(replica)["evenspread_scan_differences_total",] == 0


def test_without_an_event_nothing_is_scanned_but_the_results_are_current(api, replica):
    add_set(api, EVEN)
    first(replica)
    replica.updates()
    again, requests = scanned_again(replica), len(api.requests)
    before = replica.scanner.latest
    found = replica.updates()
    assert (again, api.requests[requests:], replica.scanner.latest.ended) == ([], [], before.ended + 10)
    assert (found.workloads, found.ended > before.scan.ended) == (before.scan.workloads, True)
    assert replica.updates(5) is found


class FakeLister:
    """Reads nothing, and notes for what it was asked."""

    def __init__(self):
        self.reads = []

    def is_watched(self, _kind):
        return True

    def read(self, key):
        self.reads.append(key.name)


def test_a_namespace_with_many_changes_does_not_delay_others():
    ticks = itertools.count(step=1.5)  # so two reads in the three seconds of an update
    updates = Updates(scan_workload, 1.0, clock=lambda: next(ticks))
    updates.lister = lister = FakeLister()
    named = [("rush", f"rush-{number}") for number in range(3)] + [("shop", "late")]
    metas = [ObjectMeta(name=name, namespace=namespace) for namespace, name in named]
    updates.apply([("ADDED", Owner(api_version="apps/v1", kind="Deployment", meta=meta)) for meta in metas])
    updates.note(scan_context(Context(policy=Policy(), version=RECORDED, index=ClusterIndex(RECORDED))))
    assert [[*updates.objects(None)], lister.reads] == [[[], []], ["rush-0", "late"]]
    assert [[*updates.objects(None)], lister.reads] == [[[], []], ["rush-0", "late", "rush-1", "rush-2"]]


def test_workloads_are_added_changed_and_deleted(api, replica):
    add_workload(api, "old", constraint=WRONG)
    first(replica)
    add_workload(api, "new", constraint=WRONG)
    eventually(lambda: len(replica.updates().workloads) == 2)
    assert sorted(results(api)) == ["new", "old"]
    add_workload(api, "old", constraint={**HARD, "maxSkew": 0})
    eventually(lambda: replica.updates() and results(api)["old"] != results(api)["new"])
    api.delete("deployments", "old", "shop")
    eventually(lambda: replica.updates() and sorted(results(api)) == ["new"])
    assert titles(replica.scanner.latest.scan) == ["Deployment/new"]
    assert events(api) == [("SpreadViolation", "new"), ("SpreadViolation", "old"), ("SpreadViolation", "old")]


def test_what_a_workload_made_is_not_read(api, replica):
    add_deployment(api, EVEN)
    first(replica)
    add_deployment(api, EVEN, "api")
    eventually(lambda: len(replica.updates().workloads) == 2)
    assert titles(replica.scanner.latest.scan) == ["Deployment/api", "Deployment/web"]


def test_kinds_without_a_watch_are_listed_at_intervals(api, replica):
    add_workload(api, "daily", kind="daemonsets", constraint=WRONG)
    add_workload(api, "web", constraint=WRONG)
    add_pods(api, ["n-a"], app="bare", constraint=WRONG)
    first(replica)
    add_workload(api, "weekly", kind="daemonsets", constraint=WRONG)
    api.delete("pods", "bare-0", "shop")
    assert len(replica.updates().workloads) == 3
    before = api.count("list", "deployments")
    eventually(lambda: titles(replica.updates(INTERVAL)) == ["DaemonSet/daily", "DaemonSet/weekly", "Deployment/web"])
    assert sorted(results(api)) == ["daily", "web", "weekly"]
    assert api.count("list", "deployments") == before


def test_a_kind_that_may_not_be_listed_any_more_keeps_its_reports(api, replica):
    add_workload(api, "daily", kind="daemonsets", constraint=WRONG)
    first(replica)
    api.forbidden.add("daemonsets")
    assert titles(replica.updates(INTERVAL)) == []
    assert sorted(results(api)) == ["daily"]


def test_an_object_that_cannot_be_read_is_read_later(api, replica):
    add_workload(api, "web", constraint=WRONG)
    first(replica)
    api.strike("any", refuse(500, "no"), resource="new")
    add_workload(api, "new", constraint=WRONG)

    faults = []

    def update():
        replica.now += 10
        replica.scanner.turn()
        faults.append(replica.scanner.fault)
        return any(faults)

    eventually(update)
    assert faults[-1].startswith("waiting: 500 no")
    eventually(lambda: len(replica.updates().workloads) == 2)
    api.strike("any", refuse(403, "no"), resource="new")
    add_workload(api, "new", constraint={**WRONG, "maxSkew": 2})
    eventually(lambda: len(replica.updates().workloads) == 1)
    assert sorted(results(api)) == ["new", "web"]


def test_reports_that_were_not_written_are_written_at_the_next_interval(api, replica):
    first(replica)
    api.strike("write", refuse(500, "no"), resource="reports")
    add_workload(api, "web", constraint=WRONG)
    eventually(lambda: len(replica.updates().workloads) == 1)
    assert results(api) == {}
    replica.updates(INTERVAL)
    assert sorted(results(api)) == ["web"]


def test_a_waiting_pod_is_told_of_when_its_minute_is_over(api, replica):
    node = api.objects["nodes"]["", "n-c"]
    api.put("nodes", "n-c", **{**node, "spec": {"unschedulable": True}})
    add_set(api, ["n-a", "n-b", ""], created="2026-11-23T12:00:30Z")
    first(replica)  # at 12:01
    replica.updates(20)
    assert ("SpreadInfeasible", "web-2") not in events(api)
    replica.updates(20)
    assert ("SpreadInfeasible", "web-2") in events(api)


def test_a_changed_policy_begins_a_full_scan(api, replica):
    add_workload(api, "web", constraint=WRONG)
    first(replica)
    before = api.count("list", "deployments")
    changed = Policy(max_staleness_seconds=59.0)
    replica.scanner._policy = lambda: changed
    replica.updates()
    assert api.count("list", "deployments") == before + 1
    assert replica.scanner.differences == 0


def test_a_difference_found_by_a_full_scan_is_counted_and_logged(api, replica, caplog):
    add_workload(api, "web", constraint=WRONG)
    first(replica)
    once = replica.evaluate
    replica.evaluate = lambda raw, within: replace(once(raw, within), wanted=77)
    replica.updates()
    assert replica.scanner.latest.scan.workloads[0].wanted == 3
    replica.scanner._due = 0.0  # a full scan on the same day, since another date concerns all
    replica.updates()
    assert replica.scanner.latest.scan.workloads[0].wanted == 77
    assert figures(replica)["evenspread_scan_differences_total",] == 1
    assert "a bug: two scans of an unchanged workload differ" in caplog.text


def test_updates_continue_during_a_full_scan(api, sliced):
    replica = sliced
    add_workload(api, "web", constraint=WRONG)
    add_workload(api, "other", constraint=WRONG)
    first(replica)
    replica.now += FULL
    done = scanned_again(replica)

    def clock():
        """Delete a workload between the first slice and the second."""
        if done and "web" in workloads(api):
            api.delete("deployments", "web", "shop")
            eventually(lambda: replica.scanner.feed.index.owners.get("apps/v1", "Deployment", "shop", "web") is None)
            replica.now += 10
        return replica.now

    replica.clock = clock
    replica.scanner.turn()
    assert done[0] == "other"
    assert titles(replica.scanner.latest.scan) == ["Deployment/other"]
    assert sorted(results(api)) == ["other"]
