"""The documents, against the schema that is shipped."""

import json
from pathlib import Path

import jsonschema
import pytest
from console.scans import EVERYTHING
from msgspec.structs import replace

import webhook.console

SCHEMA = json.loads((Path(webhook.console.__file__).parent / "api.schema.json").read_text())


def fits(document, name):
    jsonschema.Draft202012Validator({**SCHEMA, "oneOf": [{"$ref": f"#/$defs/{name}"}]}).validate(document)
    return document


def test_the_schema_is_one_and_is_served(browse):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert browse(EVERYTHING).get("/api/v1/schema.json").json == SCHEMA


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("overview", "overview"),
        ("workloads", "workloads"),
        ("workloads?only=pending&page=4", "workloads"),
        ("workload?kind=Deployment&namespace=payments&name=ledger", "workload"),
        ("workload?kind=StatefulSet&namespace=shop&name=search", "workload"),
        ("groups", "groups"),
        ("workload?kind=nix", "error"),
    ],
)
def test_each_document_has_its_shape(browse, path, name):
    fits(browse(EVERYTHING).get(f"/api/v1/{path}").json, name)


def test_before_the_first_scan_there_is_no_document(browse):
    answer = browse(replace(EVERYTHING, scan=None)).get("/api/v1/overview")
    assert answer.status_code == 503
    assert fits(answer.json, "error") == {"error": "the first scan of the cluster has not finished"}
