"""Where we forecast that pods go, and where the real scheduler puts them, one pod after the other.

Each pod's node has to be one with the highest sum of scores, in the cluster as it was. `EVENSPREAD_SEED=n` repeats
a run, `EVENSPREAD_PODS=n` makes it longer.
"""

import os
import random
import time

import msgspec
import pytest
from e2e.controlplane.up import ControlPlane
from e2e.objects import HOST, ZONE, path
from e2e.waiting import eventually

from webhook.core.api.types import TypeMeta
from webhook.core.api.version import RECORDED
from webhook.core.apiserver.admission_plugins import as_created
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.readers import decode_object
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.problem import take
from webhook.core.scheduler.scoring.node_scores import best_nodes, take_scoring

SEED = int(os.environ.get("EVENSPREAD_SEED") or time.time())
PODS = int(os.environ.get("EVENSPREAD_PODS") or 60)
NODES = 12


@pytest.fixture(name="own_plane", scope="module")
def _own_plane(binaries, tmp_path_factory):
    with ControlPlane(tmp_path_factory.mktemp("forecast"), binaries) as plane:
        yield plane


def node(number: int, choose: random.Random) -> dict:
    """A node of some size in one of three zones, with a disk that pods may prefer."""
    name = f"n{number}"
    labels = {HOST: name, ZONE: choose.choice("abc"), "disk": choose.choice(["ssd", "hdd"])}
    room = {"cpu": choose.choice(["4", "8", "16"]), "memory": choose.choice(["8Gi", "16Gi", "64Gi"]), "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": room, "capacity": room},
    }


def pod(number: int, choose: random.Random) -> dict:
    """A pod of one of three apps, with requests or without, and with preferences of its own."""
    app = choose.choice(["web", "api", "db"])
    others = {"matchLabels": {"app": choose.choice(["web", "api", "db"])}}
    asked = {"cpu": choose.choice(["50m", "200m"]), "memory": choose.choice(["64Mi", "256Mi"])}
    spec = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": asked if choose.random() < 0.7 else {}}}]
    }
    affinity, weight = {}, choose.randint(1, 100)
    if choose.random() < 0.4:
        key, when = choose.choice([ZONE, HOST]), choose.choice(["ScheduleAnyway", "ScheduleAnyway", "DoNotSchedule"])
        own = {"matchLabels": {"app": app}}
        spec["topologySpreadConstraints"] = [
            {"maxSkew": 2, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": own}
        ]
    if choose.random() < 0.3:
        term = {"topologyKey": choose.choice([ZONE, HOST]), "labelSelector": others}
        kind = choose.choice(["podAffinity", "podAntiAffinity"])
        preferred = [{"weight": weight, "podAffinityTerm": term}]
        affinity[kind] = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    if choose.random() < 0.3:
        likes = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
        preferred = [{"weight": weight, "preference": likes}]
        affinity["nodeAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    spec["affinity"] = affinity
    meta = {"name": f"p{number}", "labels": {"app": app}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def known(api) -> ClusterIndex:
    """The cluster as it is."""
    index = ClusterIndex(RECORDED, scoring=True)
    for kind, where in (("Node", "nodes"), ("Namespace", "namespaces"), ("Pod", "pods")):
        of = TypeMeta(api_version="v1", kind=kind)
        for each in api.request("GET", f"/api/v1/{where}")["items"]:
            index.apply("ADDED", decode_object(msgspec.json.encode(each), of))
    return index


def best(index: ClusterIndex, made: dict) -> set[str]:
    """The names of the nodes on which the scheduler would most likely put the pod."""
    created = {**made, "metadata": {**made["metadata"], "namespace": "default"}}
    read = decode_object(msgspec.json.encode(created), TypeMeta(api_version="v1", kind="Pod"))
    problem = take(index, as_created(read, RECORDED))
    cycle = Cycle(problem)
    return {*problem.nodes.names_of(best_nodes(take_scoring(index, problem), cycle, cycle.verdict().feasible))}


def test_pods_go_where_they_are_forecast(own_plane):
    api, choose = own_plane.api, random.Random(SEED)  # noqa: S311  cases, not secrets
    for number in range(NODES):
        api.request("POST", "/api/v1/nodes", node(number, choose))
    own_plane.await_nodes()
    for number in range(0, NODES, 4):
        old = api.request("GET", f"/api/v1/nodes/n{number}")
        old["spec"]["taints"] = [{"key": "old", "value": "x", "effect": "PreferNoSchedule"}]
        api.request("PUT", f"/api/v1/nodes/n{number}", old)
    eventually(lambda: api.send("GET", "/api/v1/namespaces/default/serviceaccounts/default").status == 200, 30)
    tried, single, wrong = 0, 0, []
    for number in range(PODS):
        made = pod(number, choose)
        expected = best(known(api), made)
        if not expected:  # nor would the scheduler find a node
            continue
        tried += 1
        api.request("POST", path("Pod", "default"), made)
        where = f"{path('Pod', 'default')}/p{number}"
        on = eventually(lambda at=where: api.request("GET", at)["spec"].get("nodeName"), 30)
        single += len(expected) == 1
        if on not in expected:
            wrong.append((f"p{number}", on, expected))
    print(f"\nEVENSPREAD_SEED={SEED}: {tried - len(wrong)} of {tried} as forecast, {single} with a single best node")
    assert wrong == []
