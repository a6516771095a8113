"""SpreadGroups in a real API server: what its definition takes and refuses, and the plan of one that is there."""

import subprocess

import pytest
from chart.rendered import objects
from e2e.objects import path, workload
from e2e.served import PROGRAM
from e2e.waiting import eventually

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUPS = "/apis/evenspread.io/v1alpha1/namespaces/{}/spreadgroups"
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SPEC = {
    "selector": {"matchLabels": {"app": "redis"}},
    "shard": {"label": "shard", "neverShare": ZONE},
    "expected": {"shards": 6, "podsPerShard": 3},
    "planFor": {"shards": 10},
    "requiredDomains": {"topologyKey": ZONE, "values": ["a", "b", "c"]},
    "caps": [
        {"topologyKey": ZONE, "lessThan": "1/2"},
        {"topologyKey": HOSTNAME, "atMost": 5},
        {"topologyKey": ZONE, "lessThan": "1/2", "selector": {"matchLabels": {"role": "master"}}, "enforce": "observe"},
    ],
    "delivery": "status",
}


@pytest.fixture(name="definition", scope="module")
def _definition(plane):
    (crd,) = [each for each in objects({"crds": {"install": True}}) if each["kind"] == "CustomResourceDefinition"]
    plane.api.request("POST", DEFINITIONS, crd)
    eventually(lambda: plane.api.send("GET", "/apis/evenspread.io/v1alpha1/spreadgroups").status == 200)
    stored = plane.api.request("GET", f"{DEFINITIONS}/spreadgroups.evenspread.io")
    yield {each["type"]: each for each in stored["status"]["conditions"]}
    plane.api.request("DELETE", f"{DEFINITIONS}/spreadgroups.evenspread.io")


def group(**changes):
    spec = {key: value for key, value in {**SPEC, **changes}.items() if value is not None}
    meta = {"name": "cache"}
    return {"apiVersion": "evenspread.io/v1alpha1", "kind": "SpreadGroup", "metadata": meta, "spec": spec}


def test_the_definition_has_no_faults(definition):
    assert definition["Established"]["status"] == "True"
    assert "NonStructuralSchema" not in definition


CAP = {"topologyKey": ZONE}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"selector": {}}, "must name labels; an empty selector takes every pod", id="every pod"),
        pytest.param({"planFor": {"shards": 5}}, "planFor.shards must not be less than expected.shards", id="planFor"),
        pytest.param({"caps": [CAP]}, "needs one of lessThan and atMost", id="no amount"),
        pytest.param({"caps": [CAP | {"atMost": 1, "lessThan": 2}]}, "needs one of lessThan and atMost", id="two"),
        pytest.param(
            {"caps": [CAP | {"lessThan": "half"}]}, "must be a number of pods from 1, or a share", id="a word"
        ),
        pytest.param(
            {"caps": [CAP | {"lessThan": "3/2"}]}, "must be a number of pods from 1, or a share", id="too many"
        ),
        pytest.param({"caps": [CAP | {"atMost": 0}]}, "must be a number of pods from 1, or a share", id="none"),
        pytest.param(
            {"caps": [CAP | {"atMost": 1, "selector": {"matchLabels": {"a": "b"}}}]},
            "pods of a selector of their own are observed only",
            id="a selector that is enforced",
        ),
        pytest.param(
            {"caps": [CAP | {"atMost": 1}, {"topologyKey": "example.com/rack", "atMost": 1}]},
            "caps are for kubernetes.io/hostname and one key besides",
            id="zones and racks",
        ),
        pytest.param({"expected": {"shards": 0, "podsPerShard": 2}}, "spec.expected.shards", id="no shard"),
        pytest.param({"delivery": "push"}, "spec.delivery", id="delivery"),
    ],
)
@pytest.mark.usefixtures("definition")
def test_what_is_refused(plane, namespace, changes, said):
    answer = plane.api.send("POST", GROUPS.format(namespace), group(**changes))
    assert answer.status == 422
    assert said in answer.message


@pytest.mark.usefixtures("definition")
def test_a_group_that_is_there_is_listed_and_planned(plane, kubectl, namespace):
    plane.api.request(
        "POST", GROUPS.format(namespace), group(requiredDomains=None, planFor=None, caps=SPEC["caps"][1:])
    )
    head, row = kubectl("get", "sg", "-n", namespace).out.splitlines()
    assert head.split() == ["NAME", "SHARDS", "PODS", "FITS", "CAPSHELD", "DELIVERED", "AGE"]
    assert row.split()[:3] == ["cache", "6", "3"]
    made = workload("StatefulSet", "redis-0")
    made["spec"]["template"]["metadata"]["labels"] |= {"app": "redis", "shard": "0"}
    made["spec"]["selector"] = {"matchLabels": {"app": "redis", "shard": "0"}}
    plane.api.request("POST", path("StatefulSet", namespace), made)
    command = [PROGRAM, "plan", "--kubeconfig", plane.admin, "-n", namespace]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.stdout.startswith("group cache: 6 shards of 3 pods, which share no zone; 18 pods\n"), ran.stderr
