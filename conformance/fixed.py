"""Whether what `explain` offers helps: every fix and relief, applied to fresh scenarios and decided by Kubernetes' own code.

usage: python fixed.py ORACLE PROFILE SEED COUNT

Of COUNT scenarios of a profile, those whose pod no node admits are explained. Each fix, and each toleration, is written
into the pod: just the nodes that are named must then admit it, and kube-apiserver must take it where it takes the pod
as it is. A cordon is lifted, and a node given room, one node at a time. A third of the pods get a misspelt key, and a
third an owner whose selector is narrower than what the constraints count.
"""

import json
import random
import subprocess
import sys
from collections import Counter

import msgspec

from webhook.conformance.validate_cases import members
from webhook.conformance.verdict_cases import read_scenario
from webhook.core.index import node_sets
from webhook.core.explain.explanation import explain_pod
from webhook.core.scheduler.plugins.node_resources_fit import NODE_RESOURCES_FIT
from webhook.core.scheduler.problem import CAPACITY_FILTERS, take

MISSPELT = {"topology.kubernetes.io/zone": "topology.kubernetes.io/zoen", "kubernetes.io/hostname": "kubernetes.io/host"}
ROOM = {"cpu": "1000", "memory": "100Ti", "ephemeral-storage": "100Ti", "hugepages-2Mi": "1Ti", "pods": "10000"}


def ask(oracle, command, lines):
    text = "".join(json.dumps(each) + "\n" for each in lines)
    done = subprocess.run([oracle, command], input=text, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def varied(scenario, rng):
    pod = scenario["pod"]
    for each in pod["spec"].get("topologySpreadConstraints", ()) if rng.random() < 1 / 3 else ():
        each["topologyKey"] = MISSPELT.get(each["topologyKey"], each["topologyKey"])
    labels = pod["metadata"].get("labels")
    if labels and rng.random() < 1 / 3:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "own", "uid": "own", "controller": True}
        pod["metadata"]["ownerReferences"] = [owner]
        meta = {"name": "own", "namespace": pod["metadata"].get("namespace", "default"), "uid": "own"}
        spec = {"selector": {"matchLabels": labels}}
        scenario.setdefault("replicaSets", []).append({"metadata": meta, "spec": spec})
    return scenario


def with_fix(scenario, fix):
    scenario = json.loads(json.dumps(scenario))
    constraints = scenario["pod"]["spec"]["topologySpreadConstraints"]
    for change in fix.changes:
        if not change.field:
            constraints[change.index] = None
        elif change.value is None:
            constraints[change.index].pop(change.field)
        else:
            constraints[change.index][change.field] = msgspec.to_builtins(change.value)
    scenario["pod"]["spec"]["topologySpreadConstraints"] = [each for each in constraints if each is not None]
    return scenario


def with_tolerations(scenario, tolerations):
    scenario = json.loads(json.dumps(scenario))
    spec = scenario["pod"]["spec"]
    spec["tolerations"] = [*(spec.get("tolerations") or ()), *msgspec.to_builtins(tolerations)]
    return scenario


def with_node(scenario, name, change):
    scenario = json.loads(json.dumps(scenario))
    change(next(each for each in scenario["nodes"] if each["metadata"]["name"] == name))
    return scenario


def uncordoned(node):
    """Without the cordon, and without the taint that comes and goes with it."""
    node["spec"].pop("unschedulable")
    taints = node["spec"].get("taints") or ()
    node["spec"]["taints"] = [each for each in taints if each["key"] != "node.kubernetes.io/unschedulable"]


def roomy(node, resources):
    """Room for what the pod asks for, and for the pod."""
    node["status"]["allocatable"] |= {name: ROOM.get(name, "100000") for name in ("pods", *resources)}


def offers(scenario, found):
    """What is offered, as the changed scenario, the nodes that are to admit the pod, and whether there may be more."""
    names = found.verdict.nodes.names
    for fix in found.fixes:
        field = "+".join(dict.fromkeys(each.field or "remove" for each in fix.changes))
        yield field, with_fix(scenario, fix), {names[slot] for slot in node_sets.to_slots(fix.open)}, False
    for relief in found.reliefs:
        nodes = [names[slot] for slot in node_sets.to_slots(relief.nodes)]
        if relief.what == "toleration":
            yield relief.what, with_tolerations(scenario, relief.tolerations), set(nodes), False
        elif relief.what == "uncordon":
            for name in nodes:
                yield relief.what, with_node(scenario, name, uncordoned), {name}, True
        else:
            others = [each for each in found.obstacles if each.plugin in CAPACITY_FILTERS - {NODE_RESOURCES_FIT}]
            for name in nodes:
                slot = found.verdict.nodes.slots[name]
                if not any(each.nodes >> slot & 1 for each in others):
                    wanted = [resource for resource, _ in found.problem.request.amounts]
                    changed = with_node(scenario, name, lambda node, asked=wanted: roomy(node, asked))
                    yield relief.what, changed, {name}, True


def main(oracle, profile, seed, count):
    rng = random.Random(seed)
    command = [oracle, "generate", "--kind", "verdict", "--profile", profile, "--seed", seed, "--count", count]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    asked, wanted = [], []
    for line in made.splitlines():
        scenario = varied(json.loads(line), rng)
        read = read_scenario(members(json.dumps(scenario).encode()))
        found = explain_pod(take(read.index, read.pod, read.defaults), read.index)
        for what, changed, nodes, more in offers(scenario, found):
            asked.append(changed)
            wanted.append((what, scenario, nodes, more))
    wrong, tried = Counter(), Counter()
    for (what, scenario, nodes, more), verdict in zip(wanted, ask(oracle, "verdict", asked), strict=True):
        tried[what] += 1
        admitting = {name for name, status in verdict.get("nodes", {}).items() if status["code"] == "Success"}
        if not (nodes <= admitting if more else nodes == admitting):
            wrong[what] += 1
            if wrong[what] == 1:
                print(f"{scenario['id']}: {what} was to open {sorted(nodes)} and opens {sorted(admitting)}"[:600])
    before = [{"id": "x", "object": {"apiVersion": "v1", "kind": "Pod", **each[1]["pod"]}} for each in wanted]
    after = [{"id": "x", "object": {"apiVersion": "v1", "kind": "Pod", **each["pod"]}} for each in asked]
    answers = zip(wanted, ask(oracle, "validate", before), ask(oracle, "validate", after), strict=True)
    for (what, scenario, _, _), one, other in answers:
        if other["errors"] and not one["errors"]:
            wrong[f"{what} refused"] += 1
            print(f"{scenario['id']}: {what} is refused: {other['errors'][0]}"[:600])
    print(f"{profile}: {sum(tried.values())} offers tried, {sum(wrong.values())} do not hold;", dict(tried))
    if wrong or not tried:
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
