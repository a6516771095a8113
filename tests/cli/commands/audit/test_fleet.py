"""``evenspread audit`` over several clusters: which inputs are clusters, what is compared, and what cannot be read."""

import gzip
import json
import re
from pathlib import Path

import jsonschema
import pytest
from cli import schemas
from cli.snapshots import ZONE, snapshot
from cluster.api import FakeApi
from manifest import workload
from msgspec import structs

from webhook.answers.fleet import FleetCluster, FleetWorkload, SeverityCounts, WorkloadInCluster
from webhook.cli.checking.fleet import Fleet
from webhook.cli.commands.audit.fleet_page import render

SELECTORS = {"right": "app=web", "wrong": "app=old"}
RULES = ("--rule", "selector-not-self", "--rule", "max-skew")


def deployment(name="web", selector="right", namespace="shop", max_skew=1):
    key, _, value = SELECTORS[selector].partition("=")
    constraint = {
        "maxSkew": max_skew,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {key: value}},
    }
    return workload("Deployment", "app=web", constraint, meta={"name": name, "namespace": namespace}, replicas=2)


def listed(*objects):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}).encode()


EU = snapshot("a: n1 | b: n2", deployment(selector="wrong"), deployment("db", max_skew=0))
US = snapshot("a: n1 | b: n2", deployment(), deployment("db", max_skew=0), deployment("only", "wrong"))
CLEAN = snapshot("a: n1 | b: n2", deployment())


@pytest.fixture(name="audit")
def _audit(run, tmp_path):
    """Runs audit with these files in the directory. A file is named where its content is not None."""

    def audit(*arguments, **files):
        for name, data in files.items():
            if data is not None:
                (tmp_path / name.replace("_", ".")).write_bytes(data)
        return run("audit", *(name.replace("_", ".") for name in files), *RULES, *arguments)

    return audit


def entries(out, rule):
    return [entry for entry in json.loads(out) if entry["rule"] == rule]


class TestWhatIsACluster:
    @pytest.mark.parametrize(
        ("files", "clusters"),
        [
            pytest.param({"eu_jsonl": EU}, [], id="one snapshot"),
            pytest.param({"eu_jsonl": EU, "us_jsonl": US}, ["eu.jsonl", "us.jsonl"], id="two snapshots"),
            pytest.param({"eu_json": EU, "us_jsonl_gz": gzip.compress(US)}, ["eu.json", "us.jsonl.gz"], id="packed"),
            pytest.param({"a_json": listed(deployment()), "b_json": listed(deployment("db"))}, [], id="two Lists"),
            pytest.param({"eu_jsonl": EU, "b_json": listed(deployment("more"))}, [], id="a snapshot and a List"),
            pytest.param(
                {"eu_jsonl": EU, "gone_jsonl": None}, ["eu.jsonl", "gone.jsonl"], id="a snapshot that is lost"
            ),
            pytest.param({"gone_jsonl": None, "eu_jsonl": EU}, ["eu.jsonl", "gone.jsonl"], id="lost first"),
            pytest.param({"a_json": listed(deployment()), "gone_json": None}, [], id="a List that is lost"),
            pytest.param(
                {"eu_jsonl": EU, "a_json": listed(deployment()), "us_jsonl": US},
                ["eu.jsonl", "us.jsonl", "a.json"],
                id="a List between two snapshots",
            ),
        ],
    )
    def test_of_files(self, audit, files, clusters):
        _, out, _ = audit("-o", "json", **files)
        assert [entry["cluster"] for entry in entries(out, "fleet-cluster")] == clusters
        assert all(("cluster" in entry) is bool(clusters) for entry in entries(out, "selector-not-self"))

    def test_parts_of_one_cluster_are_counted_together(self, audit):
        code, out, _ = audit("--summary", a_json=listed(deployment()), b_json=listed(deployment("db", max_skew=0)))
        assert (code, out.splitlines()[:2]) == (1, ["2 objects: 2 Deployment", "2 workloads checked"])

    def test_a_folder_of_snapshots(self, run, tmp_path):
        for name, data in (("eu.json", EU), ("us.json", US), (".old.json", EU)):
            (tmp_path / "all").mkdir(exist_ok=True)
            (tmp_path / "all" / name).write_bytes(data)
        _, out, err = run("audit", "all", "-o", "json", *RULES)
        assert [entry["cluster"] for entry in entries(out, "fleet-cluster")] == ["all/eu.json", "all/us.json"]
        assert err == (
            "all/.old.json: note: skipped: hidden file or directory with topologySpreadConstraints; "
            "pass its path to check it\n"
        )

    def test_the_option_is_one_more_file(self, audit):
        _, out, _ = audit("-o", "json", "--snapshot", "eu.jsonl", us_jsonl=US, eu_jsonl=EU)
        assert [entry["cluster"] for entry in entries(out, "fleet-cluster")] == ["eu.jsonl", "us.jsonl"]


class TestPage:
    def test_the_worst_first_and_each_message_once(self, audit):
        code, out, err = audit(us_jsonl=US, eu_jsonl=EU, gone_jsonl=None)
        assert (code, err) == (3, "evenspread: gone.jsonl: no such file or directory\n")
        assert out == PAGE

    def test_the_summary_alone(self, audit):
        assert "FINDINGS" not in audit("--summary", us_jsonl=US, eu_jsonl=EU)[1]

    def test_nothing_found(self, audit):
        code, out, _ = audit(a_jsonl=CLEAN, b_jsonl=CLEAN)
        assert (code, out.splitlines()[-1]) == (0, "no findings")

    def test_nothing_read(self, run):
        api = {"contexts": [], "current-context": ""}
        code, out, _ = run("audit", "--kubeconfig", kubeconfig(api), "--context", "a", "--context", "b")
        assert code == 4
        assert out.splitlines()[0] == "2 clusters, 2 not read"
        assert "WORST WORKLOADS" not in out

    def test_what_was_read_in_part_is_incomplete(self, audit):
        code, out, err = audit(us_jsonl=US, eu_jsonl=EU[:-9])
        assert code == 3
        assert err.startswith("eu.jsonl:5:")
        [line] = [line for line in out.splitlines() if line.startswith("eu is incomplete: 1 error in the input: ")]
        assert "eu.jsonl:5:" in line

    def test_rules_without_an_evaluation_are_named_once(self, audit):
        _, out, _ = audit("--summary", "-v", "--rule", "topology-key-unknown", a_jsonl=NODELESS, b_jsonl=NODELESS)
        assert out.splitlines()[-1] == "a, b: not evaluated, nodes: 403 Forbidden: topology-key-unknown"


NODELESS = b'{"kind":"Snapshot","missing":{"nodes":"403 Forbidden"}}\n' + json.dumps(deployment()).encode()

PAGE = """\
3 clusters, 1 not read

CLUSTERS  NODES  PODS  WORKLOADS  HIGH  MEDIUM  LOW  WOULD DENY  PENDING  ABOVE MAXSKEW
eu        2      0     2          2     0       0    1           0        0
us        2      0     3          2     0       0    1           0        0
gone was not read: no such file or directory

WORST WORKLOADS: high/medium/low  eu     us
Deployment shop/db                1/0/0  1/0/0
Deployment shop/only              -      1/0/0
Deployment shop/web               1/0/0  0/0/0
1 workload breaks different rules in different clusters

FINDINGS

Deployment shop/db
  high    max-skew: spec.template.spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero
          fix: set maxSkew: 1 and add matchLabelKeys: [pod-template-hash]
          in: eu, us

Deployment shop/only
  high    selector-not-self: zone[0] counts app=old but the pods have app=web, so this constraint does not spread these pods
          fix: labelSelector: {matchLabels: {app: web}}
          in: us

Deployment shop/web
  high    selector-not-self: zone[0] counts app=old but the pods have app=web, so this constraint does not spread these pods
          fix: labelSelector: {matchLabels: {app: web}}
          in: eu
"""  # noqa: E501 as it is printed


class TestJson:
    def test_the_same_workload_side_by_side(self, audit):
        _, out, _ = audit("-o", "json", us_jsonl=US, eu_jsonl=EU)
        found = {entry["workload"]: entry for entry in entries(out, "fleet-workload")}
        assert [*found] == ["Deployment shop/db", "Deployment shop/only", "Deployment shop/web"]
        assert {name: entry["differs"] for name, entry in found.items()} == {
            "Deployment shop/db": False,
            "Deployment shop/only": False,
            "Deployment shop/web": True,
        }
        assert [(state["cluster"], state["rules"]) for state in found["Deployment shop/web"]["clusters"]] == [
            ("eu.jsonl", ["selector-not-self"]),
            ("us.jsonl", []),
        ]

    def test_it_fits_the_published_schema(self, audit):
        _, out, _ = audit("-o", "json", us_jsonl=US, eu_jsonl=EU, gone_jsonl=None)
        schema = jsonschema.Draft202012Validator({**schemas.published(), "$ref": "#/$defs/audit"})
        for entry in json.loads(out):
            schema.validate(entry)
        assert entries(out, "fleet-cluster")[-1] == {
            "rule": "fleet-cluster",
            "cluster": "gone.jsonl",
            "error": "no such file or directory",
        }

    def test_yaml_has_the_same(self, audit):
        assert audit("-o", "yaml", us_jsonl=US, eu_jsonl=EU)[1].startswith(
            "- rule: fleet-cluster\n  cluster: eu.jsonl\n"
        )


class TestOtherFormats:
    @pytest.mark.parametrize("output", ["sarif", "junit", "github", "gitlab"])
    def test_findings_of_all_clusters_and_the_unread_one(self, audit, output):
        code, out, _ = audit("-o", output, us_jsonl=US, eu_jsonl=EU, gone_jsonl=None)
        assert code == 3
        for text in ("eu.jsonl", "us.jsonl", "gone.jsonl", "no such file or directory"):
            assert text in out

    def test_reports_are_those_of_a_single_cluster(self, audit):
        code, _, err = audit("-o", "report", us_jsonl=US, eu_jsonl=EU)
        assert (code, err.splitlines()[-1]) == (2, "Error: -o report is for a single cluster: run audit for each")

    def test_a_page_to_mail(self, audit):
        code, out, _ = audit("-o", "html", us_jsonl=US, eu_jsonl=EU, gone_jsonl=None)
        assert (code, re.findall(r"<script|<link|<img|<form|url\(|@import|https?://", out)) == (3, [])
        rows = re.findall(r"<tr>(.*?)</tr>", out, re.DOTALL)
        assert [re.findall(r">([^<>]+)</t[dh]>", row) for row in rows] == [
            [
                "Cluster",
                "Nodes",
                "Pods",
                "Workloads",
                "High",
                "Medium",
                "Low",
                "Would deny",
                "Pending",
                "Above maxSkew",
            ],
            ["eu.jsonl", "2", "0", "2", "2", "0", "0", "1", "0", "0"],
            ["us.jsonl", "2", "0", "3", "2", "0", "0", "1", "0", "0"],
            ["Workload", "eu.jsonl", "us.jsonl"],
            ["Deployment shop/db", "1/0/0", "1/0/0"],
            ["Deployment shop/only", "1/0/0"],
            ["Deployment shop/web", "1/0/0", "0/0/0"],
        ]
        assert '<p class="wrong">gone.jsonl was not read: no such file or directory</p>' in out
        assert '<td class="none" data-name="eu.jsonl"></td>' in out

    def test_the_page_of_clean_and_of_incomplete_clusters(self, audit):
        assert "<p>No findings.</p>" in audit("-o", "html", a_jsonl=CLEAN, b_jsonl=CLEAN)[1]
        assert (
            '<p class="wrong">eu.jsonl is incomplete: 1 error' in audit("-o", "html", us_jsonl=US, eu_jsonl=EU[:-9])[1]
        )


@pytest.mark.parametrize(
    ("files", "arguments", "code"),
    [
        pytest.param({"a_jsonl": CLEAN, "b_jsonl": CLEAN}, (), 0, id="nothing found"),
        pytest.param({"a_jsonl": CLEAN, "b_jsonl": EU}, (), 1, id="findings in one"),
        pytest.param({"a_jsonl": CLEAN, "b_jsonl": EU}, ("--fail-on", "never"), 0, id="findings that do not count"),
        pytest.param({"a_jsonl": EU, "b_jsonl": b"\x1f\x8bx"}, (), 3, id="one cannot be unpacked"),
        pytest.param({"a_jsonl": EU, "b_jsonl": None}, ("--fail-on", "never"), 3, id="one is lost"),
    ],
)
def test_exit_codes(audit, files, arguments, code):
    assert audit(*arguments, **files)[0] == code


@pytest.mark.parametrize(
    ("namespace", "code", "read"),
    [
        pytest.param("data", 1, ["eu.jsonl"], id="in one cluster"),
        pytest.param("nowhere", 2, [], id="in none"),
    ],
)
def test_a_namespace_that_a_cluster_lacks(audit, namespace, code, read):
    more = snapshot("a: n1", deployment("db", "wrong", namespace="data"))
    found, out, _ = audit("-o", "json", "-n", namespace, eu_jsonl=more, us_jsonl=US)
    clusters = entries(out, "fleet-cluster")
    assert (found, [entry["cluster"] for entry in clusters if "error" not in entry]) == (code, read)
    assert clusters[-1]["error"] == f"no namespace '{namespace}'"


# -- live clusters


def kubeconfig(content):
    Path("kubeconfig").write_text(json.dumps(content), encoding="utf-8")
    return "kubeconfig"


HEAD = "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\n"


@pytest.fixture(name="contexts")
def _contexts(run):
    """Two live clusters, eu and us, each with the workload and a policy of its own."""
    with FakeApi(tls=False) as eu, FakeApi(tls=False) as us:
        for api, ceiling in ((eu, "deny"), (us, "audit")):
            made = deployment(selector="wrong")
            api.put("namespaces", "shop")
            api.put("deployments", "web", "shop", spec=made["spec"])
            labels = {"app.kubernetes.io/component": "webhook", "helm.sh/chart": "evenspread-0.1.0"}
            data = {"policy.yaml": f"{HEAD}ceiling: {ceiling}\n"}
            api.put("configmaps", "evenspread-webhook", "spread", metadata={"labels": labels}, data=data)
        clusters = {"eu": eu.url, "us": us.url, "down": "http://127.0.0.1:9"}
        file = kubeconfig(
            {
                "clusters": [{"name": name, "cluster": {"server": url}} for name, url in clusters.items()],
                "users": [{"name": "u", "user": {"token": "first"}}],
                "contexts": [{"name": name, "context": {"cluster": name, "user": "u"}} for name in clusters],
                "current-context": "eu",
            }
        )
        yield lambda *names, more=(): run(
            "audit", "--kubeconfig", file, *(f"--context={name}" for name in names), *RULES, *more
        )


class TestContexts:
    def test_each_has_its_own_policy(self, contexts):
        code, out, err = contexts("eu", "us", more=("-o", "json"))
        modes = {entry["cluster"]: entry["mode"] for entry in entries(out, "selector-not-self")}
        assert (code, modes) == (1, {"eu": "warn", "us": "audit"})
        assert err.splitlines() == [
            "cluster eu: policy of ConfigMap spread/evenspread-webhook",
            "cluster us: policy of ConfigMap spread/evenspread-webhook",
        ]

    def test_one_that_is_down_costs_its_own_column(self, contexts):
        code, out, err = contexts("down", "us", more=("--summary",))
        assert code == 4
        assert "\ndown was not read: http://127.0.0.1:9: " in out
        assert "\nDeployment shop/web " in out
        assert err.splitlines()[0].startswith("evenspread: down: http://127.0.0.1:9: ")

    def test_one_that_no_kubeconfig_knows(self, contexts):
        code, out, _ = contexts("us", "eo", more=("--summary",))
        assert (code, "\neo was not read: kubeconfig: no context eo: " in out) == (4, True)

    def test_the_same_twice_is_one_cluster(self, contexts):
        code, out, _ = contexts("us", "us", more=("-o", "json"))
        assert (code, entries(out, "fleet-cluster")) == (0, [])

    @pytest.mark.parametrize("names", [("eu",), ("eu", "us")])
    def test_files_are_of_another_cluster(self, contexts, names):
        code, _, err = contexts(*names, more=("x.jsonl",))
        assert (code, "files and a live cluster exclude each other" in err) == (2, True)


# -- what does not fit on a page


def state(cluster, high=1, **more):
    found = SeverityCounts(high=high, medium=0, low=0)
    made = WorkloadInCluster(cluster=cluster, findings=found, rules=(), pending={}, above_max_skew=0)
    return structs.replace(made, **more)


def cluster(name):
    return FleetCluster(
        rule="fleet-cluster",
        cluster=name,
        nodes=1,
        pods=1,
        workloads=1,
        findings=SeverityCounts(high=1, medium=0, low=0),
        would_deny=0,
        pending={},
        above_max_skew=0,
    )


def page(names, workloads):
    made = [FleetWorkload(rule="fleet-workload", workload=name, differs=False, clusters=own) for name, own in workloads]
    fleet = Fleet(audits=(), clusters=tuple(map(cluster, names)), workloads=tuple(made))
    return "".join(render(fleet)).splitlines()


def test_the_table_has_the_worst_rows_and_columns():
    names = [f"c{number}" for number in range(9)]
    lines = page(names, [(f"w{number:02}", (state("c0"),)) for number in range(21)])
    first = next(number for number, line in enumerate(lines) if line.startswith("WORST WORKLOADS"))
    assert lines[first].split()[-1] == "c7"
    assert lines[first + 20].startswith("w19 ")
    assert lines[first + 21 :] == ["and 1 workload and 1 cluster more; -o json has all"]


def test_pods_stand_beside_the_findings():
    own = (state("c0", pending={"spread": 2, "capacity": 1}), state("c1", above_max_skew=1))
    assert page(["c0", "c1"], [("w", own)])[-1].split("  ")[-2:] == [" 1/0/0, 3 Pending", "1/0/0, above maxSkew"]


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        pytest.param(("s/eu.jsonl.gz", "s/us.json"), ["eu", "us"], id="without folder and ending"),
        pytest.param(
            ("a/prod.jsonl", "b/prod.jsonl"), ["a/prod.jsonl", "b/prod.jsonl"], id="as given, to tell them apart"
        ),
        pytest.param(("gke_p_eu", "arn:aws:eks:eu:1:cluster/x"), ["gke_p_eu", "x"], id="contexts"),
    ],
)
def test_names(names, shown):
    assert [line.split()[0] for line in page(names, ())[3:5]] == shown
