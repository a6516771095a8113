"""What our engine says of a world (`worlds`), in the referee's words."""

import json
from collections import Counter

import msgspec

from webhook.conformance.verdict_cases import read_scenario
from webhook.core.api.types import Pod
from webhook.core.api.version import RECORDED
from webhook.core.apiserver.pod_defaults import as_created
from webhook.core.placement.closed_forms import same_in_every_order
from webhook.core.placement.crowds import Party, game_of
from webhook.core.placement.game import Rollout
from webhook.core.placement.search import search
from webhook.core.scheduler.problem import take

LISTS = ("nodes", "pods", "persistentVolumes", "persistentVolumeClaims", "storageClasses")
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


def parties_of(world, index):
    """Pods that are alike together; with ``ordered``, each after the one before."""
    if "rollout" in world:
        old = [each for each in world["pods"] if name_of(each) in world["rollout"]["leaving"]]
        slots = index.view().slots
        leaving = Counter(slots[each["spec"]["nodeName"]] for each in old)
        spec = {name: value for name, value in old[0]["spec"].items() if name != "nodeName"}
        replaced = Party(problem=problem_of({**old[0], "spec": spec}, index), pods=0, leaving=leaving)
        return [replaced, Party(problem=problem_of(world["template"], index), pods=world["replicas"])]
    if "template" in world:
        return [Party(problem=problem_of(world["template"], index), pods=world["replicas"])]
    alike = {}
    for number, each in enumerate(world["ordinals"]):
        key = number if world["ordered"] else told_apart(world, each)
        alike.setdefault(key, []).append(each)
    return [
        Party(problem=problem_of(pods[0], index), pods=len(pods), behind=number - 1 if world["ordered"] and number else None)
        for number, pods in enumerate(alike.values())
    ]


def told_apart(world, pod):
    """What tells a pod from others; pods with volumes are each by themselves."""
    return json.dumps([pod["metadata"]["labels"], pod["spec"]], sort_keys=True)


def game_in(world):
    index = index_of(world)
    rollout = world.get("rollout")
    chosen = rollout and Rollout(0, 1, world["replicas"], rollout["surge"], rollout["unavailable"])
    return game_of(parties_of(world, index), index, rollout=chosen)


def has_packing_pools(world):
    return any(each.packs for each in game_in(world).game.classes)


def answer(world):
    """``fewest``, ``most``, ``ends`` as the referee has them; ``left``, the most pods of a rollout that stay too long.

    Errors: AssertionError where the closed form and the search differ.
    """
    game = game_in(world).game
    found = search(game, STATES)
    old = None if game.rollout is None else game.rollout.old
    ends, left = Counter(), 0
    for end, chance in zip(found.ends, found.chances, strict=True):
        ends[sum(pods for crowd, pods in enumerate(end.placed) if crowd != old)] += chance
        left = max(left, 0 if old is None else end.placed[old])
    same = same_in_every_order(game)
    assert same is None or not found.exact or {same} == {*ends}, f"the closed form says {same}, the search {ends}"
    said = {"exact": found.exact, "states": found.states, "ends": dict(ends), "left": left}
    return said | {"fewest": min(ends, default=0), "most": max(ends, default=0)}
