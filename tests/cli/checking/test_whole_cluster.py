"""A kind that is not known makes the rules that need it say so: none of them passes, or speaks, for want of it."""

import json
from pathlib import Path

import pytest

from webhook.cli.checking.whole_cluster import examine_cluster
from webhook.cli.formats.json import as_values
from webhook.cli.frame import Frame
from webhook.cluster.resources import BUILT_IN_RESOURCES
from webhook.core.policy.policy import Policy
from webhook.manifests.reading.files import File

CLUSTER = Path(__file__).parents[3] / "webhook" / "example" / "cluster.jsonl"
OBJECTS = [json.loads(line) for line in CLUSTER.read_text().splitlines()][1:]
KINDS = {resource.kind: resource.name for resource in BUILT_IN_RESOURCES}

# What is said in another way and is still true. Without nodes a misspelt key is one by its letters alone, a deprecated
# one is only deprecated, and nobody knows whether pods of others change a verdict; a Namespace's label is a ceiling.
OTHERWISE = {
    "Node": {"topology-key-typo", "topology-key-deprecated", "selector-too-wide"},
    "Namespace": {"selector-empty"},
}


def looked(without=""):
    """What each rule said of each workload, and which rules lacked the kind."""
    missing = {KINDS[without]: "403 Forbidden"} if without else {}
    left = [each for each in OBJECTS if each["kind"] != without]
    header = {"kind": "Snapshot", "missing": missing}
    lines = "\n".join(json.dumps(each) for each in (header, *left))
    entries = as_values(examine_cluster([File("x", lines.encode())], Frame(policy=Policy(), today="2026-01-01")))
    said = {
        (each["object"]["kind"], each["object"]["name"], each["rule"], each["path"]): (each["mode"], each["message"])
        for each in entries
        if "message" in each
    }
    return said, {each["rule"] for each in entries if "notEvaluated" in each and "403" in each["notEvaluated"]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sampled
def test_no_rule_answers_for_want_of_a_kind(kind):
    whole, _ = looked()
    partial, unable = looked(kind)
    gone = {(each["kind"], each["metadata"]["name"]) for each in OBJECTS if each["kind"] == kind}
    silent = {key for key in whole if key not in partial and key[2] not in unable and key[:2] not in gone}
    other = {key for key, said in partial.items() if key[2] not in unable and whole.get(key) != said}
    assert silent == set()
    # Of a controller that is not there, its ReplicaSets and pods are looked at.
    assert {key[2] for key in other if key[0] not in {"Pod", "ReplicaSet"}} == OTHERWISE.get(kind, set())
