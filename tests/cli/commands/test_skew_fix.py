"""``evenspread skew --fix``: the page, the commands, the JSON, and PodDisruptionBudgets."""

import json
import shlex
from pathlib import Path

import jsonschema
import pytest
from cli import schemas
from cli.snapshots import snapshot
from cluster.api import FakeApi
from manifest import workload

from webhook.cluster.resources import BUILT_IN_RESOURCES

ZONE, HOST = "zone hard 1 app=web", "hostname hard 1 app=web"
UNEVEN = "a: a0=2 a1=2 | b: b0=1 | c: c0"
NO_BUDGETS = "poddisruptionbudgets: {}: the API server may refuse an eviction\n"
KEPT = "PodDisruptionBudgets do not allow the evictions now"
IGNORED = "above maxSkew: --fix repairs hard constraints only, because the scheduler may ignore others\n"

PAGE = """\
StatefulSet shop/web: evict 2 pods to repair zone[0], hostname[1], the fewest possible

  POD   FROM                 TO
  a0-0  zone a; hostname a0  zone c; hostname c0
  a1-0  zone a; hostname a1  zone b, c; hostname b0, c0

run the commands in this order; evenspread runs none of them:

echo '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"a0-0","namespace":"shop"}}' | \
kubectl create --raw /api/v1/namespaces/shop/pods/a0-0/eviction -f - &&
kubectl wait -n shop --timeout=10m --for=delete pod/a0-0 &&
kubectl wait -n shop --timeout=10m --for=jsonpath='{.status.readyReplicas}'=5 statefulset/web &&
echo '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"a1-0","namespace":"shop"}}' | \
kubectl create --raw /api/v1/namespaces/shop/pods/a1-0/eviction -f - &&
kubectl wait -n shop --timeout=10m --for=delete pod/a1-0 &&
kubectl wait -n shop --timeout=10m --for=jsonpath='{.status.readyReplicas}'=5 statefulset/web
"""


def web(*constraints, kind="StatefulSet", name="web", replicas=5, **more):
    return workload(kind, "app=web", *constraints, meta={"name": name, "namespace": "shop"}, replicas=replicas, **more)


def budget(allowed, **more):
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    meta = {"name": "web", "namespace": "shop"}
    found = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec}
    return {**found, "status": {"disruptionsAllowed": allowed}, **more}


@pytest.fixture
def ask(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def ask(state, *arguments, objects=()):
        (tmp_path / "snapshot.jsonl").write_bytes(snapshot(state, *objects))
        return run("skew", "--fix", "--snapshot", "snapshot.jsonl", *(arguments or ("-n", "shop")))

    return ask


def test_the_page(ask):
    objects = [web(ZONE, HOST), web(ZONE, name="other", selector="app=other"), budget(1)]
    assert ask(UNEVEN, "statefulset/web", "-n", "shop", objects=objects) == (1, PAGE, "")


def test_nothing_to_repair(ask):
    even = "a: a0=2 | b: b0=2 | c: c0=1"
    assert ask(even, objects=[web(ZONE)]) == (0, "no hard constraint above maxSkew in shop\n", "")
    assert ask(even, "-A", objects=[web(ZONE)])[1] == "no hard constraint above maxSkew in any namespace\n"


@pytest.mark.parametrize(
    ("constraints", "soft", "expected"),
    [
        pytest.param(["zone soft 4 app=web"], [], "", id="within maxSkew"),
        pytest.param(["zone soft 1 app=web"], ["zone[0]"], f"1 soft constraint is {IGNORED}", id="one"),
        pytest.param(
            ["zone soft 1 app=web", "hostname soft 1 app=web"],
            ["zone[0]", "hostname[1]"],
            f"2 soft constraints are {IGNORED}",
            id="two",
        ),
    ],
)
def test_soft_constraints_have_no_repair(ask, constraints, soft, expected):
    page, objects = f"no hard constraint above maxSkew in shop\n{expected}", [web(*constraints)]
    assert ask(UNEVEN, objects=objects) == (0, page, "")
    found = json.loads(ask(UNEVEN, "-n", "shop", "-o", "json", objects=objects)[1])
    for each in found:
        jsonschema.validate(each, {**schemas.published(), "$ref": "#/$defs/skewFix"})
    assert [(each["name"], each["hard"], each["soft"], each["fix"]) for each in found] == [("web", [], soft, None)][
        : len(soft)
    ]


def test_a_soft_constraint_next_to_a_hard_one(ask):
    code, out, _ = ask(UNEVEN, objects=[web(ZONE, "hostname soft 1 app=web"), budget(1)])
    assert (code, out.endswith(f"statefulset/web\n\n1 soft constraint is {IGNORED}")) == (1, True)
    code, out, _ = ask(UNEVEN, "-A", "-o", "json", objects=[web(ZONE, "hostname soft 1 app=web"), budget(1)])
    [found] = json.loads(out)
    assert (code, found["hard"], found["soft"], len(found["fix"]["evictions"])) == (1, ["zone[0]"], ["hostname[1]"], 2)


def test_unknown_budgets_are_named_where_a_pod_is_evicted(ask):
    missing = {"missing": {"poddisruptionbudgets": "403 Forbidden"}}
    old, source = {"resources": [each.name for each in BUILT_IN_RESOURCES]}, "snapshot snapshot.jsonl: note: "
    for more, why in ((missing, "403 Forbidden"), (old, "not in this snapshot"), ({}, "not in this snapshot")):
        header = {"kind": "Snapshot", **more}
        assert ask(UNEVEN, objects=[web(ZONE), header])[2] == source + NO_BUDGETS.format(why)
        assert ask(UNEVEN, objects=[web(ZONE, replicas=6), header])[2] == ""
    assert ask(UNEVEN, objects=[web(ZONE)])[2] == ""


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([web(ZONE), budget(0)], KEPT),
        (
            [web(ZONE, replicas=6)],
            "its running pods differ from its replicas: wait, or see evenspread explain --pending",
        ),
    ],
)
def test_why_there_is_no_plan(ask, objects, reason):
    code, out, _ = ask(UNEVEN, objects=objects)
    assert (code, out) == (1, f"StatefulSet shop/web: no evictions repair zone[0]: {reason}\n")


def test_a_max_skew_of_0_ends(ask):
    """Files can have it. The API server refuses it."""
    code, out, _ = ask(UNEVEN, objects=[web("zone hard 0 app=web")])
    assert (code, out) == (1, "StatefulSet shop/web: no evictions repair zone[0]: a replacement could stay Pending\n")


def test_several_workloads_have_a_page_each(ask):
    _, out, _ = ask(UNEVEN, objects=[web(ZONE), web(ZONE, name="web2")])
    assert [line.split(":")[0] for line in out.splitlines() if line.endswith("possible")] == [
        "StatefulSet shop/web",
        "StatefulSet shop/web2",
    ]


def test_a_job_is_not_repaired(ask):
    assert ask(UNEVEN, objects=[web(ZONE, kind="Job")])[:2] == (0, "no hard constraint above maxSkew in shop\n")


@pytest.mark.parametrize("allowed", [0, 1])
def test_the_json(ask, allowed):
    code, out, _ = ask(UNEVEN, "-n", "shop", "-o", "json", objects=[web(ZONE, HOST), budget(allowed)])
    assert code == 1
    [found] = json.loads(out)
    schema = schemas.published()
    jsonschema.validate(found, {**schema, "$ref": "#/$defs/skewFix"})
    fix = found["fix"]
    if not allowed:
        assert fix == {"evictions": [], "fewest": False, "reason": "budgets", "message": KEPT}
        return
    commands = [command for step in fix["evictions"] for command in step["commands"]]
    assert " &&\n".join(commands) in PAGE
    assert {name: value for name, value in fix["evictions"][1].items() if name != "commands"} == {
        "pod": "a1-0",
        "node": "a1",
        "from": {"topology.kubernetes.io/zone": "a", "kubernetes.io/hostname": "a1"},
        "to": {"topology.kubernetes.io/zone": ["b", "c"], "kubernetes.io/hostname": ["b0", "c0"]},
    }
    assert (fix["fewest"], fix["reason"], fix["message"]) == (True, None, "")


def live(api, *, allowed):
    for name, zone in (("a", "a"), ("b", "b")):
        labels = {"topology.kubernetes.io/zone": zone}
        api.put(
            "nodes",
            name,
            metadata={"labels": labels},
            status={"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
        )
    api.put("statefulsets", "web", "shop", spec=web(ZONE, replicas=2)["spec"])
    for name in ("web-0", "web-1"):
        api.put("pods", name, "shop", metadata={"labels": {"app": "web"}}, spec={"nodeName": "a"})
    made = budget(allowed)
    api.put("poddisruptionbudgets", "web", "shop", spec=made["spec"], status=made["status"])


def test_a_live_cluster_and_its_options(run, tmp_path):
    with FakeApi() as api:
        live(api, allowed=1)
        kubeconfig = api.kubeconfig(tmp_path)
        _, out, _ = run("skew", "sts/web", "-n", "shop", "--fix", "--kubeconfig", kubeconfig)
        assert f"kubectl create --kubeconfig {shlex.quote(str(kubeconfig))} --raw " in out
        live(api, allowed=0)
        _, out, _ = run("skew", "-A", "--fix", "--kubeconfig", kubeconfig)
        assert out.endswith(f": {KEPT}\n")
        api.forbidden.add("poddisruptionbudgets")
        _, out, err = run("skew", "-A", "--fix", "--kubeconfig", kubeconfig)
        assert f": note: {NO_BUDGETS.format('403 Forbidden')}" in err
        assert "kubectl create " in out


@pytest.mark.parametrize("options", [pytest.param([], id="with names"), pytest.param(["--anonymise"], id="without")])
@pytest.mark.parametrize(
    ("allowed", "app", "kept"),
    [
        pytest.param(0, "web", True, id="no eviction is allowed"),
        pytest.param(1, "web", False, id="an eviction is allowed"),
        pytest.param(0, "other", False, id="the budget selects other pods"),
    ],
)
def test_a_snapshot_has_the_budgets(run, allowed, app, kept, options):
    with FakeApi() as api:
        live(api, allowed=allowed)
        made = budget(allowed, spec={"selector": {"matchLabels": {"app": app}}, "maxUnavailable": 1})
        api.put("poddisruptionbudgets", "web", "shop", spec=made["spec"], status=made["status"])
        code, _, err = run("snapshot", "-o", "taken.jsonl", *options, "--kubeconfig", api.kubeconfig(Path.cwd()))
        assert (code, "poddisruptionbudgets" in err) == (0, False)
    (line,) = [line for line in Path("taken.jsonl").read_text().splitlines() if "PodDisruptionBudget" in line]
    assert ("maxUnavailable" in line, "shop" in line) == (False, not options)
    assert run("snapshot", "-o", "converted.jsonl", "--snapshot", "taken.jsonl")[0] == 0
    for file in ("taken.jsonl", "converted.jsonl"):
        _, out, err = run("skew", "-A", "--fix", "--snapshot", file)
        assert (out.endswith(f": {KEPT}\n"), "kubectl create " in out, err) == (kept, not kept, "")


def test_a_snapshot_without_permission_for_budgets(run):
    with FakeApi() as api:
        live(api, allowed=0)
        api.forbidden.add("poddisruptionbudgets")
        code, _, err = run("snapshot", "-o", "taken.jsonl", "--kubeconfig", api.kubeconfig(Path.cwd()))
        line = "note: poddisruptionbudgets: 403 Forbidden: skew --fix cannot respect them\n"
        assert (code, line in err) == (0, True)
    _, out, err = run("skew", "-A", "--fix", "--snapshot", "taken.jsonl")
    assert ("kubectl create " in out, err.endswith(NO_BUDGETS.format("403 Forbidden"))) == (True, True)


def test_a_budget_that_cannot_be_read_is_named(ask):
    code, out, err = ask(UNEVEN, objects=[web(ZONE), budget(0, status={"disruptionsAllowed": "none"})])
    assert err.startswith("snapshot snapshot.jsonl: note: PodDisruptionBudget shop/web: Expected `int")
    assert (code, "kubectl create " in out) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("web",), "'web' is no workload such as deployment/web"),
        (("deploy/web", "-A"), "Deployment/web is in one namespace: remove -A"),
        (("--fix", "--watch"), "--watch prints no evictions: remove --fix"),
    ],
)
def test_options_that_do_not_go_together(run, arguments, message):
    code, _, err = run("skew", *arguments)
    assert (code, message in err) == (2, True)


def test_one_workload_has_a_table(run, tmp_path):
    (tmp_path / "s.jsonl").write_bytes(snapshot(UNEVEN, web(ZONE), web(ZONE, name="other")))
    _, out, _ = run("skew", "statefulset/other", "-n", "shop", "--snapshot", str(tmp_path / "s.jsonl"))
    assert [line.split()[1] for line in out.splitlines()[1:2]] == ["StatefulSet/other"]
    assert out.endswith("\n1 of 1 constraint above maxSkew, 1 of them DoNotSchedule\n")
    code, _, err = run("skew", "statefulset/none", "-n", "shop", "--snapshot", str(tmp_path / "s.jsonl"))
    assert (code, err.endswith(": no StatefulSet shop/none\n")) == (3, True)
