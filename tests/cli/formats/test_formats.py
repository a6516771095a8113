import json
import re
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

from webhook.cli.commands.webhook.example import CLUSTER

ROOT = Path(__file__).parents[3]
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
RULES = tuple(
    part
    for rule in ("topology-key-typo", "label-selector", "unknown-field", "topology-key-unknown")
    for part in ("--rule", rule)
)


@pytest.fixture
def rendered(run, tmp_path):
    (tmp_path / "a b.yaml").write_text(MANIFEST + "---\napiVersion: v1\nkind: X\nx: [\n")

    def rendered(output):
        code, out, err = run("check", "a b.yaml", "-o", output, *RULES)
        assert code == 3
        assert err == "a b.yaml:22:1: error: not YAML: did not find expected node content while parsing a flow node\n"
        return out

    return rendered


def test_json(rendered):
    entries = json.loads(rendered("json"))
    unknown, exempted, finding, gap = entries
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
        "fix": "set labelSelector: {matchLabels: {app: web}}",
        "url": "https://evenspread.io/rules/label-selector",
    }
    assert finding["message"].startswith(
        'spec.topologySpreadConstraints[0].labelSelector.matchLabels: Invalid value: "<old>": a valid label must be'
    )
    assert (exempted["rule"], exempted["waived"]) == ("topology-key-typo", "exempted by evenspread.io/exempt")
    assert unknown == {
        "file": "a b.yaml",
        "line": 10,
        "column": 5,
        "object": {"apiVersion": "v1", "kind": "Pod", "namespace": "", "name": "a"},
        "rule": "unknown-field",
        "mode": "warn",
        "severity": "high",
        "path": "spec.topologySpreadConstraints[0].maxscew",
        "message": 'unknown field "spec.topologySpreadConstraints[0].maxscew": '
        "kube-apiserver drops it, and kubectl refuses the object",
        "fix": "remove maxscew",
        "url": "https://evenspread.io/rules/unknown-field",
    }
    assert gap == {"rule": "topology-key-unknown", "notEvaluated": "no cluster", "objects": 1}


def test_sarif(rendered):
    [run] = json.loads(rendered("sarif"))["runs"]
    rules = run["tool"]["driver"]["rules"]
    unknown, exempted, finding = run["results"]
    assert (unknown["ruleId"], unknown["level"]) == ("unknown-field", "error")
    assert rules[finding["ruleIndex"]]["id"] == finding["ruleId"] == "label-selector"
    assert {rule["id"]: rule["helpUri"] for rule in rules} == {
        name: f"https://evenspread.io/rules/{name}" for name in ("label-selector", "unknown-field", "topology-key-typo")
    }
    [location] = finding["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b.yaml"},
        "region": {"startLine": 13, "startColumn": 21, "endColumn": 48},
    }
    assert finding["level"] == "error"
    assert exempted["suppressions"] == [{"kind": "external", "justification": "exempted by evenspread.io/exempt"}]
    assert len(finding["partialFingerprints"]["evenspread/v2"]) == 32
    [invocation] = run["invocations"]
    assert invocation["executionSuccessful"] is False
    [fault] = invocation["toolExecutionNotifications"]
    assert fault["locations"][0]["physicalLocation"]["region"] == {"startLine": 22, "startColumn": 1}


def test_a_finding_is_the_same_in_sarif_gitlab_and_a_baseline(run, tmp_path):
    """Also with lines added above it, in a file of another name."""
    keys = set()
    for name, above in (("a.yaml", ""), ("b.yaml", "# one more line\n")):
        (tmp_path / name).write_text(above + MANIFEST)
        command = ("check", name, "--rule", "label-selector")
        [result] = json.loads(run(*command, "-o", "sarif")[1])["runs"][0]["results"]
        [entry] = json.loads(run(*command, "-o", "gitlab")[1])
        run(*command, "--write-baseline", "base.json")
        [known] = json.loads((tmp_path / "base.json").read_text())["findings"]
        keys |= {result["partialFingerprints"]["evenspread/v2"], entry["fingerprint"], known["key"]}
    assert len(keys) == 1


def test_gitlab(rendered):
    unreadable, unknown, finding = json.loads(rendered("gitlab"))
    assert unreadable == {
        "description": "unreadable: not YAML: did not find expected node content while parsing a flow node",
        "check_name": "unreadable",
        "fingerprint": unreadable["fingerprint"],
        "severity": "blocker",
        "location": {"path": "a b.yaml", "lines": {"begin": 22}},
    }
    assert unknown == {
        "description": 'Pod a: unknown field "spec.topologySpreadConstraints[0].maxscew": '
        "kube-apiserver drops it, and kubectl refuses the object; fix: remove maxscew; "
        "see https://evenspread.io/rules/unknown-field",
        "check_name": "unknown-field",
        "fingerprint": unknown["fingerprint"],
        "severity": "critical",
        "location": {"path": "a b.yaml", "lines": {"begin": 10}},
    }
    assert (finding["check_name"], finding["location"]["lines"]) == ("label-selector", {"begin": 13})


def test_gitlab_shows_equal_findings_of_two_files(run, tmp_path):
    (tmp_path / "apps").mkdir()
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / "apps" / name).write_text(MANIFEST)
    entries = json.loads(run("check", "./apps", "-o", "gitlab", "--rule", "label-selector")[1])
    key = entries[0]["fingerprint"]
    assert [(entry["fingerprint"], entry["location"]["path"]) for entry in entries] == [
        (key, "apps/a.yaml"),
        (f"{key}-2", "apps/b.yaml"),
    ]


@pytest.mark.parametrize("output", ["github", "gitlab", "sarif"])
def test_a_finding_in_piped_output_of_helm_is_in_the_template(run, output):
    text = f"# Source: shop/templates/pod.yaml\n{MANIFEST}"
    _, out, _ = run("check", "-", "-o", output, "--rule", "label-selector", stdin=text.encode())
    shown = {
        "github": "::error file=shop/templates/pod.yaml,title=",
        "gitlab": '"path": "shop/templates/pod.yaml",\n      "lines": {\n        "begin": 1\n',
        "sarif": '"uri": "shop/templates/pod.yaml"',
    }
    assert shown[output] in out
    assert '"region"' not in out, "the line is one of the rendered text"


@pytest.mark.parametrize(
    ("pods", "last"),
    [
        pytest.param(5, "5 findings (5 high)", id="a screen"),
        pytest.param(
            6,
            "start with --rule max-skew (6 findings); --fix prints fixes, --write-baseline FILE accepts findings",
            id="more than a screen",
        ),
    ],
)
def test_many_findings_end_with_the_first_step(run, pods, last):
    text = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  topologySpreadConstraints:
  - {maxSkew: 0, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}
"""
    _, out, _ = run("check", "-", "--rule", "max-skew", stdin="---\n".join([text] * pods).encode())
    assert out.rstrip("\n").endswith(last)


def test_more_findings_of_a_lower_severity_are_not_the_first_step(run):
    text = """\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  topologySpreadConstraints:
  - maxSkew: MAX
    topologyKey: failure-domain.beta.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: {matchLabels: {app: web}}
"""
    pods = [text.replace("MAX", "1")] * 4 + [text.replace("MAX", "0")] * 2
    _, out, _ = run(
        "check", "-", "--rule", "max-skew", "--rule", "topology-key-deprecated", stdin="---\n".join(pods).encode()
    )
    assert out.count(" low topology-key-deprecated ") > 2
    assert "\nstart with --rule max-skew (2 findings); " in out


def test_gitlab_shows_each_of_two_equal_faults(run):
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: 1}\nspec: {}\n"
    entries = json.loads(run("check", "-", "-o", "gitlab", stdin=f"{pod}---\n{pod}".encode())[1])
    assert len({entry["fingerprint"] for entry in entries}) == len(entries) == 2


def test_junit(rendered):
    root = ET.fromstring(rendered("junit"))  # noqa: S314 our own text
    assert root[0].attrib == {"name": "evenspread", "tests": "5", "failures": "2", "errors": "1", "skipped": "1"}
    cases = {case.get("name"): [child.tag for child in case] for case in root.iter("testcase")}
    assert cases == {
        "Pod clean": [],
        "Pod a unknown-field": ["failure"],
        "Pod a label-selector": ["failure"],
        "Pod a topology-key-typo": ["skipped"],
        "readable": ["error"],
    }
    [not_evaluated] = [each.text for each in root.iter("system-out")]
    assert not_evaluated.startswith("topology-key-unknown: not evaluated, ")


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
    assert ET.fromstring(out)[0].attrib == {"name": "evenspread", **tests}  # noqa: S314 our own text


def test_github(rendered):
    lines = rendered("github").splitlines()
    assert [line.partition(",title")[0] for line in lines] == [
        "::error file=a b.yaml,line=22,col=1",
        "::error file=a b.yaml,line=10,col=5",
        "::error file=a b.yaml,line=13,col=21",
    ]


@pytest.mark.parametrize("output", ["text", "json", "github", "gitlab", "sarif", "junit"])
def test_every_finding_links_to_its_rule(run, tmp_path, output):
    head = "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\n"
    (tmp_path / "policy.yaml").write_text(f"{head}messages: {{docsURL: 'https://rules.example/'}}\n")
    arguments = ("check", "-", "-o", output, "--rule", "label-selector")
    for options, base in (((), "https://evenspread.io/rules"), (("--config", "policy.yaml"), "https://rules.example")):
        _, out, _ = run(*arguments, *options, stdin=MANIFEST.encode())
        assert re.findall(r"https://[^\s\"<]*/label-selector\b", out) == [f"{base}/label-selector"]


def test_github_shows_no_control_characters_of_a_files_name(run, tmp_path):
    (tmp_path / "a\033[2J\r\n\u202e.yaml").write_text(MANIFEST)
    _, out, _ = run("check", ".", "-o", "github", *RULES)
    assert {line.partition(",")[0] for line in out.splitlines()} == {"::error file=./a [2J%0D%0A .yaml"}


def test_text(rendered):
    out = rendered("text")
    assert "a b.yaml:11:5: topology-key-typo Pod a: exempted by evenspread.io/exempt\n" in out
    assert out.endswith(
        "1 file, 2 objects, 2 workloads: 2 findings (2 high), 1 exempted\n"
        "1 rule not evaluated: without a cluster (add --cluster or --snapshot); -v lists it\n"
        "results are incomplete: 1 error in the input, see above\n"
    )
    heads = [line for line in out.splitlines() if line.startswith("a b.yaml")]
    assert heads == [
        "a b.yaml:10:5: high unknown-field (kubectl refuses it)",
        "a b.yaml:11:5: topology-key-typo Pod a: exempted by evenspread.io/exempt",
        "a b.yaml:13:21: high label-selector (kube-apiserver refuses it)",
    ]


def test_text_names_the_rules_that_could_not_look_if_asked(run):
    arguments = (
        "check",
        "-",
        "--rule",
        "topology-key-unknown",
        "--rule",
        "group-cap",
        "--rule",
        "topology-key-partial",
    )
    manifest = f"""\
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db}}
spec:
  replicas: 3
  template: {json.dumps({"spec": yaml.safe_load(MANIFEST.split("---", maxsplit=1)[0])["spec"]})}
"""
    _, brief, _ = run(*arguments, stdin=manifest.encode())
    assert (
        brief.splitlines()[-1]
        == "3 rules not evaluated: without a cluster (add --cluster or --snapshot); -v lists them"
    )
    _, long, _ = run(*arguments, "-v", stdin=manifest.encode())
    rules = "group-cap, topology-key-partial, topology-key-unknown"
    assert long.splitlines()[-1] == f"not evaluated, without a cluster (add --cluster or --snapshot): {rules}"


@pytest.mark.parametrize(
    ("kind", "ceiling", "heads"),
    [
        pytest.param(
            "Deployment",
            "warn",
            {
                "max-skew": "kube-apiserver refuses it",
                "unknown-field": "kubectl refuses it",
                "selector-not-self": "the webhook warns",
                "system-defaults-lost": "the webhook only records it",
            },
            id="as installed",
        ),
        pytest.param(
            "Rollout",
            "deny",
            {
                "max-skew": "the webhook denies it",
                "unknown-field": "the webhook does not review it",
                "selector-not-self": "the webhook warns",
                "system-defaults-lost": "the webhook only records it",
            },
            id="denying",
        ),
        pytest.param(
            "Rollout",
            "audit",
            {
                "max-skew": "the webhook only records it",
                "unknown-field": "the webhook does not review it",
                "selector-not-self": "the webhook only records it",
                "system-defaults-lost": "the webhook only records it",
            },
            id="observing",
        ),
    ],
)
def test_who_acts_on_a_finding(run, kind, ceiling, heads):
    constraint = {
        "maxSkew": 0,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "old"}},
        "weight": 1,
    }
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"topologySpreadConstraints": [constraint]}}
    manifest = {
        "apiVersion": "apps/v1" if kind == "Deployment" else "argoproj.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    _, out, _ = run("check", "-", "--level", "audit", "--ceiling", ceiling, stdin=json.dumps(manifest).encode())
    assert dict(re.findall(r"^<stdin>:\S+ \w+ (\S+) \((.*)\)$", out, re.MULTILINE)) == heads


@pytest.mark.parametrize(
    ("unknown", "place", "fix"),
    [
        pytest.param(
            "spec:\n  topologySpreadConstraint: []\n", "4:3", "topologySpreadConstraints: []", id="misspelt as a whole"
        ),
        pytest.param(
            "spec:\n  TopologySpreadConstraints:\n  - topologyKey: topology.kubernetes.io/zone\n    maxSkew: 1\n"
            "    whenUnsatisfiable: ScheduleAnyway\n",
            "4:3",
            "rename TopologySpreadConstraints to topologySpreadConstraints; then selector-null: ",
            id="in another case, and long",
        ),
        pytest.param(
            "spec:\n  topologySpreadConstraints:\n  - labelSelector:\n      matchLabel: {a: b}\n",
            "6:7",
            "set matchLabels: {a: b}; then selector-not-self: ",
            id="in the selector",
        ),
    ],
)
def test_unknown_fields(run, unknown, place, fix):
    stdin = f"apiVersion: v1\nkind: Pod\n{unknown}".encode()
    code, out, _ = run("check", "-", "--rule", "unknown-field", stdin=stdin)
    assert code == 1
    assert out.startswith(f"<stdin>:{place}: high unknown-field (kubectl refuses it)\n")
    assert f"\n  fix: {fix}" in out
    assert run("check", "-", "--rule", "unknown-field", "--fail-on", "never", stdin=stdin)[0] == 0
    as_custom = stdin.replace(b"v1\nkind: Pod", b"example.com/v1\nkind: Thing")
    assert run("check", "-", "--rule", "unknown-field", stdin=as_custom)[0] == 0


STANDING = {"spread-drift", "spread-infeasible"}


def test_report(rendered):
    [document] = yaml.safe_load_all(rendered("report"))
    unknown, exempted, finding = document["results"]
    assert (unknown["rule"], unknown["result"]) == ("unknown-field", "warn")
    assert (document["kind"], document["scope"]) == ("Report", {"apiVersion": "v1", "kind": "Pod", "name": "a"})
    assert document["summary"] == {"fail": 0, "warn": 2, "skip": 1}
    assert (exempted["rule"], exempted["result"]) == ("topology-key-typo", "skip")
    assert (finding["rule"], finding["result"]) == ("label-selector", "warn")


@pytest.mark.parametrize(
    ("arguments", "api_version", "kind"),
    [
        ((), "openreports.io/v1alpha1", "Report"),
        (("--report-api", "wgpolicyk8s.io/v1alpha2"), "wgpolicyk8s.io/v1alpha2", "PolicyReport"),
    ],
)
@pytest.mark.slow
def test_report_of_a_cluster(run, arguments, api_version, kind):
    code, out, err = run("audit", str(CLUSTER), "-o", "report", *arguments)
    documents = [*yaml.safe_load_all(out)]
    _, listed, _ = run("audit", str(CLUSTER), "-o", "json")
    objects = [entry["object"] for entry in json.loads(listed) if "object" in entry]
    standing = [one for each in documents for one in each["results"] if one["policy"] in STANDING]
    assert (code, err) == (1, "")
    assert {(each["apiVersion"], each["kind"]) for each in documents} == {(api_version, kind)}
    found = [each["scope"]["name"] for each in documents if {one["policy"] for one in each["results"]} - STANDING]
    assert found == [*dict.fromkeys(each["name"] for each in objects)]
    assert sum(sum(each["summary"].values()) for each in documents) == len(objects) + len(standing)
    assert {one["policy"] for one in standing} == STANDING
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
