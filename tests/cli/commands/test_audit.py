import gzip
import io
import json
import re

import pytest

from webhook.cli.main import main


def owned(kind, name, owner=None, selector="web", **spec):
    """A workload of namespace shop whose constraint has the given selector; a pod where ``kind`` is Pod."""
    pod = {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": selector}},
            }
        ]
    }
    meta = {"name": name, "namespace": "shop"}
    if owner:
        controller, of = owner
        meta["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": controller, "name": of, "uid": "1", "controller": True}
        ]
    if kind == "Pod":
        meta["labels"] = {"app": "web"}
        return {"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": pod}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod}
    selected = {"matchLabels": {"app": "web"}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": meta,
        "spec": {"replicas": 3, "selector": selected, "template": template, **spec},
    }


FAMILY = (
    owned("Deployment", "web", selector="old"),
    owned("ReplicaSet", "web-1", ("Deployment", "web"), selector="old"),
    owned("Pod", "web-1-a", ("ReplicaSet", "web-1"), selector="old"),
    owned("Pod", "web-1-b", ("ReplicaSet", "web-1"), selector="old"),
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}},
)
NAMED = {**FAMILY[-1], "metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "n1"}}}
BROKEN = {
    **owned("Rollout", "broken"),
    "apiVersion": "argoproj.io/v1alpha1",
    "spec": {
        "template": {
            "spec": {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "a", "whenUnsatisfiable": "x"}]}
        }
    },
}


def listed(*objects):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2).encode()


def snapshot(*objects, version="v1.32.2"):
    header = {"kind": "Snapshot", "kubernetesVersion": version, "takenAt": "2026-01-01T00:00:00Z"}
    return "\n".join(json.dumps(each) for each in (header, *objects)).encode()


def rows(out, *rules):
    return [
        f"{row['object']['kind']}/{row['object']['name']} {row['rule']}"
        for row in json.loads(out)
        if "object" in row and row["rule"] in rules
    ]


class TestInputs:
    @pytest.mark.parametrize(
        ("data", "expected"),
        [
            pytest.param(listed(*FAMILY), ["Deployment/web"], id="what a controller made counts as one with it"),
            pytest.param(listed(*FAMILY[1:]), ["ReplicaSet/web-1"], id="the highest controller there is"),
            pytest.param(listed(*FAMILY[2:]), ["Pod/web-1-a"], id="pods of an absent controller count once"),
            pytest.param(
                listed(FAMILY[0], owned("StatefulSet", "own", ("Deployment", "web"), selector="old"), FAMILY[-1]),
                ["Deployment/web", "StatefulSet/own"],
                id="what that controller never makes is looked at",
            ),
            pytest.param(snapshot(*FAMILY), ["Deployment/web"], id="a snapshot"),
            pytest.param(gzip.compress(snapshot(*FAMILY)), ["Deployment/web"], id="a packed snapshot"),
            pytest.param(json.dumps(FAMILY[0]).encode(), ["Deployment/web"], id="one object"),
        ],
    )
    def test_what_is_looked_at(self, run, data, expected):
        code, out, err = run("audit", "-", "-o", "json", stdin=data)
        assert (code, err) == (1, "")
        assert rows(out, "selector-not-self") == [f"{name} selector-not-self" for name in expected]

    def test_nobody_types_a_cluster(self, capsys, monkeypatch):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        monkeypatch.setattr("sys.stdin", Terminal())
        assert main(["audit"]) == 2
        assert "add --cluster, or FILE (- for the standard input)" in capsys.readouterr().err

    def test_the_standard_input_is_the_default(self, run):
        assert run("audit", "-o", "json", stdin=listed(*FAMILY))[0] == 1

    @pytest.mark.parametrize(("version", "known"), [("v1.32.2", "1.32"), ("v1.2.0", "1.37"), ("soon", "1.37")])
    def test_the_release_of_a_snapshot_counts(self, run, version, known):
        pod = owned("Pod", "a")
        pod["spec"]["topologySpreadConstraints"][0]["labelSelector"] = {}
        _, out, _ = run("audit", "-o", "json", stdin=snapshot(pod, version=version))
        [message] = [row["message"] for row in json.loads(out) if row["rule"] == "selector-empty"]
        assert f"Kubernetes {known}" in message

    @pytest.mark.parametrize(
        ("data", "line"),
        [
            pytest.param(b"\x1f\x8bnonsense", "<stdin>: error: cannot be unpacked: ", id="broken gzip"),
            pytest.param(listed()[:-3], "<stdin>:5:1: error: JSON ends too early", id="cut short"),
        ],
    )
    def test_what_cannot_be_read(self, run, data, line):
        code, _, err = run("audit", stdin=data)
        assert code == 3
        assert err.startswith(line)


class TestPage:
    def test_summary_first_then_findings(self, run):
        code, out, err = run(
            "audit", "--rule", "selector-not-self", "--rule", "max-skew", stdin=listed(*FAMILY, BROKEN)
        )
        assert (code, err) == (1, "")
        assert out == PAGE

    def test_the_summary_alone(self, run):
        _, out, _ = run("audit", "--summary", stdin=listed(*FAMILY))
        assert "WORST WORKLOADS" in out
        assert "FINDINGS\n" not in out

    def test_under_a_denying_ceiling(self, run):
        _, out, _ = run("audit", "--ceiling", "deny", "--rule", "max-skew", stdin=listed(*FAMILY, BROKEN))
        assert "the webhook would deny 1 workload: Rollout shop/broken\n" in out
        assert "max-skew  high      deny" in out

    def test_the_worst_stands_first_and_what_was_not_looked_at_last(self, run):
        worse = owned("StatefulSet", "worse", selector="old")
        worse["spec"]["template"]["spec"]["topologySpreadConstraints"] *= 2
        _, out, _ = run("audit", stdin=listed(*FAMILY, worse))
        lines = [line for line in out.splitlines() if line and not line.startswith(" ")]
        first, second, *_, last = lines[lines.index("FINDINGS") + 1 :]
        assert first.startswith("StatefulSet shop/worse ")
        assert second.startswith("Deployment shop/web ")
        assert "not evaluated" in last
        assert (
            "the webhook would deny no workload, even with --ceiling deny\n" in run("audit", stdin=listed(*FAMILY))[1]
        )

    def test_what_is_only_recorded_is_marked(self, run):
        _, out, _ = run("audit", stdin=listed(*FAMILY))
        assert "\n  high    selector-not-self: hostname[0] counts" in out
        assert (
            "\n  high    selector-not-self (audit only): "
            in run("audit", "--ceiling", "audit", stdin=listed(*FAMILY))[1]
        )

    def test_one_namespace_alone(self, run):
        other = owned("StatefulSet", "db", selector="old")
        other["metadata"]["namespace"] = "data"
        for namespace, expected in (("shop", "Deployment/web"), ("data", "StatefulSet/db")):
            _, out, _ = run("audit", "-o", "json", "-n", namespace, stdin=listed(*FAMILY, other))
            assert rows(out, "selector-not-self") == [f"{expected} selector-not-self"]
        _, out, _ = run("audit", "-n", "data", "--summary", stdin=listed(*FAMILY, other))
        assert out.startswith("6 objects: ")
        assert "\n1 workload checked\n" in out

    def test_an_empty_list_is_an_answer(self, run):
        code, out, err = run("audit", stdin=listed())
        assert (code, out, err) == (0, "nothing to check\n", "<stdin>:1:1: note: an empty list: nothing to check\n")
        assert run("check", "-", stdin=b"apiVersion: v1\nkind: List\nitems: []\n")[0] == 0

    def test_empty_input_is_an_answer(self, run):
        code, out, err = run("audit", stdin=b"")
        assert (code, out, err) == (0, "nothing to check\n", "<stdin>:1:1: note: no Kubernetes object in this file\n")

    def test_what_is_missing_is_said_where_nothing_was_read(self, run):
        code, out, _ = run("audit", stdin=listed()[:-3])
        assert (code, out) == (
            3,
            "nothing to check\n\nresults are incomplete: 1 error in the input, see above\n",
        )

    def test_nothing_found(self, run):
        code, out, _ = run("audit", "--rule", "max-skew", stdin=listed(*FAMILY))
        assert code == 0
        assert out == (
            "5 objects: 2 Pod, 1 Deployment, 1 ReplicaSet, 1 Node\n"
            "1 workload checked, with 3 objects that they own\n\nno findings\n"
            "\n2 Pending pods: 2 short of capacity\n"
            "PENDING NOW          PODS  CAUSE\nDeployment shop/web  2     capacity\n"
        )


PAGE = """\
6 objects: 2 Pod, 1 Deployment, 1 ReplicaSet, 1 Node, 1 Rollout
2 workloads checked, with 3 objects that they own

2 findings in 2 workloads: 2 high
with --ceiling deny, the webhook would deny 1 workload: Rollout shop/broken

RULE               SEVERITY  MODE  FINDINGS  WORKLOADS  FAULT
max-skew           high      warn         1          1  maxSkew must be set and positive
selector-not-self  high      warn         1          1  the constraint's labelSelector does not match the workload's own pods

WORST WORKLOADS        HIGH  MEDIUM     LOW
Deployment shop/web       1       0       0
Rollout shop/broken       1       0       0

WORST NAMESPACES    HIGH  MEDIUM     LOW
shop                   2       0       0

2 Pending pods: 2 short of capacity
PENDING NOW          PODS  CAUSE
Deployment shop/web  2     capacity

FINDINGS

Deployment shop/web  <stdin>:31
  high    selector-not-self: hostname[0] counts app=old but the pods have app=web, so this constraint does not spread these pods
          fix: labelSelector: {matchLabels: {app: web}}

Rollout shop/broken  <stdin>:175
  high    max-skew: spec.template.spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero
          fix: maxSkew: 1
"""  # noqa: E501 as it is printed


@pytest.mark.parametrize(
    ("ceiling", "policy", "mode"),
    [
        ("deny", "", "deny"),
        ("audit", "", "audit"),
        ("nonsense", "", "warn"),
        ("audit", "ceiling: deny\n", "deny"),
        ("audit", "ceiling: deny\nnamespaceLabel: any\n", "audit"),
        ("audit", "namespaceLabel: raise\n", "warn"),
        ("deny", "namespaceLabel: none\n", "warn"),
    ],
)
def test_a_namespace_in_the_input_gives_its_ceiling(run, tmp_path, ceiling, policy, mode):
    config = tmp_path / "policy.yaml"
    config.write_text(f"apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\n{policy}")
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "shop", "labels": {"evenspread.io/ceiling": ceiling}},
    }
    workload = owned("Deployment", "web")
    workload["spec"]["template"]["spec"]["topologySpreadConstraints"][0]["maxSkew"] = 0
    stdin = json.dumps({"apiVersion": "v1", "kind": "List", "items": [workload, namespace]}).encode()
    _, out, _ = run("audit", "-", "-o", "json", "--rule", "max-skew", "--config", str(config), stdin=stdin)
    assert [entry["mode"] for entry in json.loads(out)] == [mode]


def gaps(out):
    return {entry["rule"]: entry["notEvaluated"] for entry in json.loads(out) if "notEvaluated" in entry}


class TestWhatTheInputDoesNotHold:
    def test_a_list_of_workloads_says_nothing_of_nodes_or_autoscalers(self, run):
        alone = owned("StatefulSet", "web", replicas=1)
        _, out, _ = run("audit", "-o", "json", stdin=listed(alone))
        assert gaps(out)["topology-key-unknown"] == "nodes: none in the file"
        assert rows(out, "spread-without-effect") == []
        _, out, _ = run("audit", "-o", "json", stdin=snapshot(alone, NAMED))
        assert "topology-key-unknown" not in gaps(out)
        assert rows(out, "spread-without-effect") == ["StatefulSet/web spread-without-effect"]

    def test_a_whole_cluster_says_what_memory_a_replica_takes(self, run):
        said = "a webhook replica needs about 120 MiB of memory for this cluster\n"
        assert said in run("audit", stdin=snapshot(NAMED))[1]
        assert "MiB" not in run("audit", stdin=listed(NAMED))[1]

    def test_a_snapshot_says_what_could_not_be_read(self, run):
        header = {"kind": "Snapshot", "missing": {"nodes": "403 Forbidden"}}
        lines = "\n".join(json.dumps(each) for each in (header, owned("StatefulSet", "web")))
        _, out, _ = run("audit", stdin=lines.encode())
        assert re.search(r"\n5 rules not evaluated: for other reasons;", out)
        _, out, _ = run("audit", "-v", stdin=lines.encode())
        assert re.search(r"\nnot evaluated, nodes: 403 Forbidden: .*group-cap", out)
