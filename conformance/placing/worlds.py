"""Random small clusters and workloads, by family: `world(family, seed, number)` is always the same.

A world is what `oracle place` reads. Families are those that a search of all orders has to be right about.
"""

import random

ZONE, HOSTNAME, RACK = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "example.com/rack"
WEB, DB = {"app": "web"}, {"app": "db"}
REVISION = "pod-template-hash"
KEYS = (ZONE,), (HOSTNAME,), (ZONE, HOSTNAME)


def node(name, zone, rack="", cpu="16", pods="110", taints=(), cordoned=False):
    labels = {HOSTNAME: name, ZONE: zone} | ({RACK: rack} if rack else {})
    room = {"cpu": cpu, "memory": "64Gi", "pods": pods}
    spec = {"taints": list(taints)} if taints else {}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec | ({"unschedulable": True} if cordoned else {}),
        "status": {"allocatable": room, "capacity": room},
    }


def constraint(key, max_skew, labels, **more):
    told = {"labelSelector": {"matchLabels": dict(labels)}, "whenUnsatisfiable": "DoNotSchedule"}
    return {"maxSkew": max_skew, "topologyKey": key, **told, **more}


def pod(name, labels, constraints=(), cpu="100m", **spec):
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    meta = {"name": name, "namespace": "shop", "labels": labels}
    more = {"topologySpreadConstraints": list(constraints)} if constraints else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers, **more, **spec}}


def zones(rng, most=3, nodes=3, **drawn):
    """Nodes; what is given besides is drawn for each of them."""
    return [
        node(f"{zone}{number}", zone, **{name: draw(rng) for name, draw in drawn.items()})
        for zone in "abcd"[: rng.randint(1, most)]
        for number in range(rng.randint(1, nodes))
    ]


def running(rng, nodes, labels, most=4, name="old"):
    found = [pod(f"{name}-{number}", labels) for number in range(rng.randint(0, most))]
    for each in found:
        each["spec"]["nodeName"] = rng.choice(nodes)["metadata"]["name"]
    return found


def spread(rng, *keys, skews=(1, 1, 2), labels=WEB, **more):
    return [constraint(key, rng.choice(skews), labels, **more) for key in rng.choice(keys)]


def term(key, labels):
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def required(*terms):
    return {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}


def one_constraint(rng):
    nodes = zones(rng, cpu=lambda r: r.choice(["16", "16", "1", "2"]))
    given = spread(rng, (ZONE,), (ZONE,), (HOSTNAME,), skews=(1, 1, 2, 3), labels=rng.choice([WEB, WEB, DB]))
    if rng.random() < 0.3:
        given[0]["minDomains"] = rng.randint(1, 4)
    template = pod("w", WEB, given, cpu=rng.choice(["100m", "900m"]))
    pods, replicas = running(rng, nodes, rng.choice([WEB, WEB, DB])), rng.randint(1, 7)
    return {"nodes": nodes, "pods": pods, "replicas": replicas, "template": template}


def two_keys(rng):
    nodes = zones(rng, rack=lambda r: r.choice("xy") if r.random() < 0.5 else "")
    given = spread(rng, *[(ZONE, HOSTNAME)] * 3, (ZONE, RACK), (RACK, HOSTNAME), (ZONE, RACK, HOSTNAME))
    pods, replicas = running(rng, nodes, WEB, 2), rng.randint(2, 7)
    return {"nodes": nodes, "pods": pods, "replicas": replicas, "template": pod("w", WEB, given)}


def policies(rng):
    taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    nodes = zones(rng, taints=lambda r: [taint] if r.random() < 0.3 else (), cordoned=lambda r: r.random() < 0.15)
    given = spread(rng, *KEYS)
    for each in given:
        for name in ("nodeTaintsPolicy", "nodeAffinityPolicy"):
            if rng.random() < 0.6:
                each[name] = rng.choice(["Honor", "Ignore"])
    spec = {}
    if rng.random() < 0.4:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if rng.random() < 0.4:
        spec["nodeSelector"] = {ZONE: rng.choice("ab")}
    pods, replicas = running(rng, nodes, WEB), rng.randint(1, 6)
    return {"nodes": nodes, "pods": pods, "replicas": replicas, "template": pod("w", WEB, given, **spec)}


def affinity(rng):
    nodes, wanted = zones(rng), {}
    if rng.random() < 0.6:
        wanted["podAntiAffinity"] = required(term(rng.choice([HOSTNAME, ZONE]), rng.choice([WEB, DB])))
    if rng.random() < 0.5:
        wanted["podAffinity"] = required(term(rng.choice([ZONE, ZONE, HOSTNAME]), rng.choice([WEB, WEB, DB])))
    others = running(rng, nodes, DB, 3, "db")
    for each in others:
        if rng.random() < 0.3:
            each["spec"]["affinity"] = {"podAntiAffinity": required(term(rng.choice([ZONE, HOSTNAME]), WEB))}
    template = pod("w", WEB, spread(rng, *KEYS), affinity=wanted)
    pods = running(rng, nodes, WEB, 2) + others
    return {"nodes": nodes, "pods": pods, "replicas": rng.randint(1, 6), "template": template}


def resources(rng):
    nodes = zones(rng, cpu=lambda r: r.choice("1223"), pods=lambda r: r.choice(["1", "2", "3", "110"]))
    template = pod("w", WEB, spread(rng, *KEYS, (ZONE, HOSTNAME)), cpu=rng.choice(["500m", "900m", "1", "1500m"]))
    if rng.random() < 0.2:
        template["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    pods, replicas = running(rng, nodes, WEB, 3), rng.randint(2, 7)
    return {"nodes": nodes, "pods": pods, "replicas": replicas, "template": template}


def ordinals(rng, *, ordered):
    """Pods one by one, some of which may go to one zone only."""
    nodes, every, given = zones(rng), [], spread(rng, *KEYS, (ZONE, HOSTNAME))
    for number in range(rng.randint(2, 5)):
        every.append(pod(f"web-{number}", WEB, given))
        if rng.random() < 0.4:
            every[-1]["spec"]["nodeSelector"] = {ZONE: rng.choice("abc")}
    return {"nodes": nodes, "pods": running(rng, nodes, WEB, 2), "ordinals": every, "ordered": ordered}


def claims(rng, *, ordered):
    """A StatefulSet with volumes: bound in a zone, yet to be made there or anywhere, never bound, or missing."""
    nodes, given = zones(rng), spread(rng, *KEYS, (ZONE, HOSTNAME))
    world = {"nodes": nodes, "pods": running(rng, nodes, WEB, 2), "ordinals": [], "ordered": ordered}
    volumes, bound = world.setdefault("persistentVolumes", []), world.setdefault("persistentVolumeClaims", [])
    world["storageClasses"] = [storage_class("late", "WaitForFirstConsumer"), storage_class("now", "Immediate"),
                               storage_class("near", "WaitForFirstConsumer", rng.choice("ab"))]  # fmt: skip
    for number in range(rng.randint(2, 5)):
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-web-{number}"}}
        world["ordinals"].append(pod(f"web-{number}", WEB, given, volumes=[volume]))
        kind = rng.choice(["bound", "bound", "bound", "late", "late", "late", "near", "near", rng.choice(["now", "missing"])])
        if kind == "missing":
            continue
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claim |= {"storageClassName": "late" if kind == "bound" else kind}
        meta = {"name": f"data-web-{number}", "namespace": "shop"}
        if kind == "bound":
            meta["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
            volumes.append(volume_in(rng.choice("abc"), f"pv-{number}", meta["name"]))
        status = {"phase": "Bound" if kind == "bound" else "Pending"}
        spec = claim | ({"volumeName": f"pv-{number}"} if kind == "bound" else {})
        bound.append({"metadata": meta, "spec": spec, "status": status})
    return world


def storage_class(name, mode, zone=None):
    within = [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}]
    more = {} if zone is None else {"allowedTopologies": within}
    return {"metadata": {"name": name}, "provisioner": "csi.example.com", "volumeBindingMode": mode, **more}


def volume_in(zone, name, claim):
    within = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    return {
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": "shop", "name": claim},
            "csi": {"driver": "csi.example.com", "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [within]}},
            "storageClassName": "late",
        },
        "status": {"phase": "Bound"},
    }


def two_workloads(rng):
    nodes, both, every = zones(rng, cpu=lambda r: r.choice(["2", "2", "3", "16"])), {"part-of": "shop"}, []
    for name in ("web", "api"):
        own = {"app": name}
        given = spread(rng, (), *KEYS, labels=rng.choice([both, own]))
        spec, cpu = {}, rng.choice(["100m", "500m", "1", "1500m"])
        if rng.random() < 0.25:
            apart = term(rng.choice([HOSTNAME, ZONE]), rng.choice([both, own, WEB]))
            spec["affinity"] = {"podAntiAffinity": required(apart)}
        labels = {**own, **both}
        every += [pod(f"{name}-{number}", labels, given, cpu=cpu, **spec) for number in range(rng.randint(1, 3))]
    return {"nodes": nodes, "pods": running(rng, nodes, {**WEB, **both}, 2), "ordinals": every, "ordered": False}


def rollout(rng):
    """A Deployment that goes from one template to another, from wherever its pods are."""
    nodes = zones(rng, nodes=2, cpu=lambda r: r.choice(["16", "1", "2"]))
    by_revision = {"matchLabelKeys": [REVISION]} if rng.random() < 0.4 else {}
    given, spec = spread(rng, *KEYS, **by_revision), {}
    if rng.random() < 0.2:
        spec["affinity"] = {"podAntiAffinity": required(term(HOSTNAME, WEB))}
    replicas, cpu = rng.randint(1, 5), rng.choice(["100m", "900m"])
    old = [pod(f"web-old-{number}", {**WEB, REVISION: "old"}, given, cpu, **spec) for number in range(replicas)]
    for each in old:
        each["spec"]["nodeName"] = rng.choice(nodes)["metadata"]["name"]
    surge = rng.randint(0, 2)
    return {
        "nodes": nodes,
        "pods": running(rng, nodes, rng.choice([WEB, DB]), 2) + old,
        "replicas": replicas,
        "template": pod("w", {**WEB, REVISION: "new"}, given, cpu, **spec),
        "rollout": {
            "leaving": [f"shop/{each['metadata']['name']}" for each in old],
            "surge": surge,
            "unavailable": rng.randint(0 if surge else 1, 2),
        },
    }


FAMILIES = {
    "one constraint": one_constraint,
    "two keys": two_keys,
    "policies and taints": policies,
    "affinity": affinity,
    "resources": resources,
    "pinned pods": lambda rng: ordinals(rng, ordered=False),
    "volumes and claims": lambda rng: claims(rng, ordered=False),
    "OrderedReady": lambda rng: (claims if rng.random() < 0.7 else ordinals)(rng, ordered=True),
    "rollout": rollout,
    "two workloads": two_workloads,
}


def world(family, seed, number):
    name = f"{family}/{seed}/{number}"
    return {"id": name, **FAMILIES[family](random.Random(name))}
