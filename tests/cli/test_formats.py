import json
import re
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

from webhook.cli.example import CLUSTER
from webhook.cli.formats.as_text import Paint

ROOT = Path(__file__).parents[2]
MANIFEST = """\
apiVersion: v1
kind: Pod
metadata:
  name: a
  annotations: {evenspread.io/exempt: topology-key-typo}
  labels: {app: web}
spec:
  topologySpreadConstraints:
  - maxSkew: 1
    maxscew: 2
    topologyKey: topology.kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: {matchLabels: {app: "<old>"}}
---
apiVersion: v1
kind: Pod
metadata: {name: clean}
"""
RULES = ("--rule", "topology-key-typo", "--rule", "label-selector", "--rule", "topology-key-unknown")


@pytest.fixture
def rendered(run, tmp_path):
    (tmp_path / "a b.yaml").write_text(MANIFEST + "---\nx: [\n")

    def rendered(output):
        code, out, err = run("check", "a b.yaml", "-o", output, *RULES)
        assert code == 3
        assert err == "a b.yaml:20:1: error: not YAML: did not find expected node content while parsing a flow node\n"
        return out

    return rendered


def test_json(rendered):
    entries = json.loads(rendered("json"))
    exempted, finding, unknown, gap = entries
    assert finding == {
        "file": "a b.yaml",
        "line": 13,
        "column": 21,
        "object": {"apiVersion": "v1", "kind": "Pod", "namespace": "", "name": "a"},
        "rule": "label-selector",
        "mode": "warn",
        "severity": "high",
        "path": "spec.topologySpreadConstraints[0].labelSelector.matchLabels",
        "message": finding["message"],
        "fix": "labelSelector: {matchLabels: …} with valid label keys and values",
    }
    assert finding["message"].startswith(
        'spec.topologySpreadConstraints[0].labelSelector.matchLabels: Invalid value: "<old>": a valid label must be'
    )
    assert (exempted["rule"], exempted["waived"]) == ("topology-key-typo", "exempted by evenspread.io/exempt")
    assert (unknown["line"], unknown["fix"]) == (10, "maxSkew")
    assert unknown["warning"] == 'unknown field "spec.topologySpreadConstraints[0].maxscew"'
    assert gap == {"rule": "topology-key-unknown", "notEvaluated": "no cluster", "objects": 1}


def test_sarif(rendered):
    [run] = json.loads(rendered("sarif"))["runs"]
    rules = run["tool"]["driver"]["rules"]
    exempted, finding = run["results"]
    assert rules[finding["ruleIndex"]]["id"] == finding["ruleId"] == "label-selector"
    [location] = finding["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b.yaml"},
        "region": {"startLine": 13, "startColumn": 21, "endColumn": 48},
    }
    assert finding["level"] == "error"
    assert exempted["suppressions"] == [{"kind": "external", "justification": "exempted by evenspread.io/exempt"}]
    assert len(finding["partialFingerprints"]["evenspread/v1"]) == 32
    [invocation] = run["invocations"]
    assert invocation["executionSuccessful"] is False
    [fault] = invocation["toolExecutionNotifications"]
    assert fault["locations"][0]["physicalLocation"]["region"] == {"startLine": 20, "startColumn": 1}


def test_the_fingerprint_stays_where_lines_are_added(run, tmp_path):
    marks = set()
    for above in ("", "# one more line\n"):
        (tmp_path / "a.yaml").write_text(above + MANIFEST)
        _, out, _ = run("check", "a.yaml", "-o", "sarif", *RULES)
        marks.add(json.loads(out)["runs"][0]["results"][1]["partialFingerprints"]["evenspread/v1"])
    assert len(marks) == 1


def test_junit(rendered):
    root = ET.fromstring(rendered("junit"))  # noqa: S314 our own text
    assert root.attrib == {"tests": "5", "failures": "1", "errors": "1", "skipped": "2"}
    cases = {case.get("name"): [child.tag for child in case] for case in root.iter("testcase")}
    assert cases == {
        "Pod clean": [],
        "Pod a label-selector": ["failure"],
        "Pod a topology-key-typo": ["skipped"],
        "readable": ["error"],
        "topology-key-unknown": ["skipped"],
    }


@pytest.mark.parametrize(
    ("rules", "tests"),
    [
        (("topology-key-typo", "label-selector"), {"tests": "3", "failures": "1", "errors": "0", "skipped": "1"}),
        (("max-skew",), {"tests": "2", "failures": "0", "errors": "0", "skipped": "0"}),
    ],
)
def test_junit_counts_a_workload_as_passed_if_no_rule_that_was_asked_objects(run, rules, tests):
    options = [part for rule in rules for part in ("--rule", rule)]
    _, out, _ = run("check", "-", "-o", "junit", *options, stdin=MANIFEST.encode())
    assert ET.fromstring(out).attrib == tests  # noqa: S314 our own text


def test_github(rendered):
    lines = rendered("github").splitlines()
    assert [line.partition(",title")[0] for line in lines] == [
        "::error file=a b.yaml,line=20,col=1",
        "::error file=a b.yaml,line=13,col=21",
        "::warning file=a b.yaml,line=10,col=5",
    ]


def test_text(rendered):
    out = rendered("text")
    assert "a b.yaml:11:5: topology-key-typo Pod a: exempted by evenspread.io/exempt\n" in out
    assert out.endswith(
        "1 file, 2 objects, 2 workloads: 1 finding (1 high), 1 unknown field, 1 exempted\n"
        "1 rule not evaluated: no cluster, see --cluster and --snapshot (topology-key-unknown)\n"
        "1 fault in the input: see above; this answer has holes\n"
    )


def test_colours_only_where_allowed():
    assert Paint(color=True)("x", "1", "31") == "\033[1;31mx\033[0m"
    assert Paint(color=False)("x", "1", "31") == "x"
    assert Paint(color=True)("") == ""


@pytest.mark.parametrize(
    ("unknown", "place", "fix"),
    [
        pytest.param(
            "spec:\n  topologySpreadConstraint: []\n", "4:3", "topologySpreadConstraints", id="misspelt as a whole"
        ),
        pytest.param(
            "spec:\n  topologySpreadContraint: []\n", "4:3", "topologySpreadConstraints", id="two letters off"
        ),
        pytest.param(
            "spec:\n  TopologySpreadConstraints: []\n", "4:3", "topologySpreadConstraints", id="in another case"
        ),
        pytest.param("topologySpreadConstraints: []\n", "3:1", None, id="at the wrong place"),
        pytest.param(
            "spec:\n  topologySpreadConstraints:\n  - labelSelector:\n      matchLabel: {a: b}\n",
            "6:7",
            "matchLabels",
            id="in the selector",
        ),
    ],
)
def test_unknown_fields(run, unknown, place, fix):
    stdin = f"apiVersion: v1\nkind: Pod\n{unknown}".encode()
    code, out, _ = run("check", "-", "--rule", "topology-key-typo", stdin=stdin)
    assert code == 1
    assert out.startswith(f"<stdin>:{place}: warning kube-apiserver\n")
    assert (f"\n  fix: {fix}\n" in out) is (fix is not None)
    assert ("fix:" in out) is (fix is not None)
    as_custom = stdin.replace(b"v1\nkind: Pod", b"example.com/v1\nkind: Thing")
    assert run("check", "-", "--rule", "topology-key-typo", stdin=as_custom)[0] == 0


def test_report(rendered):
    [document] = yaml.safe_load_all(rendered("report"))
    exempted, finding = document["results"]
    assert (document["kind"], document["scope"]) == ("Report", {"apiVersion": "v1", "kind": "Pod", "name": "a"})
    assert document["summary"] == {"fail": 0, "warn": 1, "skip": 1}
    assert (exempted["rule"], exempted["result"]) == ("topology-key-typo", "skip")
    assert (finding["rule"], finding["result"]) == ("label-selector", "warn")


@pytest.mark.parametrize(
    ("arguments", "api_version", "kind"),
    [
        ((), "openreports.io/v1alpha1", "Report"),
        (("--report-api", "wgpolicyk8s.io/v1alpha2"), "wgpolicyk8s.io/v1alpha2", "PolicyReport"),
    ],
)
def test_report_of_a_cluster(run, arguments, api_version, kind):
    code, out, err = run("audit", str(CLUSTER), "-o", "report", *arguments)
    documents = [*yaml.safe_load_all(out)]
    _, listed, _ = run("audit", str(CLUSTER), "-o", "json")
    objects = [entry["object"] for entry in json.loads(listed) if "object" in entry]
    assert (code, err) == (1, "")
    assert {(each["apiVersion"], each["kind"]) for each in documents} == {(api_version, kind)}
    assert [each["scope"]["name"] for each in documents] == [*dict.fromkeys(each["name"] for each in objects)]
    assert sum(sum(each["summary"].values()) for each in documents) == len(objects)
    for each in documents:
        [owner] = each["metadata"]["ownerReferences"]
        assert {**owner, "namespace": each["metadata"]["namespace"]} == each["scope"]
        assert {abs(entry["timestamp"]["seconds"] - time.time()) < 60 for entry in each["results"]} == {True}


def test_the_page_shows_what_is_printed(run):
    page = (ROOT / "docs" / "reports.md").read_text()
    [shown] = re.findall(r"prints:\n\n```yaml\n(.*?)```", page, re.DOTALL)
    [command] = re.findall(r"`evenspread (audit webhook/\S+ .*?)`", page)
    _, out, _ = run(*command.replace("webhook/example/cluster.jsonl", str(CLUSTER)).split())
    assert re.sub(r"seconds: \d+", "", out) == re.sub(r"seconds: \d+", "", shown)
