"""Constraints in the texts of ConfigMaps and Secrets."""

import json

import pytest
import yaml

ITEM = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
SPEC = {"spec": {"topologySpreadConstraints": [ITEM]}}
SAID = (
    "{} has topologySpreadConstraints in the text of its {}, which was not looked at: "
    "check what stands in a.yaml as a file of its own"
)


def carrier(text, kind="ConfigMap", field="data"):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, field: {"a.yaml": text}}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(yaml.safe_dump(SPEC), id="YAML"),
        pytest.param(json.dumps(SPEC), id="JSON"),
        pytest.param(json.dumps(SPEC, indent=2), id="JSON in lines"),
        pytest.param("topologySpreadConstraints: # two\n# of them\n- maxSkew: 1\n", id="comments"),
        pytest.param("topologySpreadConstraints: [{maxSkew: 1}]", id="flow style"),
        pytest.param("spec:\n  topologySpreadConstraints:\n{{ toYaml .Values.spread }}\n", id="a template"),
        pytest.param("- topologySpreadConstraints:\n  - maxSkew: 1\n", id="in an item"),
    ],
)
@pytest.mark.parametrize(("kind", "field"), [("ConfigMap", "data"), ("Secret", "stringData")])
@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump], ids=["as JSON", "as YAML"])
def test_a_note_where_constraints_stand_in_a_text(run, text, kind, field, write):
    code, out, err = run("check", "-", stdin=write(carrier(text, kind, field)).encode())
    said = SAID.format(f"{kind} a", field)
    assert (code, out, err.partition("note: ")[2].splitlines()[0]) == (
        0,
        "1 file, 1 object, 0 workloads: no findings\n",
        said,
    )


def test_where_the_note_stands(run, tmp_path):
    (tmp_path / "cm.yaml").write_text(yaml.safe_dump({**carrier(yaml.safe_dump(SPEC)), "data2": 1}))
    assert run("check", "cm.yaml")[2].startswith("cm.yaml:3:3: note: ConfigMap a has ")


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(carrier("# topologySpreadConstraints:\n# - maxSkew: 1\n"), id="a comment"),
        pytest.param(carrier("topologySpreadConstraints: are a list\n"), id="prose"),
        pytest.param(carrier("topologySpreadConstraints: []\n"), id="an empty list"),
        pytest.param(carrier("topologySpreadConstraints:\nnodeSelector: {}\n"), id="nothing"),
        pytest.param(carrier("a: 1\n"), id="another text"),
        pytest.param(carrier(yaml.safe_dump(SPEC), "Secret"), id="base64"),
        pytest.param({**carrier(""), "data": ["topologySpreadConstraints: [{"]}, id="no mapping"),
        pytest.param({**carrier(""), "data": {"a": 1, "topologySpreadConstraints": None}}, id="no text"),
        pytest.param({**carrier(yaml.safe_dump(SPEC)), "apiVersion": "a.io/v1"}, id="another API"),
    ],
)
@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump], ids=["as JSON", "as YAML"])
def test_no_note_elsewhere(run, value, write):
    assert "in the text of its" not in run("check", "-", stdin=write(value).encode())[2]
