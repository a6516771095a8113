"""``evenspread skew``: the table, the JSON, the exit codes, and looking again."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from cli.snapshots import running, snapshot
from cluster.api import NOT_INSTALLED, FakeApi
from manifest import workload

from webhook.cli.commands.skew import command

EXAMPLE = str(Path(__file__).parents[3] / "webhook" / "example" / "cluster.jsonl")
ZONE, SOFT_HOST = "zone hard 1 app=web", "hostname soft 1 app=web"

TABLE = """\
NAMESPACE  WORKLOAD        CONSTRAINT   MAXSKEW  SKEW  WHEN            FROM      PODS
shop       Deployment/web  zone[0]      1        2!    DoNotSchedule   template  a 3, b 1
shop       Deployment/web  hostname[1]  1        1     ScheduleAnyway  template  a0 2, a1 1, b0 1

1 of 2 constraints above maxSkew, 1 of them DoNotSchedule
"""


def web(*constraints, kind="Deployment", name="web", namespace="shop"):
    return workload(kind, "app=web", *constraints, meta={"name": name, "namespace": namespace}, replicas=4)


@pytest.fixture
def ask(run, tmp_path):
    def ask(state, *arguments, objects=()):
        file = tmp_path / "snapshot.jsonl"
        file.write_bytes(snapshot(state, *objects))
        return run("skew", "--snapshot", str(file), *arguments)

    return ask


def test_the_table(ask):
    code, out, err = ask("a: a0=2 a1=1 | b: b0=1", "-n", "shop", objects=[web(ZONE, SOFT_HOST)])
    assert (code, out, err) == (1, TABLE, "")


def test_what_is_above_maxskew_comes_first_and_a_preference_is_no_finding(ask):
    wide = web("zone hard 5 app=web", name="api")
    code, out, _ = ask("a: a0=3 | b: b0=1", "-A", objects=[wide, web("zone soft 1 app=web")])
    assert code == 0
    assert [line.split()[1] for line in out.splitlines()[1:3]] == ["Deployment/web", "Deployment/api"]
    assert out.endswith("\n1 of 2 constraints above maxSkew, 0 of them DoNotSchedule\n")


def test_many_domains_are_summed_up(ask):
    nodes = " ".join(f"n{number}={number // 7}" for number in range(8))
    assert "  0 to 1 in 8 domains, 7 of them empty\n" in ask(f"a: {nodes}", "-n", "shop", objects=[web(SOFT_HOST)])[1]
    none = " ".join(f"n{number}" for number in range(8))
    assert "  none in 8 domains\n" in ask(f"a: {none}", "-n", "shop", objects=[web(SOFT_HOST)])[1]
    hosts = " ".join(f"n{number:03}={number // 100}" for number in range(102))
    assert (
        "  0 to 1 in 102 domains, 100 of them empty\n" in ask(f"a: {hosts}", "-n", "shop", objects=[web(SOFT_HOST)])[1]
    )


@pytest.mark.parametrize("key", ["rack", "topology.kubernetes.io/hostname"])
def test_a_key_that_no_node_has_is_named_whole(ask, key):
    assert f"  no eligible node has {key}\n" in ask("a: n", "-n", "shop", objects=[web(f"{key} soft 1 app=web")])[1]


def test_the_json(ask):
    code, out, _ = ask("a: a0=2 | b: b0=1", "-n", "shop", "-o", "json", objects=[web(ZONE)])
    assert code == 0
    assert json.loads(out) == [
        {
            "namespace": "shop",
            "kind": "Deployment",
            "apiVersion": "apps/v1",
            "name": "web",
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "selector": "app=web",
            "maxSkew": 1,
            "skew": 1,
            "globalMinimum": 1,
            "domains": {"a": 2, "b": 1},
            "origin": "declared",
            "emptyDomains": 0,
            "minDomains": None,
            "outside": {},
            "others": {},
            "own": {"a": 2, "b": 1},
            "path": "spec.template.spec.topologySpreadConstraints[0]",
        }
    ]


def test_one_namespace_or_all(ask):
    objects = [web(ZONE), web(ZONE, namespace="other")]
    assert len(json.loads(ask("a: a0=1", "-A", "-o", "json", objects=objects)[1])) == 2
    assert len(json.loads(ask("a: a0=1", "-n", "shop", "-o", "json", objects=objects)[1])) == 1
    assert ask("a: a0=1", "-n", "shop")[:2] == (0, "no workload with running pods in shop\n")
    assert ask("a: a0=1", "-A")[:2] == (0, "no workload with running pods in any namespace\n")


def test_what_would_be_injected_is_compared_too(ask, tmp_path):
    policy = {
        "apiVersion": "config.evenspread.io/v1alpha1",
        "kind": "SpreadPolicy",
        "defaults": {
            "mode": "inject",
            "defaultConstraints": [
                {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
            ],
        },
    }
    (tmp_path / "policy.yaml").write_text(json.dumps(policy))
    # No revision is told apart: the pods of a Deployment that run have no hash here.
    meta = {"name": "web", "namespace": "shop"}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"selector": {"app": "web"}}}
    objects = [web(kind="StatefulSet"), service]
    made = ask("a: a0=3 | b: b0=1", "-n", "shop", "-o", "json", "--config", "policy.yaml", objects=objects)
    [found] = json.loads(made[1])
    assert (found["origin"], found["skew"]) == ("injected", 2)


def test_looking_again_prints_the_table_when_it_is_another(run, tmp_path, monkeypatch):
    with FakeApi() as api:
        for name in ("a", "b"):
            api.put(
                "nodes",
                name,
                metadata={"labels": {"topology.kubernetes.io/zone": name}},
                status={"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
            )
        api.put("deployments", "web", "shop", spec=web(ZONE)["spec"])
        steps = iter(range(3))

        def meanwhile(_seconds):
            step = next(steps)
            if step == 1:
                api.put("pods", "one", "shop", metadata={"labels": {"app": "web"}}, spec={"nodeName": "a"})
            if step == 2:
                raise KeyboardInterrupt

        monkeypatch.setattr(command, "time", SimpleNamespace(sleep=meanwhile))
        code, out, err = run("skew", "--watch", "-A", "--kubeconfig", api.kubeconfig(tmp_path))
        assert (code, err.strip()) == (130, NOT_INSTALLED.strip())
        assert [line.rpartition("  ")[2] for line in out.splitlines() if "zone[0]" in line] == ["a 0, b 0", "a 1, b 0"]


def test_a_workload_that_cannot_be_read_is_named_and_the_others_are_counted(run, tmp_path):
    with FakeApi() as api:
        node = {"labels": {"topology.kubernetes.io/zone": "a"}}
        api.put("nodes", "a", metadata=node, status={"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}})
        api.put("deployments", "broken", "shop", spec=web(ZONE)["spec"] | {"replicas": "three"})
        api.put("deployments", "web", "shop", spec=web(ZONE)["spec"])
        _, out, err = run("skew", "-A", "--kubeconfig", api.kubeconfig(tmp_path))
    assert "Deployment shop/broken: " in err
    assert err.rstrip().endswith(": not counted")
    assert "Deployment/web" in out


def test_it_counts_as_explain_does(run):
    _, out, _ = run("skew", "-A", "-o", "json", "--snapshot", EXAMPLE)
    told, compared = {}, 0
    for each in json.loads(out):
        if each["origin"] == "declared":
            told.setdefault((each["kind"], each["namespace"], each["name"]), []).append(each)
    for (kind, namespace, name), mine in told.items():
        named = (f"{kind.lower()}/{name}", "-n", namespace)
        _, explained, _ = run("explain", *named, "--snapshot", EXAMPLE, "-o", "json")
        answers = json.loads(explained)
        first = answers[0] if isinstance(answers, list) else answers
        theirs = {(each["topologyKey"], each["whenUnsatisfiable"]): each for each in first["constraints"]}
        for each in mine:
            same = theirs.get((each["topologyKey"], each["whenUnsatisfiable"]))
            assert same is not None, named
            assert each["domains"] == same["domains"], named
            if each["globalMinimum"] is not None:
                assert each["globalMinimum"] == same["globalMinimum"], named
            compared += 1
    assert compared > 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--watch", "--snapshot", "s.jsonl"), "--watch needs a live cluster: remove --snapshot"),
        (("--watch", "-o", "json"), "--watch prints text"),
    ],
)
def test_options_that_do_not_go_together(run, arguments, message):
    code, _, err = run("skew", *arguments)
    assert (code, message in err) == (2, True)


def test_without_pods_there_is_nothing_to_count(run, tmp_path):
    (tmp_path / "s.jsonl").write_text(json.dumps({"kind": "Snapshot", "resources": ["nodes"]}) + "\n")
    code, _, err = run("skew", "-A", "--snapshot", "s.jsonl")
    assert code == 3
    assert err.endswith(": skew needs them\n")


def test_pods_that_belong_to_no_workload_are_counted_all_the_same(ask):
    assert "a 2, b 0" in ask("a: a0=1 | b: b0", "-A", objects=[web(ZONE), running("stray", "a0")])[1]
