"""What goes wrong around the controller is said, nothing is lost or told twice, and it goes on by itself."""

import contextlib
import itertools
import threading
import time
import urllib.request

import pytest
from e2e.controlplane.up import HOST, free_ports
from e2e.objects import constraint, path, workload
from e2e.scanning import scanning
from e2e.test_reports import items, served
from e2e.test_scan import _account, cordon, db, placed, reported, told  # noqa: F401 a fixture
from e2e.waiting import eventually, within

from webhook.cluster.connection import ApiServer
from webhook.cluster.credentials import Account
from webhook.controller.scan import Scanner
from webhook.controller.scan_inputs import ScanSettings

API = "openreports.io/v1alpha1"
WRONG = constraint(labelSelector={"matchLabels": {"app": "old"}})
LIVING = 40  # workloads of the tenant in a hurry, at any moment
RUSH_SECONDS = 8


@pytest.fixture(name="reports")
def _reports(plane):
    with served(plane, API) as reports:
        yield reports


def make(plane, namespace, name):
    """A Deployment with a fault, and without pods."""
    plane.api.request("POST", path("Deployment", namespace), workload("Deployment", name, WRONG, replicas=0))


def violations(*names):
    return [("SpreadViolation", name) for name in sorted(names)]


def test_an_api_server_that_is_killed_is_waited_for(plane, namespace, reports, account, tmp_path):
    make(plane, namespace, "one")
    with scanning(tmp_path / "one", account) as leader:
        eventually(lambda: "one" in reported(plane, namespace, reports), 60, 0.2)
        leader.scanned()
        before = reported(plane, namespace, reports)
        plane.kill("kube-apiserver")
        try:
            eventually(lambda: "scan: waiting: " in leader.page("/readyz"), 30, 0.1)
        finally:
            plane.revive("kube-apiserver")
        at = "/apis/{}/{}".format(*reports)
        eventually(lambda: plane.api.send("GET", at).status == 200, 30)  # definitions are read anew
        make(plane, namespace, "two")
        eventually(lambda: "two" in reported(plane, namespace, reports), 60, 0.2)
        leader.scanned()
        assert reported(plane, namespace, reports)["one"] == before["one"]
        assert told(plane, namespace) == violations("one", "two")
        assert "scan: waiting" not in leader.page("/readyz")
        leader.end()
    # Said when it begins and when it is another, however often it is tried again.
    assert 1 <= leader.log.count('"the scan: waiting: ') <= 3


def page(console, where):
    with urllib.request.urlopen(f"http://{HOST}:{console}{where}", timeout=5) as answer:
        return answer.read().decode()


def test_an_api_for_reports_that_comes_later_is_found_and_an_open_page_follows(plane, namespace, account, tmp_path):
    (console,) = free_ports(1)
    make(plane, namespace, "web")
    with scanning(tmp_path / "one", account, "--console", f"{HOST}:{console}") as leader:
        leader.scanned()
        assert "reports: no API for reports in this cluster: " in leader.page("/readyz")
        assert leader.metric("evenspread_report_writes_total") == 0
        with served(plane, API) as reports:
            eventually(lambda: "web" in reported(plane, namespace, reports), 60, 0.2)
            assert f"reports: {API}\n" in leader.page("/readyz")
        # What the script of an open page asks for every ten seconds.
        assert "second-one" not in page(console, "/workloads")
        make(plane, namespace, "second-one")
        eventually(lambda: "second-one" in page(console, "/workloads"), 30, 0.2)
        leader.end()


def test_a_new_finding_appears_within_fifteen_seconds(plane, namespace, account, tmp_path):
    (console,) = free_ports(1)
    make(plane, namespace, "web")
    rare = ("--scan-full-interval", "1h", "--scan-interval", "30m", "--console", f"{HOST}:{console}")
    with scanning(tmp_path / "one", account, *rare) as leader:
        eventually(lambda: ("SpreadViolation", "web") in told(plane, namespace), 60, 0.2)
        scans = leader.scans
        make(plane, namespace, "late")
        eventually(  # fifteen seconds of an idle machine, and long before the next scan
            lambda: ("SpreadViolation", "late") in told(plane, namespace) and "late" in page(console, "/workloads"),
            15,
            0.2,
        )
        assert (leader.scans, leader.metric("evenspread_scan_differences_total")) == (scans, 0)
        leader.end()


def test_somebody_else_who_writes_the_same_reports_gains_nothing(plane, namespace, reports, account, tmp_path):
    version, plural = reports
    names = [f"w{number}" for number in range(5)]
    for name in names:
        make(plane, namespace, name)
    with scanning(tmp_path / "one", account) as leader:
        eventually(lambda: len(reported(plane, namespace, reports)) == len(names), 60, 0.2)
        before = {name: policies for name, (policies, _) in reported(plane, namespace, reports).items()}
        with together(plane, lambda api, _: empty(api, namespace, version, plural)) as emptied:
            for _ in range(2):
                leader.scanned()
        assert len(emptied) > len(names)
        leader.scanned()
        now = {name: policies for name, (policies, _) in reported(plane, namespace, reports).items()}
        assert now == before
        # Each at most once a scan, however often it was changed.
        assert leader.metric("evenspread_report_writes_total", 'outcome="written"') <= len(names) * leader.scans
        assert leader.metric("evenspread_report_writes_total", 'outcome="failed"') == 0
        assert told(plane, namespace) == violations(*names)
        leader.end()


def empty(api, namespace, version, plural):
    """Take the results out of all reports, as their new owner."""
    at = f"/apis/{version}/namespaces/{namespace}/{plural}"
    done = 0
    for each in api.request("GET", at)["items"]:
        name = each["metadata"]["name"]
        taken = {"apiVersion": version, "kind": each["kind"], "metadata": {"name": name}, "results": []}
        applied = f"{at}/{name}?fieldManager=somebody&force=true"
        done += api.send("PATCH", applied, taken, "application/apply-patch+yaml").status == 200
        each["results"] = []
        done += api.send("PUT", f"{at}/{name}", each).status == 200
    return done


@contextlib.contextmanager
def together(plane, act, threads=1):
    """Threads that act as fast as they can; yields a list that grows with what they did."""
    ended, done = threading.Event(), []

    def run(number):
        with contextlib.closing(plane.connect()) as api:
            for turn in itertools.count():
                if ended.is_set():
                    return
                done.extend([number] * act(api, (number, turn)))

    running = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(threads)]
    for each in running:
        each.start()
    try:
        yield done
    finally:
        ended.set()
        for each in running:
            each.join(30)


def test_a_tenant_in_a_hurry_neither_fills_the_cluster_nor_keeps_others_waiting(
    plane, namespace, reports, account, tmp_path
):
    rush = f"{namespace}-rush"
    plane.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": rush}})

    def hurry(api, turn):
        number, count = turn
        made = workload("Deployment", f"web-{number}-{count}", WRONG, replicas=0)
        api.send("POST", path("Deployment", rush), made)
        api.send("DELETE", path("Deployment", rush, f"web-{number}-{count - LIVING // 2}"))
        return 1

    with scanning(tmp_path / "one", account) as leader, together(plane, hurry, threads=2) as made:
        began = time.monotonic()
        leader.scanned()
        make(plane, namespace, "web")
        within(60, lambda: "web" in reported(plane, namespace, reports), 0.2)
        eventually(lambda: told(plane, namespace) == violations("web"))  # the event follows the report
        time.sleep(max(0.0, began + RUSH_SECONDS - time.monotonic()))
        minutes = (time.monotonic() - began) / 60 + 1
        leader.scanned()
        written = leader.metric("evenspread_report_writes_total", 'outcome="written"')
        held, events = len(items(plane, rush, *reports)), len(told(plane, rush))
        told_of = leader.metric("evenspread_scan_events_total", 'outcome="told"')
        leader.end()
    plane.api.send("DELETE", f"/api/v1/namespaces/{rush}")
    assert len(made) > 2 * LIVING
    assert written <= 300 + 60 * minutes + 1
    assert held <= 300 + 60 * minutes
    assert events <= 30 + 6 * minutes
    assert told_of >= events


def test_a_leader_that_is_killed_loses_and_doubles_nothing(plane, namespace, reports, account, tmp_path):
    make(plane, namespace, "one")
    with scanning(tmp_path / "one", account) as first, scanning(tmp_path / "two", account) as second:
        eventually(lambda: "one" in reported(plane, namespace, reports), 60, 0.2)
        leader, other = (first, second) if first.metric("evenspread_leader") == 1 else (second, first)
        leader.scanned()
        before = reported(plane, namespace, reports)
        leader.process.kill()
        make(plane, namespace, "two")
        # Nobody gives the Lease back: it ends 15 s after it was last renewed.
        eventually(lambda: other.metric("evenspread_leader") == 1, 40, 0.2)
        eventually(lambda: "two" in reported(plane, namespace, reports), 60, 0.2)
        other.scanned()
        assert reported(plane, namespace, reports)["one"] == before["one"]
        assert told(plane, namespace) == violations("one", "two")
        other.end()


def test_a_pod_that_waits_for_its_own_constraints_is_told_of_itself_after_a_minute(plane, namespace, account):
    cordon(plane, "c", closed=True)
    made = db()
    for each in made["spec"]["template"]["spec"]["topologySpreadConstraints"]:
        del each["nodeTaintsPolicy"]  # the closed zone counts, and stays empty
    try:
        plane.api.request("POST", path("StatefulSet", namespace), made)
        eventually(lambda: len(placed(plane, namespace)) == 2, 30)
        ahead = [0.0]
        scanner = Scanner(
            ApiServer(Account(kubeconfig=str(account))),
            ScanSettings(interval=1.0, share=1.0, reports=False),
            "ahead of its time",
            leading=lambda: True,
            clock=lambda: time.time() + ahead[0],
        )
        try:
            eventually(lambda: scanner.turn() and scanner.latest, 30)
            waiting = {name for reason, name in told(plane, namespace) if reason == "SpreadInfeasible"}
            assert waiting == set()
            ahead[0] = 65.0
            before = scanner.latest
            eventually(lambda: scanner.turn() and scanner.latest is not before, 30)
        finally:
            scanner.stop()
            scanner.turn()
        waiting = {name for reason, name in told(plane, namespace) if reason == "SpreadInfeasible"}
        pods = {each["metadata"]["name"] for each in plane.api.request("GET", path("Pod", namespace))["items"]}
        assert waiting == pods - {each["metadata"]["name"] for each in placed(plane, namespace)}
        assert len(waiting) == 2
    finally:
        cordon(plane, "c", closed=False)
