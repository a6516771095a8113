"""Scheduling cases written by hand: minimal objects, single plugins, nodes to score, partial answers."""

import json

import pytest

from webhook.conformance.validate_cases import members
from webhook.conformance.vectors import compare_file
from webhook.conformance.verdict_cases import decide_verdict

ZONE = "topology.kubernetes.io/zone"


def node(name, zone=None):
    return {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name} | ({ZONE: zone} if zone else {})}}


NODES = [node("a", "z1"), node("b", "z2")]
SELECTOR = {"matchLabels": {"app": "web"}}
SKEWED = "node(s) didn't match pod topology spread constraints"


def constraint(action="DoNotSchedule", **more):
    return {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": action, "labelSelector": SELECTOR, **more}


def pod(*constraints, on=None, **meta):
    spec = {"topologySpreadConstraints": list(constraints)} | ({"nodeName": on} if on else {})
    return {"metadata": {"labels": {"app": "web"}, **meta}, "spec": spec}


def decided(**scenario):
    return decide_verdict(members(json.dumps({"id": "x", "nodes": NODES, "raw": True, **scenario}).encode()))


def test_pods_without_names_count_each():
    answer = decided(
        pod=pod(constraint()), pods=[pod(on="a"), pod(on="a"), pod(on="b", name="p"), pod(on="b", name="p")]
    )
    assert answer["spreadState"][0]["counts"] == {"z1": 2, "z2": 2}
    assert answer["nodes"]["a"] == {"code": "Unschedulable", "plugin": "NodeResourcesFit", "reasons": ["Too many pods"]}


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        pytest.param(
            {"plugin": "PodTopologySpread", "pod": pod(constraint())},
            {
                "alone": {
                    "plugin": "PodTopologySpread",
                    "preFilter": {"code": "Success"},
                    "nodes": {"a": {"code": "Success"}},
                }
            },
            id="one plugin alone",
        ),
        pytest.param(
            {"plugin": "NodePorts", "pod": pod()},
            {"alone": {"preFilter": {"code": "Skip"}, "nodes": {"b": {"code": "Success"}}}},
            id="a plugin with nothing to do",
        ),
        pytest.param(
            {"plugin": "Tides", "pod": pod()},
            {"alone": {"preFilter": {"code": "Error", "reasons": ["no such filter plugin"]}, "nodes": {}}},
            id="no such plugin",
        ),
        pytest.param(
            {"pod": pod(constraint("ScheduleAnyway")), "pods": [pod(on="a")], "feasible": ["a", "b", "gone"]},
            {"scores": {"a": 0, "b": 100}},
            id="nodes to score",
        ),
        pytest.param(
            {"pod": pod(constraint("ScheduleAnyway"))},
            {"scores": None, "fits": False},
            id="no node is feasible, none is scored",
        ),
        pytest.param(
            {"pod": pod(constraint())},
            {"fits": False, "message": "0/2 nodes are available: 2 Too many pods."},
            id="nothing allocatable",
        ),
        pytest.param({"pod": pod(), "nodes": []}, {"message": "no nodes available to schedule pods"}, id="no nodes"),
        pytest.param(
            {"pod": {"spec": 5}, "raw": False},
            {"nodes": None, "error": "json: cannot unmarshal number into Go struct field Pod.spec of type v1.PodSpec"},
            id="a pod that cannot be decoded",
        ),
        pytest.param(
            {"pod": pod(), "podTopologySpreadArgs": {"defaultingType": 5}},
            {"nodes": None},
            id="args that cannot be decoded",
        ),
        pytest.param(
            {
                "plugin": "DefaultSelector",
                "pod": pod(namespace="n"),
                "services": [
                    {"metadata": {"name": "t", "namespace": "n"}, "spec": {"selector": {"app": "web"}}},
                    {"metadata": {"name": "s", "namespace": "n"}, "spec": {"selector": {"app": "web", "x": None}}},
                    {"metadata": {"name": "u", "namespace": "n"}, "spec": {"selector": {"app": "web"}}},
                ],
            },
            {"defaultSelector": "app=web", "podServices": ["t", "u"]},
            id="the selector of defaults, and a null that Go reads as empty text",
        ),
        pytest.param(
            {"plugin": "DefaultSelector", "pod": pod()}, {"defaultSelector": "", "podServices": None}, id="no service"
        ),
        pytest.param(
            {
                "plugin": "PodTopologySpread",
                "pod": pod(),
                "services": [{"metadata": {"name": "s"}, "spec": {"selector": {"app": "web"}}}],
                "podTopologySpreadArgs": {
                    "defaultingType": "List",
                    "defaultConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}],
                },
                "pods": [pod(on="a")],
            },
            {"alone": {"nodes": {"a": {"code": "Unschedulable", "reasons": [SKEWED]}, "b": {"code": "Success"}}}},
            id="default constraints",
        ),
    ],
)
def test_answers(tmp_path, scenario, expected):
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps({"scenario": {"id": "x", "nodes": NODES, "raw": True} | scenario, "expected": expected}))
    (tally,) = compare_file(path)
    assert tally.first == ()


@pytest.mark.parametrize(
    ("candidates", "agrees"),
    [
        pytest.param(["b"], True, id="the feasible one"),
        pytest.param(["a", "b"], True, id="and more"),
        pytest.param(["a"], False, id="another"),
        pytest.param([], False, id="none"),
    ],
)
def test_feasible_nodes_must_be_among_the_candidates(tmp_path, candidates, agrees):
    roomy = [each | {"status": {"allocatable": {"pods": "9"}}} for each in NODES]
    scenario = {"id": "x", "raw": True, "nodes": roomy, "pod": pod(constraint()), "pods": [pod(on="a")]}
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps({"scenario": scenario, "expected": {"fits": True, "candidates": candidates}}))
    (tally,) = compare_file(path)
    assert [each.where for each in tally.first] == ([] if agrees else ["candidates"])


def test_a_client_may_leave_out_what_the_api_server_fills_in():
    host = {"name": "c", "image": "i", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1"}}}
    posted = {"metadata": {"name": "p"}, "spec": {"containers": [host], "hostNetwork": True}}
    there = {
        "metadata": {"name": "q"},
        "spec": {"nodeName": "a", "containers": [{"name": "c", "ports": [{"hostPort": 80}]}]},
    }
    roomy = [each | {"status": {"allocatable": {"pods": "9", "cpu": "500m"}}} for each in NODES]
    answer = decided(nodes=roomy, pod=posted, pods=[there], raw=False)
    assert {name: status["plugin"] for name, status in answer["nodes"].items()} == {
        "a": "NodePorts",
        "b": "NodeResourcesFit",
    }
    answer = decided(nodes=roomy, pod=posted, pods=[there])
    assert {status["code"] for status in answer["nodes"].values()} == {"Success"}
