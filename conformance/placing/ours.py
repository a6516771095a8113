"""What our engine says of a world (`worlds`), in the referee's words."""

import io
import json
import tempfile
from collections import Counter

import msgspec

from webhook.cli.cluster_source import ClusterSource
from webhook.cli.commands.simulate.targets import is_kept, targets
from webhook.cli.target import Target
from webhook.core.what_if.events import WhatIf
from webhook.core.what_if.run import Run
from webhook.cluster.resources import BUILT_IN_RESOURCES
from webhook.conformance.verdict_cases import read_scenario
from webhook.core.api.types import Pod
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.apiserver.admission_plugins import as_created
from webhook.core.placement.closed_forms import same_in_every_order
from webhook.core.placement.game_from_cluster import PodBatch, game_of
from webhook.core.placement.rolling_update import RolloutRules
from webhook.core.placement.search import search
from webhook.core.placement.placement_verdict import Effort, PlacementVerdict
from webhook.core.policy.policy import Policy
from webhook.core.scheduler.problem import take
from webhook.snapshot.load import read_snapshot

LISTS = ("nodes", "pods", "persistentVolumes", "persistentVolumeClaims", "storageClasses")
KINDS = {
    "nodes": {"apiVersion": "v1", "kind": "Node"},
    "pods": {"apiVersion": "v1", "kind": "Pod"},
    "persistentVolumes": {"apiVersion": "v1", "kind": "PersistentVolume"},
    "persistentVolumeClaims": {"apiVersion": "v1", "kind": "PersistentVolumeClaim"},
    "storageClasses": {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"},
    "csiNodes": {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode"},
    "csiDrivers": {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver"},
    "csiStorageCapacities": {"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity"},
}
STATES = 20_000
_POD = msgspec.json.Decoder(Pod)


def name_of(pod):
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def index_of(world):
    """The cluster, without the pods that a rollout may delete."""
    leaving = world.get("rollout", {}).get("leaving", ())
    lists = {name: world[name] for name in LISTS if name in world}
    lists["pods"] = [each for each in lists["pods"] if name_of(each) not in leaving]
    return read_scenario({name: json.dumps(every).encode() for name, every in lists.items()}).index


def problem_of(manifest, index):
    return take(index, as_created(_POD.decode(json.dumps(manifest).encode()), RECORDED))


def batches_of(world, index):
    """Pods that are alike together; with ``ordered``, each after the one before."""
    if "rollout" in world:
        old = [each for each in world["pods"] if name_of(each) in world["rollout"]["leaving"]]
        slots = index.nodes.view().slots
        leaving = Counter(slots[each["spec"]["nodeName"]] for each in old)
        spec = {name: value for name, value in old[0]["spec"].items() if name != "nodeName"}
        replaced = PodBatch(problem=problem_of({**old[0], "spec": spec}, index), pods=0, leaving=leaving)
        return [replaced, PodBatch(problem=problem_of(world["template"], index), pods=world["replicas"])]
    if "template" in world:
        return [PodBatch(problem=problem_of(world["template"], index), pods=world["replicas"])]
    alike = {}
    for number, each in enumerate(world["ordinals"]):
        key = number if world["ordered"] else told_apart(world, each)
        alike.setdefault(key, []).append(each)
    return [
        PodBatch(problem=problem_of(pods[0], index), pods=len(pods), behind=number - 1 if world["ordered"] and number else None)
        for number, pods in enumerate(alike.values())
    ]


def told_apart(world, pod):
    """What tells a pod from others; pods with volumes are each by themselves."""
    return json.dumps([pod["metadata"]["labels"], pod["spec"]], sort_keys=True)


def game_in(world):
    index = index_of(world)
    rollout = world.get("rollout")
    chosen = rollout and RolloutRules(
        old=0, new=1, replicas=world["replicas"], surge=rollout["surge"], unavailable=rollout["unavailable"]
    )
    return game_of(batches_of(world, index), index, rollout=chosen)


def has_packing_pools(world):
    return any(each.packs for each in game_in(world).game.classes)


def snapshot_of(world):
    """The cluster as `evenspread snapshot` would write it."""
    yield {"kind": "Snapshot", "kubernetesVersion": f"v{RECORDED}", "resources": [each.name for each in BUILT_IN_RESOURCES]}
    hidden = world.get("hidden", ())
    for name, of in KINDS.items():
        yield from ({**of, **each} for each in world.get(name, ()) if each["metadata"]["name"] not in hidden)
    yield from world.get("objects", ())


def simulated(world):
    """What `evenspread simulate` says of the world's manifests: it makes the pods as it takes controllers to make them."""
    lines = b"\n".join(json.dumps(each).encode() for each in snapshot_of(world))
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"apiVersion": "v1", "kind": "List", "items": world["manifests"]}, file)
        file.flush()
        of = Target(files=(file.name,))
        read = read_snapshot(io.BufferedReader(io.BytesIO(lines)), "world", keep=lambda item: is_kept(item, of, WhatIf(), ()))
        known = ClusterSource(index=read.index, version=read.version, source="world", kept=read.kept)
        within = Context(policy=Policy(), version=read.version or RECORDED, index=read.index, now="2026-11-24", namespace="shop")
        found, _ = targets(of, known, within, WhatIf(), replicas=None, everywhere=False)
    run = Run(index=known.index, targets=found, context=within, effort=Effort(states=STATES), rollout="rolls" in world)
    # Only the verdict: `answers` would also search for explanations and suggestions.
    ((_, moment),) = run._moments(WhatIf())
    joint = run._played(moment.workloads)
    whole, staying = joint.whole, sum(each.staying for each in joint.workloads)
    exact = whole.verdict is not PlacementVerdict.UNKNOWN and None not in {whole.fewest, whole.most}
    said = {"exact": exact, "states": 0 if joint.simulation is None else joint.simulation.states, "left": 0, "why": joint.unknown}
    return said | ({"fewest": whole.fewest - staying, "most": whole.most - staying} if exact else {})


def answer(world):
    """``fewest``, ``most``, ``ends`` as the referee has them; ``left``, the most pods of a rollout that stay too long.

    Errors: AssertionError where the closed form and the search differ.
    """
    if "manifests" in world:
        return simulated(world)
    game = game_in(world).game
    found = search(game, STATES)
    old = None if game.rollout is None else game.rollout.old
    ends, left = Counter(), 0
    for end, chance in zip(found.ends, found.chances, strict=True):
        ends[sum(pods for pod_class, pods in enumerate(end.placed) if pod_class != old)] += chance
        left = max(left, 0 if old is None else end.placed[old])
    same = same_in_every_order(game)
    assert same is None or not found.exact or {same} == {*ends}, f"the closed form says {same}, the search {ends}"
    said = {"exact": found.exact, "states": found.states, "ends": dict(ends), "left": left}
    return said | {"fewest": min(ends, default=0), "most": max(ends, default=0)}
