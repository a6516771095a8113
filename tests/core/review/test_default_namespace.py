"""A manifest without a namespace is examined in the namespace `default`, as kubectl would create it there."""

import json
from pathlib import Path

import pytest
from msgspec import Raw

from webhook.core.api.types import TypeMeta
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.readers import decode_object
from webhook.core.policy.policy import Policy
from webhook.core.review.examination import examine

CLUSTER = Path(__file__).parents[3] / "webhook" / "example" / "cluster.jsonl"
OBJECTS = [json.loads(line) for line in CLUSTER.read_text().splitlines()][1:]
SCALED = {"Deployment", "StatefulSet"}
NAMESPACES = sorted(
    {each["metadata"]["namespace"] for each in OBJECTS if each["kind"] in SCALED} - {"kube-system"}
)  # no finding there


def renamed(namespace):
    """The objects of the example cluster, with this namespace as `default`."""
    text = json.dumps(OBJECTS).replace(f'"namespace": "{namespace}"', '"namespace": "default"')
    return [each for each in json.loads(text) if each["metadata"].get("namespace", "default") == "default"]


def found(value, index):
    context = Context(policy=Policy(), index=index, version=RECORDED)
    return [(each.finding.rule, each.finding.path, each.finding.summary) for each in examine(value, context).findings]


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_it_is_as_if_written(namespace):
    index, objects = ClusterIndex(), renamed(namespace)
    for value in objects:
        kind = TypeMeta(api_version=value["apiVersion"], kind=value["kind"])
        index.apply("ADDED", decode_object(Raw(json.dumps(value).encode()), kind))
    written = [each for each in objects if each["kind"] in SCALED]
    silent = [{**each, "metadata": {**each["metadata"], "namespace": ""}} for each in written]
    expected = [found(each, index) for each in written]
    assert any(expected)
    assert [found(each, index) for each in silent] == expected
