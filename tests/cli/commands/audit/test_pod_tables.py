"""What audit says of pods: those that wait, those above maxSkew, those without defaults, in each format."""

import json
import xml.etree.ElementTree as ET

import pytest
from cli.snapshots import owned, running, snapshot, waiting
from manifest import workload

from webhook.cli.commands.audit.page import pod_tables
from webhook.core.scan.scan_results import ClusterScan, PendingCause, ScannedWorkload, SmallestFix, Stranded, ZoneLoss

HARD, SOFT = "zone hard 1 app=web", "hostname soft 1 app=web"
SINCE = "2026-11-20T10:00:00Z"
WEB_1 = owned("ReplicaSet", "web-1", "Deployment/web", selector={"matchLabels": {"app": "web"}})
SPREAD = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
POLICY = {
    "apiVersion": "config.evenspread.io/v1alpha1",
    "kind": "SpreadPolicy",
    "defaults": {
        "mode": "observe",
        "defaultConstraints": [SPREAD],
    },
}


@pytest.fixture
def audited(run, tmp_path):
    def audited(*arguments, state="a: a0=3 | b: -b0", objects=()):
        (tmp_path / "s.jsonl").write_bytes(snapshot(state, *(objects or some())))
        return run("audit", "s.jsonl", "--rule", "max-skew", *arguments)[1]

    return audited


def some():
    """A Deployment above maxSkew with a pod that waits, and a StatefulSet without constraints."""
    lone = workload("StatefulSet", "app=db", meta={"name": "db"}, selector="app=db", replicas=2)
    pods = [running(f"db-{number}", "a0") for number in range(2)]
    for each in pods:
        each["metadata"]["labels"] = {"app": "db"}
    pending = waiting("w", HARD, SOFT, owner="ReplicaSet/web-1", since=SINCE)
    return workload("Deployment", "app=web", HARD, SOFT, replicas=4), WEB_1, pending, lone, *pods


def test_the_page(audited, tmp_path):
    (tmp_path / "policy.yaml").write_text(json.dumps(POLICY))
    page = audited("--summary", "--config", "policy.yaml")
    assert (
        """
1 Pending pod: 1 blocked by spread constraints
PENDING NOW          PODS  CAUSE   SINCE
Deployment shop/web  1     spread  2026-11-20T10:00:00Z
  fix for Deployment shop/web: set maxSkew: 4

ABOVE MAXSKEW                    SKEW    WHEN            PODS
Deployment shop/web zone[0]      3 of 1  DoNotSchedule   a 3, b 0
Deployment shop/web hostname[1]  3 of 1  ScheduleAnyway  a0 3, b0 0

1 workload without constraints would get the configured defaults; 2 running pods without the defaults

PENDING IF ONE ZONE FAILS"""
        in page
    )


def test_audit_prints_no_pod_table_for_a_healthy_cluster(audited):
    page = audited(
        "--summary", state="a: a0=1 | b: b0=1", objects=[workload("Deployment", "app=web", HARD, replicas=2)]
    )
    assert "Pending pod" not in page
    assert "ABOVE MAXSKEW" not in page
    assert "configured defaults" not in page


def test_long_tables_are_cut_and_several_causes_are_counted():
    fix = SmallestFix(of="selector-empty", text="use app=web")
    many = [
        ScannedWorkload(
            api_version="apps/v1",
            kind="Deployment",
            namespace="shop",
            name=f"app{number:02}",
            uid="",
            pending={PendingCause.SPREAD: 2, PendingCause.UNKNOWN: 1},
            fix=fix,
            would_inject=int(number == 0),
            lacking=int(number == 0),
        )
        for number in range(12)
    ]
    scan = ClusterScan(workloads=tuple(many), pending={PendingCause.SPREAD: 24, PendingCause.UNKNOWN: 12})
    page = "".join(pod_tables(scan))
    assert "36 Pending pods: 24 blocked by spread constraints, 12 for an unknown reason\n" in page
    assert "Deployment shop/app09  3     spread 2, unknown 1\nand 2 more\n" in page
    assert "app10" not in page
    assert "fix of" not in page
    assert "1 running pod without the defaults\n" in page


@pytest.mark.parametrize(
    ("stranded", "text"),
    [((3, 3), "3"), ((2, 5), "2 to 5"), ((2, None), "2 or more"), ((None, 4), "0 to 4"), ((None, None), "unknown")],
)
def test_how_many_pods_a_zone_costs(stranded, text):
    loss = ZoneLoss(zone="a", wanted=9, unreachable=Stranded(*stranded), gone=Stranded(0, 0))
    page = "".join(pod_tables(ClusterScan(zones=(loss,))))
    assert page.splitlines()[-1].split("  ")[-3:] != []
    assert f"  {text}  " in page


def test_the_json(audited, tmp_path):
    (tmp_path / "policy.yaml").write_text(json.dumps(POLICY))
    entries = json.loads(audited("-o", "json", "--config", "policy.yaml"))
    told = {each["rule"]: each for each in entries if "workload" in each and "zoneLoss" not in each}
    assert told["pending-pods"] == {
        "rule": "pending-pods",
        "workload": "Deployment shop/web",
        "pending": {"spread": 1},
        "since": SINCE,
        "fix": "set maxSkew: 4",
    }
    assert told["defaults-to-inject"] == {
        "rule": "defaults-to-inject",
        "workload": "StatefulSet shop/db",
        "wouldInject": 1,
        "lacking": 2,
    }
    skews = [(each["topologyKey"], each["skew"], each["domains"]) for each in entries if each["rule"] == "actual-skew"]
    assert skews == [
        ("topology.kubernetes.io/zone", 3, {"a": 3, "b": 0}),
        ("kubernetes.io/hostname", 3, {"a0": 3, "b0": 0}),
    ]


def test_what_waits_for_room_has_no_fix_of_its_constraints(audited):
    pending = waiting("w", HARD, owner="ReplicaSet/web-1", cpu="9")
    objects = workload("Deployment", "app=web", HARD, replicas=4), WEB_1, pending
    entries = json.loads(audited("-o", "json", objects=objects, state="a: a0=1 | b: b0=1"))
    assert [(each["pending"], each["fix"]) for each in entries if each["rule"] == "pending-pods"] == [
        ({"capacity": 1}, "")
    ]


def test_the_numbers_in_sarif_and_junit(audited):
    (run,) = json.loads(audited("-o", "sarif"))["runs"]
    numbers = run["properties"]["evenspread"]
    assert (numbers["pending"], numbers["aboveMaxSkew"]) == ({"spread": 1}, {"hard": 1, "soft": 1})
    root = ET.fromstring(audited("-o", "junit"))  # noqa: S314 our own text
    told = {each.get("name"): each.get("value") for each in root.iter("property")}
    assert (told["nodes"], told["pods"], told["pending"]) == ("2", "6", '{"spread":1}')


def test_the_scan_changes_no_exit_code(run, tmp_path):
    (tmp_path / "s.jsonl").write_bytes(snapshot("a: a0=3 | b: -b0", *some()))
    assert run("audit", "s.jsonl", "--rule", "max-skew")[0] == 0


def test_what_would_be_refused_under_a_denying_ceiling(run, tmp_path):
    policy = {"apiVersion": POLICY["apiVersion"], "kind": "SpreadPolicy", "rules": {"selector-not-self": "deny"}}
    (tmp_path / "policy.yaml").write_text(json.dumps(policy))
    (tmp_path / "s.jsonl").write_bytes(
        snapshot("a: a0 | b: b0", workload("Deployment", "app=web", "zone hard 1 app=x"))
    )
    asked = ("audit", "s.jsonl", "--summary", "--config", "policy.yaml")
    assert "with --ceiling deny, the webhook would deny 1 workload: Deployment shop/web\n" in run(*asked)[1]
    code, page, _ = run(*asked, "--ceiling", "deny")
    assert (code, "the webhook would deny 1 workload: Deployment shop/web\n" in page) == (1, True)
