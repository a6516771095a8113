"""SARIF, JUnit and GitLab reports are valid.

`tests/testdata/schemas/README.md` names the source of each schema.
"""

import json
from pathlib import Path

import pytest
from jsonschema import Draft4Validator, Draft202012Validator

from webhook.cli.commands.webhook.example import CLUSTER

SCHEMAS = Path(__file__).parents[2] / "testdata" / "schemas"
CONSTRAINT = """\
  - maxSkew: 1
    topologyKey: {}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: {{matchLabels: {{app: old}}}}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
  annotations: {evenspread.io/exempt: topology-key-typo}
  labels: {app: web}
spec:
  topologySpreadConstraints:
""" + CONSTRAINT.format("topology.kubernetes.io/hostname")
INPUTS = {
    "findings, an exempted one, and a clean object": POD + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: clean}\n",
    "nothing": "",
    "unreadable": "x: [",
    "findings and unreadable input": POD + "---\nx: [",
    "a name with markup": POD.replace("name: web", 'name: "<&\\" \\u202e\\ufffe"'),
    "rendered by Helm": f"# Source: shop/templates/pod.yaml\n{POD}",
}
# Source: docs.gitlab.com, Code Quality, report format. GitLab publishes a table, and no schema.
ENTRIES = {
    "type": "array",
    "items": {
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "minLength": 1},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": "^[^/.]"},
                    "lines": {"required": ["begin"], "properties": {"begin": {"type": "integer", "minimum": 1}}},
                },
            },
        },
    },
}
RUNS = [
    *(pytest.param(("check", "-", "--level", "audit"), text, id=name) for name, text in INPUTS.items()),
    pytest.param(("audit", "-"), CLUSTER.read_text(), id="a cluster"),
]


@pytest.fixture(scope="module")
def sarif():
    return Draft4Validator(json.loads((SCHEMAS / "sarif-2.1.0-rtm.5.json").read_text()))


@pytest.fixture(scope="module")
def junit():
    from xmlschema import XMLSchema  # noqa: PLC0415 slow to load

    return XMLSchema(SCHEMAS / "junit-10.xsd")


@pytest.mark.parametrize(("arguments", "text"), RUNS)
def test_sarif_is_valid(run, sarif, arguments, text):
    _, out, _ = run(*arguments, "-o", "sarif", stdin=text.encode())
    assert [error.message for error in sarif.iter_errors(json.loads(out))] == []


@pytest.mark.parametrize(("arguments", "text"), RUNS)
def test_junit_is_valid(run, junit, arguments, text):
    _, out, _ = run(*arguments, "-o", "junit", stdin=text.encode())
    assert [error.reason for error in junit.iter_errors(out)] == []


@pytest.mark.parametrize(("arguments", "text"), RUNS)
def test_gitlab_reads_every_entry(run, arguments, text):
    _, out, _ = run(*arguments, "-o", "gitlab", stdin=text.encode())
    entries = json.loads(out)
    assert [error.message for error in Draft202012Validator(ENTRIES).iter_errors(entries)] == []
    assert len({entry["fingerprint"] for entry in entries}) == len(entries)
