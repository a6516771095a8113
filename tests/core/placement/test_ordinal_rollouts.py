"""Rolling updates of StatefulSets: beside ours, every order by brute force, written from the controller's source."""

import json
import random
from collections import Counter

import pytest
from brute_force import World, labels_of
from build import policy
from manifest import workload as written
from msgspec.structs import replace

from conformance.placing.worlds import HOSTNAME, ZONE, constraint, node, pod, running, spread, storage_class, volume_in
from webhook.conformance.verdict_cases import read_scenario
from webhook.core.api.selectors import selector_from_labels
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.context import Context
from webhook.core.placement.closed_forms import takes_every_pod
from webhook.core.placement.placement_verdict import PlacementVerdict
from webhook.core.placement.search import search
from webhook.core.placement.simulation import simulate
from webhook.core.pods_to_create.missing_pods import rollout_pods
from webhook.core.pods_to_create.next_pod import PodSource
from webhook.core.workloads.reading import read_workload

OWN = {"app": "web", "set": "yes"}


def csi_node(name, most, driver="csi.example.com"):
    driver = {"name": driver, "nodeID": name, "allocatable": {"count": most}}
    return {"metadata": {"name": name}, "spec": {"drivers": [driver]}}


def mounting(claim):
    return {"name": "data", "persistentVolumeClaim": {"claimName": claim}}


class Ordinals(World):
    """A state: for each ordinal its node and whether it is new, or None while it is missing."""

    def __init__(self, world):
        super().__init__({"nodes": world["nodes"], "pods": world["others"]})
        self.world, self.kinds = world, [world["template"]]
        self.start = tuple((name, False) if name else None for name in world["on"])

    def following(self, state):
        missing = [ordinal for ordinal, at in enumerate(state) if at is None]
        old = [n for n, at in enumerate(state) if at is not None and not at[1] and n >= self.world["partition"]]
        if len(missing) < self.world["unavailable"] and old:
            yield (*state[: old[-1]], None, *state[old[-1] + 1 :])
        there = [(at[0], 0) for at in state if at is not None]
        for ordinal in missing if self.world["parallel"] else missing[:1]:
            for name in self.nodes:
                if sum(place == name for place, _ in there) >= self.world["limits"].get(name, 9):
                    continue
                pinned = self.world["pins"][ordinal] not in (None, labels_of(self.nodes[name])[ZONE])
                if not pinned and self.admits(name, 0, there):
                    yield (*state[:ordinal], (name, True), *state[ordinal + 1 :])

    def ends(self):
        seen, left = {self.start}, [self.start]
        while left:
            state = left.pop()
            after = [*self.following(state)]
            if not after:
                yield sum(at is not None and at[1] for at in state), self.olds(state)
            left += {each for each in after if each not in seen}
            seen.update(after)

    def olds(self, state):
        return sum(at is not None and not at[1] for at in state[self.world["partition"] :])


def drawn(number):
    rng = random.Random(f"ordinals/{number}")  # noqa: S311 no secret
    nodes = [
        node(f"{zone}{each}", zone, cpu=rng.choice(["16", "1", "2"])) for zone in "abc"[: rng.randint(1, 3)] for each in
        range(rng.randint(1, 2))
    ]  # fmt: skip
    replicas = rng.randint(2, 5)
    given = spread(rng, (ZONE,), (HOSTNAME,), (ZONE, HOSTNAME), (ZONE, HOSTNAME))
    cpu = rng.choice(["100m", "900m", "900m"])
    on = [rng.choice(nodes)["metadata"]["name"] if rng.random() < 0.85 else None for _ in range(replicas)]
    pins = [rng.choice("abc") if rng.random() < 0.25 else None for _ in range(replicas)]
    return {
        "nodes": nodes,
        "others": running(rng, nodes, {"app": "web"}, 2),
        "on": on,
        "pins": pins,
        "template": pod("web", OWN, given, cpu),
        "partition": rng.choice([0, 0, 0, 1, 2]),
        "parallel": (parallel := rng.random() < 0.4),
        "unavailable": rng.choice([1, 1, 2]) if parallel else 1,
        "limits": {name: max(1, on.count(name) + rng.choice([-1, 0, 0, 1])) for name in limited(rng, nodes)},
    }


def limited(rng, nodes):
    """The nodes with an attach limit: often none, else most."""
    return [each["metadata"]["name"] for each in nodes if rng.random() < 0.8] if rng.random() < 0.5 else []


def ours(world, version=RECORDED, *, deleted=()):
    volumes = [
        volume_in(zone, f"pv-{number}", f"data-web-{number}") for number, zone in enumerate(world["pins"]) if zone
    ]
    for number in world.get("local", ()):
        volumes[number]["spec"]["local"] = {"path": volumes[number]["spec"].pop("csi")["volumeHandle"]}
    claims = []
    for number, zone in enumerate(world["pins"]):
        spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "late"} | (
            {"volumeName": f"pv-{number}"} if zone else {}
        )
        meta = {"name": f"data-web-{number}", "namespace": "shop"}
        meta |= {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if zone else {}
        status = {"phase": "Bound" if zone else "Pending"}
        claims.append({"metadata": meta, "spec": spec, "status": status})
    template = world["template"]
    pods = [
        {
            **template,
            "metadata": {**template["metadata"], "name": f"web-{number}"},
            "spec": {**template["spec"], "nodeName": name, "volumes": [mounting(f"data-web-{number}")]},
        }
        for number, name in enumerate(world["on"])
        if name
    ]
    lists = {
        "nodes": world["nodes"],
        "pods": pods + world["others"],
        "persistentVolumes": volumes,
        "persistentVolumeClaims": claims,
        "storageClasses": [storage_class("late", "WaitForFirstConsumer")],
        "csiNodes": [csi_node(name, most) for name, most in world["limits"].items()],
    }
    index = read_scenario({name: json.dumps(every).encode() for name, every in lists.items()}).index
    index.version = version
    for name in deleted:
        index.apply("DELETED", index.nodes.get(name))
    rolling = {"partition": world["partition"], "maxUnavailable": world["unavailable"]}
    spec = {
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
        "podManagementPolicy": "Parallel" if world["parallel"] else "OrderedReady",
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"storageClassName": "late"}}],
    }
    made = written("StatefulSet", "app=web set=yes", replicas=len(world["on"]), spec=spec)
    made["spec"]["template"] = {"metadata": {"labels": OWN}, "spec": template["spec"]}
    workload = read_workload(made)
    own = selector_from_labels(OWN)
    source = PodSource(workload=workload, template=workload.templates[0], namespace="shop", own=own)
    within = Context(policy=policy(mode="observe"), version=version, index=index)
    return rollout_pods(source, len(world["on"]), within)


def outcomes(came):
    found = search(came.game().game, 20_000)
    assert found.exact
    return {(sum(end.placed[1:]), end.placed[0]) for end in found.ends}


@pytest.mark.parametrize("number", range(150))
def test_every_order_ends_as_by_brute_force(number):
    world = drawn(number)
    came = ours(world)
    assert not came.unknown
    if came.batches:
        found = outcomes(came)
        assert found == {*Ordinals(world).ends()}
        if takes_every_pod(came.game().game):
            assert found == {(sum(each.pods for each in came.batches), 0)}
    else:
        assert {*Ordinals(world).ends()} == {(0, 0)}


def test_with_room_for_all_every_pod_is_replaced():
    assert takes_every_pod(ours(small("a", "b", on=["a0", "b1", "a0", "b1", "a0"])).game().game)


def small(*zones, on, **more):
    nodes = [node(f"{zone}{number}", zone) for number, zone in enumerate(zones)]
    given = [constraint(ZONE, 1, {"set": "yes"})]
    known = {"pins": [None] * len(on), "partition": 0, "parallel": False, "unavailable": 1, "others": [], "limits": {}}
    return {"nodes": nodes, "on": on, "template": pod("web", OWN, given), **known, **more}


def test_many_pods_on_a_node_and_some_that_stay():
    came = ours(small("a", "b", on=["a0", "b1", "a0", "b1", "a0"], partition=2))
    assert (came.staying, sum(each.pods for each in came.batches)) == (2, 3)
    found = simulate(came.game())
    assert (found.verdict, found.fewest, found.skew) == (PlacementVerdict.FITS, 3, None)


def test_pods_on_two_deleted_nodes_are_replaced_one_by_one():
    """Deleted nodes have no name to tell them apart."""
    world = small("a", "b", "c", on=["a0", "b1", "c2"])
    came = ours(world, deleted=("a0", "b1"))
    assert [turn.place is not None for turn in came.rollout.turns] == [True] * 3
    assert simulate(came.game()).verdict is PlacementVerdict.FITS


def test_pods_of_several_drivers_are_unknown_only_beside_an_attach_limit():
    world = small("a", "b", on=["a0", "b1"], pins=["a", None], local=[0])
    assert not ours(world).unknown
    why = "how many volumes each node can attach, because the running pods use different CSI drivers"
    assert ours(world | {"limits": {"b1": 1}}).unknown == why


def test_with_nothing_above_the_partition():
    assert not ours(small("a", on=["a0"], partition=3)).batches


def test_where_the_volume_of_the_highest_is_shut_in_nothing_goes_on():
    world = small("a", "b", "c", on=["a0", "b1", "c2"], pins=["a", "b", "c"])
    world["nodes"][2]["spec"]["unschedulable"] = True
    found = simulate(ours(world).game())
    assert (found.verdict, found.fewest, [each.gone for each in found.witness]) == (PlacementVerdict.NO_FIT, 0, [True])


def test_before_1_37_one_pod_is_missing_at_most():
    world = small("a", "b", on=["a0", "b1", "a0"], parallel=True, unavailable=2)
    assert ours(world).rollout.unavailable == 2
    assert ours(world, KubernetesVersion(1, 36)).rollout.unavailable == 1


@pytest.mark.parametrize(
    ("changes", "unknown"),
    [
        ({"strategy": {"type": "OnDelete"}}, "which pods are deleted manually (OnDelete)"),
        ({"built_in": False}, "how its controller replaces pods"),
        ({"replicas": 300}, "300 ordinals are too many to look up"),
        ({"pins": None}, "the nodes of the pods' future volumes"),
    ],
    ids=["on delete", "another controller", "too many", "lost claims"],
)
def test_ordinal_rollouts_whose_course_is_unknown(changes, unknown):
    world = small("a", on=["a0"])
    workload = read_workload(written("StatefulSet", "app=web set=yes", replicas=1))
    if "strategy" in changes:
        spec = {"updateStrategy": changes["strategy"]}
        workload = read_workload(written("StatefulSet", "app=web set=yes", replicas=1, spec=spec))
    if "pins" in changes:
        spec = {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"storageClassName": "none"}}]}
        workload = read_workload(written("StatefulSet", "app=web set=yes", replicas=1, spec=spec))
    workload = replace(workload, built_in=changes.get("built_in", True))
    index = read_scenario({"nodes": json.dumps(world["nodes"]).encode()}).index
    own = selector_from_labels(OWN)
    source = PodSource(workload=workload, template=workload.templates[0], namespace="shop", own=own)
    within = Context(policy=policy(mode="observe"), version=RECORDED, index=index)
    assert rollout_pods(source, changes.get("replicas", 1), within).unknown == unknown


def test_counted():
    """The families that are drawn have ends of every kind."""
    kinds = Counter()
    for number in range(150):
        ends = {*Ordinals(drawn(number)).ends()}
        kinds[len(ends) > 1, any(left for _, left in ends)] += 1
    assert all(kinds[several, left] for several in (False, True) for left in (False, True)), kinds
