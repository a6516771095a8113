"""What each rule claims, read from the words of its findings: one entry a rule, one function a kind of claim.

A reading takes the inspection of one world and the finding, and yields what is wrong with it. Where the words of a
rule change, its pattern here changes, and nothing else.
"""

import json
import re

from conformance.claims.controller import constraints_of, hard_of, is_served, most_of, own_names, runtime_of, template_of
from conformance.claims.together import RULE as DIFFER
from conformance.claims.together import differ, one_controller, others, short
from conformance.claims.worlds import HOSTNAME, NAMESPACE, ZONE, admitted

ROLLOUT = "rollout-can-get-stuck"
FIT = re.compile(r"at most (\d+) (?:of (\d+) fit|pods? fit)")
HOLD = re.compile(r"holds? at most (\d+)(?: of (\d+))? pods?")
LOSS = re.compile(r"if zone (\S+) goes NotReady, (?:at least )?(\d+) of (\d+) stay Pending")
CAPPED = re.compile(r"minDomains (\d+), but (?:1|(\d+)) eligible .+, with at most (?:1 pod|(\d+) pods)")
SHUT_OUT = re.compile(r"(\d+) of (\d+) usable nodes lacks? the label, so .* excludes")
TOGETHER = re.compile(r"all (\d+) running pods are (?:in|on) (?:zone|node|one) ?(\S*)")
COUNTED = re.compile(r"also counts? (.+)")
NEXT = re.compile(r"the next pod can go to (?:1 node|(\d+) nodes), and to (\d+) without .* that have no (\S+) constraint")
OTHERS = re.compile(r"(\d+) (?:pods? )?of ")


def ceiling(world, finding, patterns=(FIT, HOLD)):
    """No order places more than it says, beside what runs."""
    found = next((match for each in patterns if (match := each.search(finding.summary))), None)
    if found is None:
        yield f"not understood: {finding.summary}"
        return
    admitted, wanted = int(found[1]), int(found[2]) if found[2] else most_of(world.world)
    if found[2] and wanted != world.wanted:
        yield f"says of {wanted} replicas, there are {world.wanted}"
    placed = world.place(replicas=wanted)
    most = placed["staying"] + placed["most"]
    if most > admitted:
        yield f"{most} of {wanted} find a place in some order, it says at most {admitted}"


def blamed(world, finding):
    """A ceiling for which the constraints are to blame: without any hard one, more pods find a place."""
    yield from ceiling(world, finding)
    found = next((match for each in (FIT, HOLD) if (match := each.search(finding.summary))), None)
    if found is None:
        return
    wanted = int(found[2]) if found[2] else most_of(world.world)
    placed = world.place(replicas=wanted)
    free = world.place(replicas=wanted, manifest=softened(world.manifest))
    if placed["exact"] and free["most"] <= placed["fewest"] and staying(placed) + placed["fewest"] < wanted:
        yield f"without any hard constraint {free['most']} find a place, with them as many"


def zone_loss(world, finding):
    """Some pods fit today, and in every order so many replacements wait."""
    found = LOSS.search(finding.summary)
    if found is None:
        yield f"not understood: {finding.summary}"
        return
    zone, pending, wanted = found[1], int(found[2]), int(found[3])
    if wanted != world.wanted:
        yield f"says of {wanted} replicas, there are {world.wanted}"
    today = world.place()
    if today["staying"] + today["fewest"] < world.wanted:
        yield f"only {today['staying'] + today['fewest']} of {wanted} fit today in some order"
    lose = {"key": ZONE, "value": zone, "truth": "unreachable"}
    placed = world.place(lose={**lose, "after": True} if today["queued"] else lose)
    if placed["pending"] < pending:
        yield f"in some order {placed['pending']} stay Pending, it says at least {pending}"
    free = world.place(manifest=softened(world.manifest), lose={**lose, "after": True} if today["queued"] else lose)
    if free["exact"] and placed["exact"] and free["pending"] >= placed["mostPending"] > 0:
        yield f"without any hard constraint {free['pending']} stay Pending too"


def min_domains(world, finding):
    """A cap on each domain, which no order passes and some workload's replicas could."""
    found = CAPPED.search(finding.summary)
    if found is None:
        yield from ceiling(world, finding)
        return
    if (total := re.search(r"can hold (\d+)", finding.detail)) is not None:
        placed = world.place(replicas=most_of(world.world), anew=True)
        if placed["most"] > int(total[1]):
            yield f"{placed['most']} find a place in some order, it says {total[1]}"
    if world.manifest["kind"] != "Pod":
        placed = world.place(replicas=most_of(world.world))
        if placed["exact"] and placed["fewest"] == placed["queued"] and not placed.get("lost"):
            yield "all replicas find a place in every order"


def key_unknown(world, finding):
    if finding.summary.startswith("pods stay Pending") and world.place(anew=True)["most"]:
        yield "a pod finds a place"


def key_partial(world, finding):
    """How many nodes it shuts out: those that take a pod without the constraint and not with it."""
    if "pods stay Pending" in finding.summary:
        if world.place(anew=True)["most"]:
            yield "a pod finds a place"
        return
    found = SHUT_OUT.search(finding.summary)
    if found is None:
        return
    index = int(re.search(r"\[(\d+)\]", finding.path)[1])
    key = constraints_of(world.manifest)[index]["topologyKey"]
    usable = [each for each in world.nodes() if is_usable(world, each)]
    lacking = [each for each in usable if key not in each["metadata"]["labels"]]
    if (len(lacking), len(usable)) != (int(found[1]), int(found[2])):
        yield f"{len(lacking)} of {len(usable)} usable nodes lack the key"


PASSING = ("not-ready", "unreachable", "unschedulable")


def is_usable(world, node):
    """Node selector, affinity, RuntimeClass and taints let the pods in, and nothing happens to the node."""
    taints = [each["key"] for each in node["spec"].get("taints", ())]
    if any(f"node.kubernetes.io/{name}" in taints for name in PASSING) or node["spec"].get("unschedulable"):
        return False
    manifest, runtime = json.loads(json.dumps(world.manifest)), runtime_of(world.world)
    if runtime is not None:
        template_of(manifest)["spec"].update(admitted(template_of(manifest)["spec"], runtime))
    return is_served(manifest, node)


GROUPED = re.compile(r"SpreadGroup all: (zone|node)s? (.+?) ha(?:s|ve) (\d+) pods?, (?:but the cap is|and the cap of) (\d+)")


def group_cap(world, finding):
    """Of a broken cap: so many pods of the group are there, and fewer may be."""
    found = GROUPED.match(finding.summary)
    if found is None:
        return  # pods to come
    of = next(each for each in world.world["objects"] if each["kind"] == "SpreadGroup")
    key = of["spec"]["caps"][0]["topologyKey"]
    places = {each["metadata"]["name"]: each["metadata"]["labels"].get(key) for each in world.nodes()}
    counted = [each for each in world.pods() if counts(of["spec"]["selector"], each) and each["spec"]["nodeName"] in places]
    there = [places[each["spec"]["nodeName"]] for each in counted]
    wanted = None if found[2].startswith("without the label") else found[2]
    if there.count(wanted) != int(found[3]) or there.count(wanted) <= int(found[4]):
        yield f"{there.count(wanted)} pods of the group are there"


def too_wide(world, finding):
    """How many pods of others it counts, and what they change for the next one."""
    found = COUNTED.search(finding.summary)
    if found is None:
        yield f"not understood: {finding.summary}"
        return
    index = int(re.search(r"\[(\d+)\]", finding.path)[1])
    selector = constraints_of(world.manifest)[index]["labelSelector"]
    own = (world.manifest["spec"].get("selector") or {}).get("matchLabels") or {}
    counted = [each for each in world.pods() if counts(selector, each) and not own.items() <= each["metadata"]["labels"].items()]
    pods = [each for each in counted if not is_shard(world, each)]
    said = sum(int(each) for each in OTHERS.findall(found[1]))
    if said != len(pods):
        yield f"the selector counts {len(pods)} pods of others, it says {said}"
    if (change := NEXT.search(finding.detail)) is None:
        return
    now = next_nodes(world)
    if now != int(change[1] or 1):
        yield f"the next pod may go to {now} nodes, it says {change[1] or 1}"
    if template_of(world.manifest)["spec"].get("affinity"):
        return  # which the pods of others may keep it out of, or let it in
    key = next(each["topologyKey"] for each in constraints_of(world.manifest)[index:] if short(each["topologyKey"]) == change[3])
    without = next_nodes(world, unlabelled=uneven(world, pods, key))
    if without != int(change[2]):
        yield f"without them the next pod may go to {without} nodes, it says {change[2]}"


def is_shard(world, pod):
    """Whether one controller made the pod's workload and the world's."""
    name = pod["metadata"]["ownerReferences"][0]["name"]
    return any(one_controller(world.manifest, each) for each in others(world) if each["metadata"]["name"] == name)


def next_nodes(world, unlabelled=()):
    """To how many nodes the next pod may go, if these pods have no labels."""
    question = world.question(replicas=len(own_names(world.world)) + 1)
    bare = [{**each, "metadata": {**each["metadata"], "labels": {}}} if each in unlabelled else each for each in question["pods"]]
    return len(world.referee.place({**question, "pods": bare})["first"])


def uneven(world, pods, key):
    """Those of the pods whose workload has no constraint over the key."""
    keys = {
        each["metadata"]["name"]: {one["topologyKey"] for one in template_of(each)["spec"].get("topologySpreadConstraints", ())}
        for each in world.world["objects"]
        if each["kind"] in {"Deployment", "StatefulSet", "DaemonSet"}
    }
    return [each for each in pods if key not in keys.get(each["metadata"]["ownerReferences"][0]["name"], ())]


def counts(selector, pod):
    """Whether a selector matches a pod that counts."""
    if pod["metadata"].get("deletionTimestamp") or not pod["spec"].get("nodeName") or pod["status"]["phase"] in {"Succeeded", "Failed"}:
        return False
    labels = pod["metadata"]["labels"]
    plain = (selector.get("matchLabels") or {}).items() <= labels.items()
    return plain and all(labels.get(each["key"]) in each["values"] for each in selector.get("matchExpressions", ()))


def all_in_one(world, finding):
    """Where the pods stand, and that a pod made anew may go elsewhere, with the fix where it changes the constraints."""
    found = TOGETHER.search(finding.summary)
    if found is None:
        yield f"not understood: {finding.summary}"
        return
    own = [each for each in world.pods() if f"{NAMESPACE}/{each['metadata']['name']}" in own_names(world.world)]
    own = [each for each in own if not each["metadata"].get("deletionTimestamp")]
    key = ZONE if " in zone " in finding.summary or "in one zone" in finding.summary else HOSTNAME
    by_name = {each["metadata"]["name"]: each["metadata"]["labels"] for each in world.nodes()}
    domains = {by_name[each["spec"]["nodeName"]].get(key) for each in own}
    if len(own) != int(found[1]) or len(domains) != 1:
        yield f"{len(own)} own pods in {len(domains)} domains"
    elsewhere = set()
    question = world.question(anew=True, manifest=alone(world.manifest) if "own selector" in finding.fix else None)
    for ordinal in question.get("ordinals", [None]):
        one = {**question, "ordinals": [ordinal], "ordered": False} if ordinal else {**question, "replicas": 1}
        elsewhere |= {by_name[name].get(key) for name in world.referee.place(one)["first"]}
    if not elsewhere - domains:
        yield "made anew, no pod may go to another domain"


def alone(manifest):
    """The manifest whose constraints have the workload's own selector."""
    copy = json.loads(json.dumps(manifest))
    for each in constraints_of(copy):
        each["labelSelector"] = copy["spec"]["selector"]
    return copy


def without_effect(world, finding):
    """Nothing changes without the constraint: not one step of any order."""
    index = int(re.search(r"\[(\d+)\]", finding.path)[1])
    if constraints_of(world.manifest)[index].get("whenUnsatisfiable") == "ScheduleAnyway":
        return
    without = edited(world.manifest, [(finding.path, None)])
    for anew in (False, True):
        one, other = world.place(anew=anew), world.place(manifest=without, anew=anew)
        if one["exact"] and other["exact"] and (one["first"], rounded(one)) != (other["first"], rounded(other)):
            if "keeps pods off nodes without the key" in finding.detail:
                continue
            yield f"without it the orders end {other['ends']} instead of {one['ends']}, the first pod on {len(other['first'])} nodes, not {len(one['first'])}"
            return


def rounded(placed):
    return {number: round(chance, 6) for number, chance in placed["ends"].items()}


def no_place(world, finding):
    """A pod has no place; one without hard constraints has, where they are the cause; each fix opens as many nodes."""
    if world.place()["most"]:
        yield "it has a place"
    spread = "cause: spread" in finding.detail
    free = world.place(manifest=softened(world.manifest))["first"]
    if spread != bool(free):
        yield f"without hard constraints {len(free)} nodes take it, it says {finding.detail.partition(';')[0]}"


ROLLOUT_PLACES = re.compile(
    r"^(some orders of a rollout place|a rollout places(?: at most)?) (\d+|none) of (\d+) new pods"
)
REPLICAS_FIT = re.compile(r"^(?:(\d+) to )?(\d+) of (\d+) fit")
ORDERS_PLACE = re.compile(r"^some orders place (\d+) of (\d+)")


def do_not_fit(world, finding):
    """Of a pod that it has no place; of replicas how many every order places, and what is in the way."""
    found = REPLICAS_FIT.search(finding.summary)
    if found is None:
        yield from no_place(world, finding)
        return
    fewest, most, wanted = int(found[1] or found[2]), int(found[2]), int(found[3])
    placed = world.place(replicas=wanted)
    stay = staying(placed)
    if placed["exact"] and (stay + placed["fewest"], stay + placed["most"]) != (fewest, most):
        yield f"{stay} stay, {placed['fewest']} to {placed['most']} find a place, it says {fewest} to {most}"
    yield from spread_is_the_cause(world, finding, wanted)


def staying(placed):
    """Pods that need no place: those that run, and those that terminate for ever on unreachable nodes."""
    return placed["staying"] + placed.get("lost", 0)


def spread_is_the_cause(world, finding, wanted):
    """Without hard constraints every order places all, if and only if it says that they are the cause."""
    free = world.place(replicas=wanted, manifest=softened(world.manifest))
    if free["exact"] and ("cause: spread" in finding.detail) != (free["fewest"] == free["queued"]):
        yield f"without hard constraints {free['fewest']} of {free['queued']} find a place in every order"


def get_stuck(world, finding):
    """Some order places as few as it says, and another all."""
    found = ORDERS_PLACE.search(finding.summary)
    if found is None:
        yield f"not understood: {finding.summary}"
        return
    fewest, wanted = int(found[1]), int(found[2])
    placed = world.place(replicas=wanted)
    if placed["exact"] and (placed["most"] != placed["queued"] or staying(placed) + placed["fewest"] > fewest):
        yield f"orders end {placed['ends']}, {staying(placed)} stay, it says {fewest} of {wanted} in some"
    yield from spread_is_the_cause(world, finding, wanted)


def rollout_stuck(world, finding):
    """Of a Deployment: some order places as few new pods as it says, and another all, or none places more."""
    found = ROLLOUT_PLACES.search(finding.summary)
    if found is None:
        yield f"not understood: {finding.summary}"
        return
    if not world.is_rolled:
        return
    said, wanted = 0 if found[2] == "none" else int(found[2]), int(found[3])
    placed = world.roll()
    some = found[1].startswith("some")
    if placed["exact"] and (placed["most"] < wanted if some else placed["most"] != said):
        yield f"orders end {placed['ends']}, it says {finding.summary}"
    if placed["exact"] and some and placed["fewest"] > said:
        yield f"no order places fewer than {placed['fewest']}, it says {said}"
    free = world.roll(softened(world.manifest))
    if free["exact"] and ("cause: spread" in finding.detail) != (free["fewest"] == wanted):
        yield f"without hard constraints {free['fewest']} of {wanted} find a place in every order"


def softened(manifest):
    """The manifest without its hard constraints."""
    copy = json.loads(json.dumps(manifest))
    spec = template_of(copy)["spec"]
    spec["topologySpreadConstraints"] = [each for each in constraints_of(copy) if each not in hard_of(copy)]
    return copy


STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


def edited(manifest, edits):
    """The manifest as somebody has it who makes these changes: ``(path, value)``, None takes out."""
    copy, gone = json.loads(json.dumps(manifest)), object()
    taken = []
    for path, value in edits:
        steps = [int(number) if number else name for name, number in STEP.findall(path)]
        target = copy
        for step, after in zip(steps, steps[1:]):
            if isinstance(target, dict):
                target = target.setdefault(step, [] if isinstance(after, int) else {})
            else:
                target = target[step]
        last = steps[-1]
        if value is None:
            if isinstance(target, list):
                target[last] = gone
                taken.append(target)
            else:
                target.pop(last, None)
        elif isinstance(target, list) and last == len(target):
            target.append(value)
        else:
            target[last] = value
    for each in taken:
        each[:] = [one for one in each if one is not gone]
    return copy


# Rule -> what it claims, and whether a fix promises that all replicas find a place.
READINGS = {
    "tainted-nodes-counted": (blamed, True),
    "zone-host-ceiling": (blamed, True),
    "spread-conflicts-affinity": (blamed, True),
    "zone-loss-strands-pods": (zone_loss, True),
    "min-domains-unreachable": (min_domains, True),
    "topology-key-unknown": (key_unknown, False),
    "topology-key-partial": (key_partial, False),
    "selector-too-wide": (too_wide, False),
    "all-in-one-domain": (all_in_one, False),
    "spread-without-effect": (without_effect, False),
    "replicas-do-not-fit": (do_not_fit, True),
    "replicas-can-get-stuck": (get_stuck, True),
    ROLLOUT: (rollout_stuck, True),
    DIFFER: (differ, False),
    "group-cap": (group_cap, False),
}
