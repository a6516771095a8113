"""The smallest world in which a contradiction stays: nodes, pods and fields are dropped while it does."""

import json


def shrink(world, stays):
    """The world without everything that can go; ``stays`` says whether the contradiction is still there."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in candidates(world):
            if stays(candidate):
                world, smaller = candidate, True
                break
    return world


def candidates(world):
    objects = world["objects"]
    for number, each in enumerate(objects):
        if each["kind"] != "Namespace":
            yield {**world, "objects": objects[:number] + objects[number + 1 :]}
    names = {each["metadata"]["name"] for each in objects}
    for each in smaller_workloads(world["workload"]):
        if each["kind"] != "StatefulSet" or f"web-{each['spec']['replicas']}" not in names:
            yield {**world, "workload": each}
    for number, each in enumerate(objects):
        if each["kind"] == "Node":
            for smaller in smaller_nodes(each):
                yield {**world, "objects": [*objects[:number], smaller, *objects[number + 1 :]]}


def smaller_workloads(manifest):
    copy = json.loads(json.dumps(manifest))
    for field in ("replicas", "parallelism"):
        if copy["spec"].get(field, 1) > 1:
            yield with_value(copy, ("spec", field), copy["spec"][field] - 1)
    path = ("spec",) if copy["kind"] == "Pod" else ("spec", "template", "spec")
    spec = at(copy, path)
    for field in ("affinity", "nodeSelector", "tolerations"):
        if field in spec:
            yield without(copy, (*path, field))
    for number, each in enumerate(spec.get("topologySpreadConstraints", ())):
        yield without(copy, (*path, "topologySpreadConstraints", number))
        for field in ("minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy", "matchLabelKeys"):
            if field in each:
                yield without(copy, (*path, "topologySpreadConstraints", number, field))
        if each.get("maxSkew", 1) > 1:
            yield with_value(copy, (*path, "topologySpreadConstraints", number, "maxSkew"), each["maxSkew"] - 1)


def smaller_nodes(node):
    if node["spec"].get("unschedulable"):
        yield without(node, ("spec", "unschedulable"))
    for number in range(len(node["spec"].get("taints", ()))):
        yield without(node, ("spec", "taints", number))
    for label in node["metadata"]["labels"]:
        yield without(node, ("metadata", "labels", label))


def at(value, path):
    for step in path:
        value = value[step]
    return value


def without(value, path):
    copy = json.loads(json.dumps(value))
    del at(copy, path[:-1])[path[-1]]
    return copy


def with_value(value, path, new):
    copy = json.loads(json.dumps(value))
    at(copy, path[:-1])[path[-1]] = new
    return copy
