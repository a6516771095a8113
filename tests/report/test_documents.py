import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.policy.policy import Mode
from webhook.core.review.judging import JudgedFinding
from webhook.core.rules.frame.rule import Finding, Severity
from webhook.report.documents import _MAX_REPORT_BYTES, _MAX_RESULTS, ReportApi, ReportContent, report, report_name

CRDS = Path(__file__).parents[1] / "e2e" / "testdata" / "crds"
SECONDS = 1_763_700_000


def strict(schema):
    """A schema that refuses unknown fields, as kubectl's strict validation does; metadata are the API server's."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: strict(each) for key, each in schema.items()}
    if isinstance(schema.get("properties"), dict):
        found.setdefault("additionalProperties", False)
        if "metadata" in schema["properties"]:
            found["properties"]["metadata"] = {"type": "object"}
    return found


def schema(file):
    [version] = yaml.safe_load((CRDS / file).read_text())["spec"]["versions"]
    return strict(version["schema"]["openAPIV3Schema"])


SCHEMAS = {
    ReportApi.OPEN_REPORTS: schema("openreports.io_reports.yaml"),
    ReportApi.POLICY_REPORTS: schema("wgpolicyk8s.io_policyreports.yaml"),
}


def judged(mode="warn", severity="high", waived="", **finding):
    told = {"rule": "selector-not-self", "path": "spec.x", "summary": "2 of 7", "key": "k"} | finding
    return JudgedFinding(
        finding=Finding(**told),
        severity=Severity(severity),
        mode=Mode(mode),
        configured=Mode(mode),
        waived=waived,
    )


def document(*findings, api=ReportApi.OPEN_REPORTS, seconds=SECONDS, **workload):
    told = {"api_version": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web", "uid": "c4a9"}
    made = report(ReportContent(findings=findings, **told | workload), api, seconds)
    jsonschema.validate(made, SCHEMAS[api])
    return made


FINDING = judged(
    "deny",
    path="spec.template.spec.topologySpreadConstraints[0].labelSelector",
    summary="zone[0] counts app=old",
    remedy="use app=web",
    fix="matchLabels: {app: web}",
    detail="it never balances",
)
OWNER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "c4a9"}
RESULT = {
    "source": "evenspread",
    "policy": "selector-not-self",
    "rule": "selector-not-self",
    "category": "Topology Spread",
    "severity": "high",
    "result": "fail",
    "scored": True,
    "message": "zone[0] counts app=old",
    "timestamp": {"seconds": SECONDS, "nanos": 0},
    "properties": {
        "path": "spec.template.spec.topologySpreadConstraints[0].labelSelector",
        "mode": "deny",
        "fix": "matchLabels: {app: web}",
        "detail": "it never balances",
        "resultID": "068053f4167b9714",
    },
}
METADATA = {
    "name": "deployment-web-b18d09e7",
    "namespace": "shop",
    "labels": {"app.kubernetes.io/managed-by": "evenspread"},
    "ownerReferences": [OWNER],
}


class TestDocument:
    def test_openreports(self):
        assert document(FINDING) == {
            "apiVersion": "openreports.io/v1alpha1",
            "kind": "Report",
            "metadata": METADATA,
            "source": "evenspread",
            "configuration": {"limits": {"maxResults": 64}},
            "scope": {**OWNER, "namespace": "shop"},
            "summary": {"fail": 1, "warn": 0, "skip": 0},
            "results": [RESULT],
        }

    def test_wgpolicyk8s(self):
        assert document(FINDING, api=ReportApi.POLICY_REPORTS) == {
            "apiVersion": "wgpolicyk8s.io/v1alpha2",
            "kind": "PolicyReport",
            "metadata": METADATA,
            "scope": {**OWNER, "namespace": "shop"},
            "summary": {"fail": 1, "warn": 0, "skip": 0},
            "results": [RESULT],
        }

    def test_from_a_manifest(self):
        made = document(FINDING, uid="", namespace="")
        assert "ownerReferences" not in made["metadata"]
        assert "namespace" not in made["metadata"]
        assert made["scope"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}

    @pytest.mark.parametrize(
        ("mode", "waived", "result", "scored"),
        [
            ("deny", "", "fail", True),
            ("warn", "", "warn", False),
            ("audit", "", "warn", False),
            ("audit", "exempted: chart pinned", "skip", False),
        ],
    )
    def test_result_by_mode(self, mode, waived, result, scored):
        made = document(judged(mode, waived=waived))
        [entry] = made["results"]
        assert (entry["result"], entry["scored"], entry["properties"]["mode"]) == (result, scored, mode)
        assert entry["properties"].get("exempted", "") == waived
        assert made["summary"] == {**dict.fromkeys(("fail", "warn", "skip"), 0), result: 1}

    def test_the_remedy_stands_in_where_there_is_no_fix(self):
        [entry] = document(judged(remedy="use app=web"))["results"]
        assert entry["properties"]["fix"] == "use app=web"


class TestBounds:
    @pytest.mark.parametrize(("count", "kept"), [(_MAX_RESULTS, _MAX_RESULTS), (_MAX_RESULTS + 12, _MAX_RESULTS)])
    def test_results_are_capped_and_the_rest_is_counted(self, count, kept):
        made = document(*(judged(key=str(number)) for number in range(count)))
        assert len(made["results"]) == kept
        assert made["summary"]["warn"] == count
        left_out = made["metadata"].get("annotations", {}).get("evenspread.io/results-left-out", "0")
        assert int(left_out) == count - kept

    def test_the_most_severe_stay(self):
        many = [judged(severity="low", key=str(number)) for number in range(_MAX_RESULTS)]
        made = document(*many, judged(severity="medium"), judged(severity="high"))
        assert [entry["severity"] for entry in made["results"][:3]] == ["high", "medium", "low"]

    def test_kubectl_apply_has_room_for_the_longest(self):
        long = judged(summary="🐙" * 9999, detail='"' * 9999, fix="\\" * 9999, path="é" * 9999, waived="ü" * 9999)
        made = document(*[long] * _MAX_RESULTS)
        assert 0 < len(made["results"]) < _MAX_RESULTS
        assert _MAX_REPORT_BYTES / 2 < len(json.dumps(made, ensure_ascii=False).encode()) < 256 * 1024
        assert len(made["results"][0]["message"]) == 1024

    def test_control_characters_are_gone(self):
        made = document(judged(summary="a\nb\x1b[31m"), name="web\n", uid="")
        assert made["results"][0]["message"] == "a b [31m"
        assert made["scope"]["name"] == "web "


class TestNames:
    @pytest.mark.parametrize(
        ("api_version", "kind", "name", "expected"),
        [
            ("apps/v1", "Deployment", "web", "deployment-web-"),
            ("v1", "Pod", "web.example.com", "pod-web-example-com-"),
            ("argoproj.io/v1alpha1", "Rollout", "w" * 253, "rollout-" + "w" * 46 + "-"),
            ("example.com/v1", "日本", "", ""),
        ],
    )
    def test_readable(self, api_version, kind, name, expected):
        assert re.fullmatch(re.escape(expected) + "[0-9a-f]{8}", report_name(api_version, kind, name))

    def test_the_version_of_the_api_does_not_count(self):
        assert report_name("apps/v1", "Deployment", "web") == report_name("apps/v1beta1", "Deployment", "web")

    def test_kinds_of_the_same_name_differ(self):
        names = {report_name(group, kind, "web") for group in ("a/v1", "b/v1") for kind in ("Job", "Pod")}
        assert len(names) == 4

    @given(st.text(), st.text(), st.text())
    def test_every_name_is_a_dns_label(self, api_version, kind, name):
        assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", report_name(api_version, kind, name))


class TestResultIds:
    def ids(self, *findings, **workload):
        return [entry["properties"]["resultID"] for entry in document(*findings, **workload)["results"]]

    def test_stay_when_numbers_change(self):
        before = self.ids(judged(summary="2 of 7 fit", path="spec.x[0]"))
        assert self.ids(judged(summary="3 of 7 fit", path="spec.x[1]"), uid="") == before

    def test_of_equal_findings_differ(self):
        assert len(set(self.ids(judged(), judged(), judged(rule="max-skew"), judged(key="", path="spec.y")))) == 4

    def test_of_workloads_differ(self):
        assert self.ids(judged()) != self.ids(judged(), namespace="other")
