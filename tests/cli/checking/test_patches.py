"""Patches of a kustomization: what they say is judged, what they leave to their base is not."""

import json

import pytest

HEAD = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
SPEC = HEAD + "spec:\n  template:\n    spec:\n      topologySpreadConstraints:\n"
MERGE = "      - {topologyKey: topology.kubernetes.io/zone, %s}\n"
NAMED = "patches: [{path: patch.yaml}]\n"


@pytest.fixture
def rules(run, tmp_path):
    """The rules of the findings about a patch."""

    def rules(text, kustomization=NAMED, *arguments):
        (tmp_path / "kustomization.yaml").write_text(kustomization)
        (tmp_path / "patch.yaml").write_text(text)
        code, out, err = run("check", "patch.yaml", "-o", "json", *arguments)
        assert code in {0, 1}, err
        return [row["rule"] for row in json.loads(out) if "severity" in row]

    return rules


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param("maxSkew: 0", ["max-skew"], id="a wrong number"),
        pytest.param("maxSkew: 2", [], id="a number alone"),
        pytest.param("maxSkew: one", ["wrong-type"], id="a text"),
        pytest.param("whenUnsatisfiable: Maybe", ["when-unsatisfiable"], id="a wrong value"),
        pytest.param("whenUnsatisfiable: ScheduleAnyway", [], id="a right value"),
        pytest.param("minDomains: 2", [], id="the base says whether it is hard"),
        pytest.param("minDomains: 0", ["min-domains"], id="never right"),
        pytest.param("minDomains: null", [], id="a field that is deleted"),
        pytest.param("maxskew: 2", ["unknown-field"], id="a misspelt field"),
        pytest.param("labelSelector: {matchLabels: {app: web}}", [], id="labels of the base"),
        pytest.param("matchLabelKeys: [pod-template-hash]", [], id="a key beside the base's selector"),
        pytest.param("maxSkew: 0, $patch: delete", [], id="a constraint that is deleted"),
    ],
)
@pytest.mark.parametrize("name", ["patches: [{path: patch.yaml}]", "patchesStrategicMerge: [patch.yaml]"])
def test_a_merge_patch(rules, said, expected, name):
    assert rules(SPEC + MERGE % said, name) == expected


def test_the_same_object_as_a_resource(rules):
    assert "when-unsatisfiable" in rules(SPEC + MERGE % "maxSkew: 2", "resources: [patch.yaml]")


@pytest.mark.parametrize("kustomization", [NAMED, "resources: []"], ids=["named", "in reach of none"])
def test_a_deletion_is_left_alone(rules, run, tmp_path, kustomization):
    text = "$patch: delete\n" + SPEC + MERGE % "maxSkew: 0"
    assert rules(text, kustomization) == []
    run("check", "--fix", "--write", "patch.yaml")
    assert (tmp_path / "patch.yaml").read_text() == text


def test_a_fix_changes_the_value_alone(rules, run, tmp_path):
    text = SPEC + MERGE % "maxSkew: 0"
    rules(text)
    run("check", "--fix", "--write", "patch.yaml")
    assert (tmp_path / "patch.yaml").read_text() == text.replace("maxSkew: 0", "maxSkew: 1")
