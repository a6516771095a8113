"""What we say of 50 random workloads, and where the real scheduler and controllers leave their pods.

Each workload, or group of workloads that count each other, has nodes of its own, so that all are placed at once.
`EVENSPREAD_SEED=n` repeats a run.
"""

import collections
import os
import random
import time
from typing import NamedTuple

import msgspec
import pytest
from e2e.controlplane.up import ControlPlane
from e2e.objects import HOST, ZONE, path
from e2e.waiting import eventually
from msgspec.structs import replace

from webhook.core.api.types import Node
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.index import node_sets
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.placement.game_from_cluster import ClusterGame, game_of
from webhook.core.placement.placement_verdict import PlacementVerdict, Simulation
from webhook.core.placement.search import canonical_form, search
from webhook.core.placement.simulation import simulate
from webhook.core.pods_to_create.missing_pods import missing_pods
from webhook.core.pods_to_create.next_pod import PodSource
from webhook.core.policy.policy import Policy
from webhook.core.workloads.reading import read_workload
from webhook.core.workloads.workload import selector_of

SEED = int(os.environ.get("EVENSPREAD_SEED") or time.time())
OF_EACH = {PlacementVerdict.FITS: 16, PlacementVerdict.STUCK: 18, PlacementVerdict.NO_FIT: 16}
WORLD = "example.com/world"
STATES = 20_000
SETTLED = 12  # seconds without a change: the scheduler tries a pod again after ten at the latest


class World(NamedTuple):
    namespace: str
    nodes: list[dict]
    workloads: list[dict]
    game: ClusterGame
    said: Simulation


def node(world: str, zone: str, number: int, cpu: str) -> dict:
    name = f"{world}-{zone}{number}"
    room = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name, ZONE: zone, WORLD: world, "kubernetes.io/os": "linux"}},
        "status": {"allocatable": room, "capacity": room},
    }


def constraint(choose: random.Random, key: str, labels: dict) -> dict:
    return {
        "maxSkew": choose.choice([1, 1, 2]),
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }


def workload(choose: random.Random, world: str, name: str, most: int) -> dict:
    own, everyone = {"app": name}, {"part-of": "shop"}
    counted = choose.choice([own, everyone, everyone])
    keys = choose.choice([(ZONE,), (ZONE, HOST), (ZONE, HOST), (HOST,)])
    spec = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": choose.choice(["1", "1", "2"])}}}],
        "nodeSelector": {WORLD: world},
        "topologySpreadConstraints": [constraint(choose, key, counted) for key in keys],
    }
    if choose.random() < 0.6:
        term = {"topologyKey": choose.choice([ZONE, ZONE, HOST]), "labelSelector": {"matchLabels": own}}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    kind = choose.choice(["Deployment", "StatefulSet"])
    template = {"metadata": {"labels": {**own, **everyone}}, "spec": spec}
    made = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"replicas": choose.randint(2, most), "selector": {"matchLabels": own}, "template": template},
    }
    if kind == "StatefulSet" and choose.random() < 0.4:
        made["spec"]["podManagementPolicy"] = "Parallel"
    return made


def world(choose: random.Random, name: str) -> World:
    zones = "abc"[: choose.randint(2, 3)]
    nodes = [
        node(name, zone, number, choose.choice(["1", "2", "4", "4"]))
        for zone in zones
        for number in range(choose.randint(1, 3))
    ]
    # Three of more pods each have more states than the search looks at.
    several = choose.choice([1, 2, 2, 3])
    workloads = [workload(choose, name, app, most=2 if several > 2 else 4) for app in ("web", "api", "db")[:several]]
    index = ClusterIndex(RECORDED)
    for each in nodes:
        index.apply("ADDED", msgspec.convert(each, Node))
    batches = []
    for each in workloads:
        read = read_workload(each, ())
        source = PodSource(workload=read, template=read.templates[0], namespace=name, own=selector_of(read))
        within = Context(policy=Policy(), version=RECORDED, index=index)
        first = len(batches)
        batches += [
            replace(batch, behind=None if batch.behind is None else batch.behind + first)
            for batch in missing_pods(source, each["spec"]["replicas"], within).batches
        ]
    game = game_of(batches, index)
    return World(name, nodes, workloads, game, simulate(game))


def worlds(choose: random.Random) -> list[World]:
    """So many of each verdict."""
    wanted, found = dict(OF_EACH), []
    while any(wanted.values()):
        made = world(choose, f"w{len(found)}")
        assert made.said.verdict is not PlacementVerdict.UNKNOWN
        if wanted[made.said.verdict]:
            wanted[made.said.verdict] -= 1
            found.append(made)
    return found


@pytest.fixture(name="own_plane", scope="module")
def _own_plane(binaries, tmp_path_factory):
    """Not the one of the other tests: their pods would be in the way."""
    with ControlPlane(tmp_path_factory.mktemp("placement"), binaries) as plane:
        yield plane


def create(api, of: World) -> None:
    for each in of.nodes:
        api.request("POST", "/api/v1/nodes", each)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": of.namespace}}
    api.request("POST", "/api/v1/namespaces", namespace)


def placed(api) -> dict[tuple[str, str], str] | None:
    """The node of every pod, "" where the scheduler found none; None while it has not tried one."""
    found = {}
    for each in api.request("GET", "/api/v1/pods")["items"]:
        meta, spec = each["metadata"], each["spec"]
        tried = any(condition["type"] == "PodScheduled" for condition in each["status"].get("conditions", ()))
        if not tried and "nodeName" not in spec:
            return None
        found[meta["namespace"], meta["name"]] = spec.get("nodeName", "")
    return found


def settled(api) -> dict[tuple[str, str], str]:
    """The nodes of all pods once nothing has changed for a while."""
    last, since = None, time.monotonic()
    while last is None or time.monotonic() < since + SETTLED:
        now = placed(api)
        if now is None or now != last:
            last, since = now, time.monotonic()
        time.sleep(0.25)
    return last


def layout(of: World, nodes: dict[str, str]):
    """The state of the game in which these pods are on these nodes, by the name of the pod."""
    game, view = of.game.game, of.game.nodes.view
    on: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    left = [each.pods for each in game.pod_classes]
    crowd_of = crowds_by_workload(of)
    for name, at in sorted(nodes.items()):
        if at:
            pod_class = next(each for each in crowd_of[name.split("-")[0]] if left[each])
            left[pod_class] -= 1
            on[at][pod_class] += 1
    state = []
    for each in game.classes:
        pods = [
            [on[view.names[slot]][pod_class] for pod_class in range(len(left))]
            for slot in node_sets.to_slots(each.nodes)
        ]
        if each.pooled:
            pods = [[sum(column) for column in zip(*pods, strict=True)]]
        counted = collections.Counter(tuple(node) for node in pods if any(node))
        state.append(tuple(sorted(counted.items())))
    return tuple(state)


def crowds_by_workload(of: World) -> dict[str, list[int]]:
    names = collections.defaultdict(list)
    number = 0
    for each in of.workloads:
        left = each["spec"]["replicas"]
        while left:
            names[each["metadata"]["name"]].append(number)
            left -= of.game.game.pod_classes[number].pods
            number += 1
    return names


def test_pods_are_left_where_we_say_that_they_can_be(own_plane):
    api, choose = own_plane.api, random.Random(SEED)  # noqa: S311  cases, not secrets
    made = worlds(choose)
    for each in made:
        create(api, each)
    own_plane.await_nodes()
    for each in made:
        where = f"/api/v1/namespaces/{each.namespace}/serviceaccounts/default"
        eventually(lambda at=where: api.send("GET", at).status == 200, 30)
        for one in each.workloads:
            api.request("POST", path(one["kind"], each.namespace), one)
    expected = sum(one["spec"]["replicas"] for each in made for one in each.workloads if one["kind"] == "Deployment")
    eventually(lambda: len(api.request("GET", "/api/v1/pods")["items"]) >= expected, 60)
    nodes = settled(api)
    seen, wrong = collections.Counter(), []
    for each in made:
        own = {name: at for (namespace, name), at in nodes.items() if namespace == each.namespace}
        many = sum(map(bool, own.values()))
        ends = search(each.game.game, STATES).ends
        canonical = canonical_form(each.game.game)
        possible = {canonical(end.state) for end in ends}
        seen[each.said.verdict, many == each.said.wanted] += 1
        if not each.said.fewest <= many <= each.said.most or canonical(layout(each, own)) not in possible:
            wrong.append((each.said, each.workloads, own))
    print(
        f"\nEVENSPREAD_SEED={SEED}",
        {f"{outcome}, all placed: {whole}": number for (outcome, whole), number in seen.items()},
    )
    assert wrong == []
    assert seen[PlacementVerdict.FITS, True] == OF_EACH[PlacementVerdict.FITS]
    assert seen[PlacementVerdict.NO_FIT, False] == OF_EACH[PlacementVerdict.NO_FIT]
