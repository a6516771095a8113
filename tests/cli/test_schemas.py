"""The published schemas are those of the types, and the documents that the commands print fit them."""

import json

import jsonschema
import pytest
from cli import schemas

from webhook.cli.commands.webhook.example import CLUSTER, POLICY

WARNED = schemas.ROOT / "examples" / "warned.yaml"
EXAMPLE = ("--snapshot", str(CLUSTER), "--config", str(POLICY), "-o", "json")

GROUP = {
    "apiVersion": "evenspread.io/v1alpha1",
    "kind": "SpreadGroup",
    "metadata": {"name": "cache"},
    "spec": {
        "selector": {"matchLabels": {"app": "cache"}},
        "shard": {"label": "shard", "neverShare": "topology.kubernetes.io/zone"},
        "expected": {"shards": 3, "podsPerShard": 2},
        "caps": [{"topologyKey": "topology.kubernetes.io/zone", "lessThan": "1/2"}],
    },
}


def test_they_are_written_anew():
    assert schemas.PUBLISHED.read_text() == schemas.text(schemas.published()), "run make docs"
    written = json.loads(schemas.CONSOLE.read_text())
    assert schemas.CONSOLE.read_text() == schemas.text(schemas.console(written)), "run make docs"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        pytest.param("explain", ("--pending", "-A"), id="all that wait"),
        pytest.param("explain", ("deployment/ledger", "-n", "payments"), id="a workload"),
        pytest.param("simulate", ("deployment/ledger", "-n", "payments", "--replicas", "5"), id="replicas"),
        pytest.param(
            "simulate",
            ("--all", "-n", "shop", "--lose", "zone=eu-central-1b"),
            id="a zone that is lost",
            marks=pytest.mark.slow,
        ),
        pytest.param("plan", ("-", "-n", "shop"), id="a group"),
        pytest.param("skew", ("-A",), id="skews"),
        pytest.param("audit", (), id="a cluster"),
        pytest.param("check", (str(WARNED),), id="a manifest"),
    ],
)
def test_what_is_printed_fits(run, command, words):
    schema = schemas.published()
    validator = jsonschema.Draft202012Validator({**schema, "$ref": f"#/$defs/{command}"})
    _, out, err = run(command, *words, *EXAMPLE, stdin=json.dumps(GROUP).encode())
    documents = json.loads(out or "[]")
    assert documents, err
    for each in documents if isinstance(documents, list) else [documents]:
        validator.validate(each)


def test_a_document_without_a_promised_field_does_not_fit():
    schema = schemas.published()
    with pytest.raises(jsonschema.ValidationError, match="'verdict' is a required property"):
        jsonschema.validate({"message": "fits"}, {**schema, "$ref": "#/$defs/simulate"})
