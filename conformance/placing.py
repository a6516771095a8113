"""Whole workloads beside the scheduler's own filters: python -m conformance.placing ORACLE SEED COUNT [FAMILY...]

Random small clusters and workloads of each family. What our search says of all orders is compared with `oracle place`,
which tries every order with the real plugins: the fewest and the most pods that find a node, how often each number comes
out, and where one pod may go. Exit code 1 for a difference; the first of each family is printed.
"""

import json
import random
import sys
import time
from collections import Counter

import msgspec

from conformance.claims.referee import Referee
from webhook.core.api.types import Node, Pod
from webhook.core.api.version import RECORDED
from webhook.core.apiserver.pod_defaults import as_created
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.placement.closed_forms import same_in_every_order
from webhook.core.placement.crowds import Party, game_of
from webhook.core.placement.search import search
from webhook.core.scheduler.problem import take

ZONE, HOSTNAME, RACK = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "example.com/rack"
STATES = 20_000
_NODE, _POD = msgspec.json.Decoder(Node), msgspec.json.Decoder(Pod)


def node(name, zone, rack="", cpu="16", pods="110", taints=(), cordoned=False):
    labels = {HOSTNAME: name, ZONE: zone} | ({RACK: rack} if rack else {})
    room = {"cpu": cpu, "memory": "64Gi", "pods": pods}
    spec = {"taints": list(taints)} if taints else {}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec | ({"unschedulable": True} if cordoned else {}),
            "status": {"allocatable": room, "capacity": room}}


def constraint(key, max_skew, labels, **more):
    return {"maxSkew": max_skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": dict(labels)}, **more}


def pod(name, labels, constraints=(), cpu="100m", **spec):
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop", "labels": labels},
            "spec": {"containers": containers, **({"topologySpreadConstraints": list(constraints)} if constraints else {}), **spec}}


def zones(rng, most=3, nodes=3, **more):
    found = []
    for zone in "abcd"[: rng.randint(1, most)]:
        for number in range(rng.randint(1, nodes)):
            found.append(node(f"{zone}{number}", zone, **{key: value(rng) for key, value in more.items()}))
    return found


def running(rng, nodes, labels, most=4):
    found = []
    for number in range(rng.randint(0, most)):
        each = pod(f"old-{number}", labels)
        each["spec"]["nodeName"] = rng.choice(nodes)["metadata"]["name"]
        found.append(each)
    return found


WEB = {"app": "web"}


def one_constraint(rng):
    nodes = zones(rng, cpu=lambda r: r.choice(["16", "16", "1", "2"]))
    given = constraint(rng.choice([ZONE, ZONE, HOSTNAME]), rng.choice([1, 1, 2, 3]), rng.choice([WEB, WEB, {"app": "other"}]))
    if rng.random() < 0.3:
        given["minDomains"] = rng.randint(1, 4)
    return {"nodes": nodes, "pods": running(rng, nodes, WEB), "replicas": rng.randint(1, 7),
            "template": pod("w", WEB, [given], cpu=rng.choice(["100m", "900m"]))}


def two_keys(rng):
    nodes = zones(rng, rack=lambda r: r.choice("xy") if rng.random() < 0.5 else "")
    keys = rng.choice([(ZONE, HOSTNAME)] * 3 + [(ZONE, RACK), (RACK, HOSTNAME), (ZONE, RACK, HOSTNAME)])
    given = [constraint(key, rng.choice([1, 1, 2]), WEB) for key in keys]
    return {"nodes": nodes, "pods": running(rng, nodes, WEB, 2), "replicas": rng.randint(2, 7), "template": pod("w", WEB, given)}


def policies(rng):
    taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    nodes = zones(rng, taints=lambda r: [taint] if r.random() < 0.3 else (), cordoned=lambda r: r.random() < 0.15)
    given = [constraint(key, rng.choice([1, 1, 2]), WEB, **{
        name: rng.choice(["Honor", "Ignore"]) for name in ("nodeTaintsPolicy", "nodeAffinityPolicy") if rng.random() < 0.6
    }) for key in rng.choice([(ZONE,), (HOSTNAME,), (ZONE, HOSTNAME)])]
    spec = {}
    if rng.random() < 0.4:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if rng.random() < 0.4:
        spec["nodeSelector"] = {ZONE: rng.choice("ab")}
    return {"nodes": nodes, "pods": running(rng, nodes, WEB), "replicas": rng.randint(1, 6), "template": pod("w", WEB, given, **spec)}


def term(key, labels):
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def affinity(rng):
    nodes = zones(rng)
    given = [constraint(key, rng.choice([1, 1, 2]), WEB) for key in rng.choice([(ZONE,), (HOSTNAME,), (ZONE, HOSTNAME)])]
    wanted = {}
    if rng.random() < 0.6:
        wanted["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [
            term(rng.choice([HOSTNAME, ZONE]), rng.choice([WEB, {"app": "db"}]))]}
    if rng.random() < 0.5:
        wanted["podAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [
            term(rng.choice([ZONE, ZONE, HOSTNAME]), rng.choice([WEB, WEB, {"app": "db"}]))]}
    others = running(rng, nodes, {"app": "db"}, 3)
    for each in others:
        each["metadata"]["name"] = "db-" + each["metadata"]["name"]
        if rng.random() < 0.3:
            each["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(rng.choice([ZONE, HOSTNAME]), WEB)]}}
    return {"nodes": nodes, "pods": running(rng, nodes, WEB, 2) + others, "replicas": rng.randint(1, 6),
            "template": pod("w", WEB, given, affinity=wanted)}


def resources(rng):
    nodes = zones(rng, cpu=lambda r: r.choice(["1", "2", "2", "3"]), pods=lambda r: r.choice(["1", "2", "3", "110"]))
    given = [constraint(key, rng.choice([1, 1, 2]), WEB) for key in rng.choice([(ZONE,), (HOSTNAME,), (ZONE, HOSTNAME), (ZONE, HOSTNAME)])]
    spec = {}
    if rng.random() < 0.2:
        spec = {"hostNetwork": False}
    template = pod("w", WEB, given, cpu=rng.choice(["500m", "900m", "1", "1500m"]), **spec)
    if rng.random() < 0.2:
        template["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    return {"nodes": nodes, "pods": running(rng, nodes, WEB, 3), "replicas": rng.randint(2, 7), "template": template}


def ordinals(rng, *, ordered):
    """A StatefulSet, some of whose pods have volumes in a zone."""
    nodes = zones(rng)
    given = [constraint(key, rng.choice([1, 1, 2]), WEB) for key in rng.choice([(ZONE,), (HOSTNAME,), (ZONE, HOSTNAME), (ZONE, HOSTNAME)])]
    every = []
    for number in range(rng.randint(2, 5)):
        each = pod(f"web-{number}", WEB, given, cpu=rng.choice(["100m"]))
        if rng.random() < 0.4:
            each["spec"]["nodeSelector"] = {ZONE: rng.choice("abc")}
        every.append(each)
    return {"nodes": nodes, "pods": running(rng, nodes, WEB, 2), "ordinals": every, "ordered": ordered}


def two_workloads(rng):
    nodes = zones(rng, cpu=lambda r: r.choice(["2", "2", "3", "16"]))
    both = {"part-of": "shop"}
    every = []
    for name in ("web", "api"):
        labels = {"app": name, **both}
        given = [constraint(key, rng.choice([1, 1, 2]), rng.choice([both, {"app": name}])) for key in rng.choice([(), (ZONE,), (HOSTNAME,), (ZONE, HOSTNAME)])]
        spec, cpu = {}, rng.choice(["100m", "500m", "1", "1500m"])
        if rng.random() < 0.25:
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                term(rng.choice([HOSTNAME, ZONE]), rng.choice([both, {"app": name}, {"app": "web"}]))]}}
        every += [pod(f"{name}-{number}", labels, given, cpu=cpu, **spec) for number in range(rng.randint(1, 3))]
    return {"nodes": nodes, "pods": running(rng, nodes, {**WEB, **both}, 2), "ordinals": every, "ordered": False}


FAMILIES = {
    "one constraint": one_constraint,
    "two keys": two_keys,
    "policies and taints": policies,
    "affinity": affinity,
    "resources": resources,
    "pinned pods": lambda rng: ordinals(rng, ordered=False),
    "pods in turn": lambda rng: ordinals(rng, ordered=True),
    "two workloads": two_workloads,
}


def index_of(world):
    index = ClusterIndex(RECORDED)
    for each in world["nodes"]:
        index.apply("ADDED", _NODE.decode(msgspec.json.encode(each)))
    for each in world["pods"]:
        index.apply_pod("ADDED", _POD.decode(msgspec.json.encode(each)), each["metadata"]["name"])
    return index


def parties_of(world, index):
    """Pods that are alike together; in turn, each after the one before."""
    if "template" in world:
        return [Party(problem=problem_of(world["template"], index), pods=world["replicas"])]
    alike = {}
    for number, each in enumerate(world["ordinals"]):
        key = number if world["ordered"] else json.dumps([each["metadata"]["labels"], each["spec"]], sort_keys=True)
        alike.setdefault(key, []).append(each)
    return [
        Party(problem=problem_of(pods[0], index), pods=len(pods), behind=number - 1 if world["ordered"] and number else None)
        for number, pods in enumerate(alike.values())
    ]


def problem_of(manifest, index):
    return take(index, as_created(_POD.decode(msgspec.json.encode(manifest)), RECORDED))


def ours(world):
    index = index_of(world)
    game = game_of(parties_of(world, index), index).game
    found = search(game, STATES)
    ends = Counter()
    for end, chance in zip(found.ends, found.chances, strict=True):
        ends[sum(end.placed)] += chance
    same = same_in_every_order(game)
    assert same is None or {same} == {*ends}, f"the closed form says {same}, the search {ends}"
    return found, ends


def compared(world, referee):
    """What differs; the number of states of ours, and whether all orders were followed."""
    theirs = referee.place({**world, "states": STATES})
    found, ends = ours(world)
    if not found.exact or not theirs["exact"]:
        return None, found.states
    said = {"fewest": min(ends), "most": max(ends)}
    differs = {name: (value, theirs[name]) for name, value in said.items() if value != theirs[name]}
    # With several kinds of pods the oracle draws one of all pairs of pod and node, we a pod and then its node.
    if "template" in world and any(abs(ends[int(pods)] - chance) > 1e-9 for pods, chance in theirs["ends"].items()):
        differs["ends"] = (ends, theirs["ends"])
    return differs, found.states


def main():
    oracle, seed, count, *chosen = sys.argv[1:]
    wrong = False
    with Referee(oracle) as referee:
        for name in chosen or FAMILIES:
            began, states, unknown, stuck, different = time.perf_counter(), 0, 0, 0, []
            for number in range(int(count)):
                world = {"id": f"{name}/{seed}/{number}", **FAMILIES[name](random.Random(f"{name}/{seed}/{number}"))}
                differs, many = compared(world, referee)
                states += many
                unknown += differs is None
                if differs:
                    different.append((world, differs))
            wrong |= bool(different)
            print(f"{name}: {count} clusters, {len(different)} different, {unknown} unknown, {states / int(count):.0f} states each, "
                  f"{time.perf_counter() - began:.0f} s", flush=True)
            if different:
                smallest = min(different, key=lambda each: len(json.dumps(each[0])))
                print(smallest[1], json.dumps(smallest[0]))
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
