"""SpreadGroups in a real API server: what its definition takes and refuses, and the plan of one that is there."""

import json
import subprocess
from collections import Counter

import pytest
import yaml
from chart.rendered import objects
from e2e.injected import RECORD, create, running
from e2e.objects import path, workload
from e2e.served import NO_INSTALLATION, PROGRAM, serving
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
            "a cap with its own selector can only be observed",
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
    assert head.split() == ["NAME", "SHARDS", "PODSEACH", "FITS", "CAPSHELD", "DELIVERED", "AGE"]
    assert row.split()[:3] == ["cache", "6", "3"]
    made = workload("StatefulSet", "redis-0")
    made["spec"]["template"]["metadata"]["labels"] |= {"app": "redis", "shard": "0"}
    made["spec"]["selector"] = {"matchLabels": {"app": "redis", "shard": "0"}}
    plane.api.request("POST", path("StatefulSet", namespace), made)
    command = [PROGRAM, "plan", "--kubeconfig", plane.admin, "-n", namespace]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.stdout.startswith("group cache: 6 shards of 3 pods that share no zone; 18 pods\n"), ran.stderr


@pytest.mark.usefixtures("definition")
def test_what_is_printed_for_a_config_map_is_applied_and_its_pods_stand_by_it(plane, kubectl, namespace):
    data = {"cluster-size": "6", "max-pod-on-node": "1", "max-pod-in-zone": "2", "available-zones": "a,b,c"}
    asked = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "redis"}, "data": data})
    command = [PROGRAM, "plan", "-", "-o", "manifest", "--kubeconfig", plane.admin, "-n", namespace]
    ran = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0
    assert NO_INSTALLATION.fullmatch(ran.stderr)
    printed = {"apiVersion": "v1", "kind": "List", "items": [*yaml.safe_load_all(ran.stdout)]}
    applied = kubectl("apply", "-f", "-", stdin=printed)
    assert (applied.code, applied.out.count(" created\n")) == (0, 4), applied.err
    on = [each["spec"]["nodeName"] for each in running(plane, namespace, 6)]
    assert len({*on}) == 6
    assert Counter(each.split("-")[1] for each in on) == {"a": 2, "b": 2, "c": 2}


ON_NODES = {
    "maxSkew": 1,
    "topologyKey": HOSTNAME,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": SPEC["selector"],
    "minDomains": 1000000,
}
PINS = {"0": ["a", "b"], "1": ["a", "c"], "2": ["b", "c"]}


def shard(number):
    made = workload("StatefulSet", f"redis-{number}")
    labels = {"app": "redis", "shard": number}
    made["spec"] |= {"replicas": 2, "selector": {"matchLabels": labels}}
    made["spec"]["template"]["metadata"]["labels"] = labels
    made["spec"]["template"]["spec"].pop("topologySpreadConstraints", None)
    return made


def planned(plane, namespace):
    """A group that asks for injection, and its plan as the controller stores it."""
    where = GROUPS.format(namespace)
    made = plane.api.request("POST", where, group(delivery="inject", expected={"shards": 3, "podsPerShard": 2}))
    workloads = [
        {"kind": "StatefulSet", "name": f"redis-{each}", "shard": each, "zones": zones}
        | {"topologySpreadConstraints": [ON_NODES]}
        for each, zones in PINS.items()
    ]
    said = {"status": "True", "reason": "Proven", "message": "", "lastTransitionTime": "2026-11-23T08:00:00Z"}
    true = [said | {"type": each} for each in ("Planned", "Fits", "CannotGetStuck")]
    status = {"observedGeneration": made["metadata"]["generation"], "revision": "7f3a", "conditions": true}
    plane.api.request("PUT", f"{where}/cache/status", made | {"status": status | {"workloads": workloads}})


@pytest.mark.usefixtures("definition")
def test_templates_get_the_plan_that_is_stored_and_their_pods_stand_by_it(plane, namespace, tmp_path):
    planned(plane, namespace)
    with serving(tmp_path, {"defaults": {"mode": "off"}}, f"--kubeconfig={plane.admin}", "--yes"):
        # It registers itself for templates of groups, as the cluster has groups.
        dry = f"{path('StatefulSet', namespace)}?dryRun=All"
        eventually(
            lambda: (
                RECORD
                in plane.api.request("POST", dry, shard("0"))["spec"]["template"]["metadata"].get("annotations", {})
            )
        )
        made = [create(plane, namespace, shard(each)) for each in PINS]
        for each in made:
            template = each["spec"]["template"]
            assert template["spec"]["topologySpreadConstraints"] == [ON_NODES]
            assert RECORD in template["metadata"]["annotations"]
        found = running(plane, namespace, 6)
        # Nothing changes in what was delivered, whoever writes the object again.
        again = plane.api.request("PUT", f"{path('StatefulSet', namespace)}/redis-0?dryRun=All", shard("0"))
        assert again["spec"]["template"] == made[0]["spec"]["template"]
    on = {each["metadata"]["name"]: each["spec"]["nodeName"] for each in found}
    assert len({*on.values()}) == 6
    for number, zones in PINS.items():
        assert sorted(on[f"redis-{number}-{each}"].split("-")[1] for each in range(2)) == zones
