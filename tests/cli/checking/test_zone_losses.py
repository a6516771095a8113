"""What audit says of zones that fail: beside what simulate says of the same, and where nothing can be said."""

import json
from pathlib import Path

import pytest
from cli.snapshots import running, snapshot
from manifest import PLAIN, TODAY, pods_term, workload

from conformance.placing.ours import index_of
from conformance.placing.worlds import world
from webhook.cli.main import main
from webhook.core.api.types import TypeMeta
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.scan import zone_losses
from webhook.core.scan.scan_context import next_pods, scan_context
from webhook.core.workloads.reading import read_exactly, read_workload

CLUSTER = str(Path(__file__).parents[3] / "webhook" / "example" / "cluster.jsonl")


def entries(run, *arguments):
    _, out, _ = run("audit", *arguments, "-o", "json")
    return [each for each in json.loads(out) if "zoneLoss" in each]


@pytest.fixture
def losses(run, tmp_path):
    """The entries about one Deployment in a cluster of a notation."""

    def losses(state, *constraints, replicas, kind="Deployment", pods=(), **more):
        meta = {"name": "web", "namespace": "shop", "uid": "u-web"}
        made = workload(kind, "app=web", *constraints, meta=meta, replicas=replicas, **more)
        (tmp_path / "s.jsonl").write_bytes(snapshot(state, made, *pods))
        return entries(run, "s.jsonl")

    return losses


def told(found, zone="a"):
    """Fewest and most of one zone's total: out of reach, gone."""
    (total,) = [each for each in found if each["zoneLoss"] == zone and "workload" not in each]
    return [(each["fewest"], each["most"]) for each in (total["pendingIfUnreachable"], total["pendingIfGone"])]


@pytest.mark.parametrize(
    ("state", "constraints", "replicas", "expected"),
    [
        pytest.param("a: a0=1 | b: b0=1 | c: c0=1", ["zone soft 1 app=web"], 3, [(0, 0), (0, 0)], id="room elsewhere"),
        pytest.param("a: a0=2 | b: b0=2", ["zone hard 1 app=web"], 4, [(2, 2), (0, 0)], id="its zone still counts"),
        pytest.param("a: a0=1 | b: b0=1", ["hostname hard 1 app=web"], 2, [(1, 1), (0, 0)], id="so does its host"),
        pytest.param("a: a0 | b: b0=2", [], 2, [(0, 0), (0, 0)], id="none of its pods there"),
    ],
)
def test_the_zone_losses_of_a_deployment(losses, state, constraints, replicas, expected):
    assert told(losses(state, *constraints, replicas=replicas)) == expected


def test_a_stateful_set_has_no_new_pods_while_the_old_cannot_be_reached(losses):
    pods = running("web-0", "a0"), running("web-1", "b0")
    found = losses("a: a0 | b: ~b0", "zone hard 1 app=web", replicas=2, kind="StatefulSet", pods=pods)
    assert told(found) == [(0, 0), (1, 1)]


def test_pods_that_tolerate_it_for_ever_stay(losses):
    forever = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}]
    found = losses("a: a0=2 | b: b0=2", "zone hard 1 app=web", replicas=4, tolerations=forever)
    assert told(found) == [(0, 0), (0, 0)]


@pytest.mark.parametrize("state", ["a: a0=1", "a0=1 b0=1"])
def test_with_one_zone_or_none_nothing_is_said(losses, state):
    assert losses(state, "zone hard 1 app=web", replicas=1) == []


def test_without_nodes_nothing_is_said(run, tmp_path):
    (tmp_path / "web.json").write_text(json.dumps(workload("Deployment", "app=web", replicas=2)))
    assert entries(run, "web.json") == []


def test_as_simulate_says_of_each(run, capsys):
    found = entries(run, CLUSTER)
    zones = {each["zoneLoss"] for each in found}
    assert len(zones) == 3
    told = {(each["workload"], each["zoneLoss"]): each for each in found if "workload" in each}
    for name in ("Deployment shop/checkout", "Deployment payments/ledger"):
        for zone in zones:
            kind, _, place = name.partition(" ")
            namespace, _, own = place.partition("/")
            asked = [f"{kind.lower()}/{own}", "-n", namespace, "--lose", f"zone={zone}"]
            main(["simulate", *asked, "--snapshot", CLUSTER, "-o", "json"])
            events = json.loads(capsys.readouterr().out)["events"]
            pending = [(each["wanted"] - each["fits"]["max"], each["wanted"] - each["fits"]["min"]) for each in events]
            mine = told.get((name, zone))
            said = [(each["fewest"], each["most"]) for each in (mine["pendingIfUnreachable"], mine["pendingIfGone"])]
            assert said == pending


def test_the_page_has_a_line_for_each_zone(run):
    _, out, _ = run("audit", CLUSTER, "--summary")
    table = out.partition("PENDING IF ONE ZONE FAILS")[2].splitlines()
    assert table[0].split() == ["UNREACHABLE", "GONE", "OF", "PODS"]
    assert [line.split()[0] for line in table[1:4]] == ["eu-central-1a", "eu-central-1b", "eu-central-1c"]


def read(manifest):
    value, _ = read_exactly(json.dumps(manifest).encode(), TypeMeta(api_version="apps/v1", kind=manifest["kind"]))
    return read_workload(value, PLAIN.workloads, api_version="apps/v1", kind=manifest["kind"])


def small_worlds(family):
    """Workloads in small clusters, with no constraint, soft ones, and those that the family has."""
    for number in range(24):
        of = world(family, "zones", number)
        pod = of["template"]["spec"]
        given = pod.pop("topologySpreadConstraints", ())
        if number % 3:
            soft = {"whenUnsatisfiable": "ScheduleAnyway"} if number % 3 == 1 else {}
            pod["topologySpreadConstraints"] = [
                {name: value for name, value in (each | soft).items() if not (soft and name == "minDomains")}
                for each in given
            ]
        kind = "Deployment" if number % 2 else "StatefulSet"
        yield of["id"], read(workload(kind, "app=web", replicas=of["replicas"], **pod)), index_of(of)


@pytest.mark.parametrize("family", ["policies and taints", "affinity", "resources"])
def test_what_is_said_without_a_search_is_what_the_search_says(family, monkeypatch):
    for name, made, index in small_worlds(family):
        within = scan_context(Context(policy=PLAIN, version=RECORDED, now=TODAY, index=index))
        pods = tuple(next_pods(made, within))
        quick = zone_losses.zone_losses(made, pods, within)
        with monkeypatch.context() as patched:
            patched.setattr(zone_losses._WorkloadLosses, "sure_nodes", lambda *_: 0)
            assert quick == zone_losses.zone_losses(made, pods, within), name


def test_where_enough_nodes_are_free_nothing_is_searched(losses, monkeypatch):
    monkeypatch.delattr(zone_losses, "missing_pods")
    apart = pods_term("podAntiAffinity", "hostname")
    found = losses("a: a0=1 | b: b0 b1", "zone soft 1 app=web", replicas=1, **apart)
    assert told(found) == [(0, 0), (0, 0)]
