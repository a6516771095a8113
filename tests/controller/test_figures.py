"""Metrics of the scan: what they say, and that they stay few."""

import pytest
from report.test_scanned import scanned, skew

from webhook.cluster.reflector import WatchState
from webhook.controller import figures
from webhook.controller.figures import ScanFigures
from webhook.controller.publisher import FinishedScan
from webhook.controller.scan_inputs import ScanSettings
from webhook.core.api.spread_group import GroupMeta, SpreadGroup
from webhook.core.groups.status.forms import DatedCondition, Distribution, GroupWithStatus, SpreadGroupStatus, Unguarded
from webhook.core.scan.scan_context import ObjectKey
from webhook.core.scan.scan_results import ClusterScan, GuardState, PendingCause, ScaleInState, Stranded, ZoneLoss
from webhook.report.documents import ReportApi


class Stands:
    """What figures ask of a scanner."""

    def __init__(self, scan=None, **settings):
        self.used, self.differences, self.reports, self.events, self.feed = 3.5, 0, None, None, None
        self.groups, self.guard = Kept(), Guarding()
        self.settings = ScanSettings(**settings)
        self.latest = None if scan is None else FinishedScan(scan=scan, ended=100.0, seconds=7.0, used=2.0)


class Guarding:
    """What figures ask of the scale-in guard."""

    def __init__(self, states=()):
        self.enabled, self.states, self.writes = bool(states), dict(states), {"written": 9}


class Kept:
    """What figures ask of the groups that are looked after."""

    def __init__(self, *found):
        self.found = dict(enumerate(found))
        self.writes = {"written": 1}


def kept(name="cache", zones=3, namespace="shop"):
    """A group with a cap of two pods a zone, and a pod without the fields of its plan."""
    spreads = [Distribution(topology_key=key, domains={"a": zones, "b": 1}, cap=2) for key in ("zone", "host")]
    conditions = (DatedCondition(type="CapsHeld", status="False"),)
    unguarded = Unguarded(count=1, pods=("redis-0",))
    status = SpreadGroupStatus(conditions=conditions, distribution=tuple(spreads), unguarded=unguarded)
    return GroupWithStatus(SpreadGroup(metadata=GroupMeta(name=name, namespace=namespace)), status)


class Written:
    api = ReportApi.OPEN_REPORTS

    def __init__(self):
        self.writes = {"written": 2}
        self.outcomes = {("SpreadDrift", "told"): 1}


def whole():
    """The figures of a scanner that has something to say of everything."""
    zone = ZoneLoss(zone="a", wanted=1, unreachable=Stranded(1, 1), gone=Stranded(1, 1))
    scanner = Stands(
        ClusterScan(workloads=(scanned(skews=(skew(),), pending={PendingCause.SPREAD: 1}),), zones=(zone,))
    )
    scanner.reports = scanner.events = Written()
    scanner.feed, scanner.groups = Copied(), Kept(kept())
    state = ScaleInState(worst_skew=1, above=False, guard=GuardState.GUARDED)
    scanner.guard = Guarding({ObjectKey("shop", "apps", "Deployment", "web"): state})
    return ScanFigures(scanner)


class Copied:
    """A feed, as far as figures ask."""

    def watch_states(self):
        told = {"resource": "pods", "required": True, "objects": 1, "left_out": 0, "events": 1, "age": 0.0}
        return [WatchState(**told, synced=True, tried=True, off=False, fault="", left_out_example="")]


def values(scanner):
    return {
        (each.name, *each.labels.values()): each.value
        for family in ScanFigures(scanner).collect()
        for each in family.samples
    }


def test_without_a_scan_nothing_is_said_of_the_cluster():
    assert values(Stands()) == {
        ("evenspread_scan_cpu_seconds_total",): 3.5,
        ("evenspread_scan_differences_total",): 0,
    }


def test_what_is_written_is_counted():
    scanner = Stands()
    scanner.reports = scanner.events = Written()
    found = values(scanner)
    assert found["evenspread_report_api", "openreports.io/v1alpha1"] == 1
    assert found["evenspread_report_api", "wgpolicyk8s.io/v1alpha2"] == 0
    assert found["evenspread_report_writes_total", "written"] == 2
    assert found["evenspread_scan_events_total", "SpreadDrift", "told"] == 1


def test_what_a_scan_found():
    unreachable, unknown = Stranded(2, 3), Stranded(None, None)
    zones = tuple(
        ZoneLoss(zone=zone, wanted=6, unreachable=each, gone=unknown)
        for zone, each in (("a", unreachable), ("b", unknown))
    )
    workloads = (scanned(would_deny=("max-skew",), lacking=4), scanned(name="other"))
    found = values(Stands(ClusterScan(workloads=workloads, zones=zones, pending={PendingCause.SPREAD: 2})))
    assert found["evenspread_scan_duration_seconds",] == 7
    assert found["evenspread_scan_last_success_timestamp_seconds",] == 100
    assert found["evenspread_scan_workloads",] == 2
    assert found["evenspread_would_deny",] == 1
    assert found["evenspread_lacking_defaults_pods",] == 4
    assert found["evenspread_pending_pods", "spread"] == 2
    assert found["evenspread_pending_pods", "capacity"] == 0
    assert [key[1:] for key in found if key[0] == "evenspread_zone_loss_pending_pods"] == [("a",)]


def test_workloads_with_pods_that_wait_because_of_spread_are_named(monkeypatch):
    monkeypatch.setattr(figures, "_MOST_WAITING", 2)
    pending = [{PendingCause.SPREAD: 1}, {PendingCause.SPREAD: 3}, {PendingCause.CAPACITY: 9}, {PendingCause.SPREAD: 2}]
    workloads = tuple(scanned(name=f"w{number}", pending=each) for number, each in enumerate(pending))
    found = values(Stands(ClusterScan(workloads=workloads)))
    told = {key[1:]: pods for key, pods in found.items() if key[0] == "evenspread_spread_pending_pods"}
    assert told == {("shop", "Deployment", "w1"): 3, ("shop", "Deployment", "w3"): 2}


def skews(scan, **settings):
    found = values(Stands(scan, **settings))
    return {key[1:4]: value for key, value in found.items() if key[0] == "evenspread_skew"}


@pytest.mark.parametrize(("settings", "names"), [({}, {"web"}), ({"all_workloads": True}, {"web", "even"})])
def test_only_those_above_their_limit_are_shown_or_all(settings, names):
    workloads = (
        scanned(skews=(skew(),)),
        scanned(name="even", skews=(skew(skew=1),)),
        scanned(name="unknown", skews=(skew(skew=None),)),
    )
    assert {name for _, _, name in skews(ClusterScan(workloads=workloads), **settings)} == names


@pytest.mark.parametrize("order", [1, -1])
def test_of_several_constraints_of_one_key_the_worst_is_shown(order):
    both = (skew(skew=4), skew(skew=5, max_skew=2), skew(skew=9))[::order]
    assert [*skews(ClusterScan(workloads=(scanned(skews=both),))).values()] == [9]


def test_series_are_bounded(monkeypatch):
    monkeypatch.setattr(figures, "_MOST_SKEWS", 2)
    workloads = tuple(scanned(name=f"w{number}", skews=(skew(),)) for number in range(5))
    assert [*skews(ClusterScan(workloads=workloads))] == [("shop", "Deployment", "w0"), ("shop", "Deployment", "w1")]


@pytest.mark.parametrize(
    ("limit", "name"), [("_MOST_SKEWS", "evenspread_skew"), ("_MOST_WAITING", "evenspread_spread_pending_pods")]
)
def test_whoever_has_many_workloads_hides_nobody_elses(monkeypatch, limit, name):
    monkeypatch.setattr(figures, limit, 3)
    many = {PendingCause.SPREAD: 9}
    workloads = [scanned(name=f"w{number}", pending=many, skews=(skew(skew=9),)) for number in range(5)]
    workloads.append(scanned(namespace="bank", pending={PendingCause.SPREAD: 1}, skews=(skew(),)))
    found = values(Stands(ClusterScan(workloads=tuple(workloads))))
    assert [key[1] for key in found if key[0] == name] == ["shop", "bank", "shop"]


def test_groups_are_counted_by_their_conditions(monkeypatch):
    monkeypatch.setattr(figures, "_MOST_CAPS", 3)
    scanner = Stands()
    scanner.groups = Kept(kept(), kept("other", 5), kept("fine", 2))
    found = values(scanner)
    assert found["evenspread_groups", "CapsHeld", "False"] == 3
    assert found["evenspread_groups", "CapsHeld", "True"] == 0
    assert found["evenspread_group_unguarded_pods",] == 3
    assert found["evenspread_group_status_writes_total", "written"] == 1
    above = {key[2:]: value for key, value in found.items() if key[0] == "evenspread_group_cap_exceeded_pods"}
    assert above == {("cache", "zone"): 1, ("cache", "host"): 1, ("other", "zone"): 3}


def test_the_page_has_every_metric():
    from controller.reference import PAGE, with_table  # noqa: PLC0415 which imports this file

    assert with_table(PAGE.read_text()) == PAGE.read_text(), "make docs"


def test_whoever_breaks_many_caps_hides_nobody_elses(monkeypatch):
    monkeypatch.setattr(figures, "_MOST_CAPS", 3)
    scanner = Stands()
    scanner.groups = Kept(*(kept(f"cache-{number}") for number in range(5)), kept(namespace="bank"))
    (above,) = [each for each in ScanFigures(scanner).collect() if each.name == "evenspread_group_cap_exceeded_pods"]
    assert [each.labels["namespace"] for each in above.samples] == ["shop", "bank", "shop"]
