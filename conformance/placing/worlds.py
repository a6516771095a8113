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


def controller(kind, name, template, replicas, **spec):
    """The object that makes the pods, in the world's ``manifests``: `simulate` is asked about it as a file."""
    body = {"template": {"metadata": {"labels": template["metadata"]["labels"]}, "spec": template["spec"]}}
    body |= {"selector": {"matchLabels": {"app": template["metadata"]["labels"]["app"]}}}
    body |= {"parallelism": replicas, "manualSelector": True} if kind == "Job" else {"replicas": replicas}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": body | spec}


def labelled(template, name, **labels):
    """The pod as its controller names and labels it."""
    meta = template["metadata"]
    return {**template, "metadata": {**meta, "name": name, "labels": {**meta["labels"], **labels}}}


def named_by(set_name, number):
    """What a StatefulSet's controller adds to a pod."""
    name = f"{set_name}-{number}"
    return {"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": str(number), "controller-revision-hash": set_name}


def bare(rng, nodes, share=0.2):
    """Some nodes lack a key."""
    for each in nodes:
        if rng.random() < share:
            del each["metadata"]["labels"][rng.choice([ZONE, ZONE, HOSTNAME])]
    return nodes


def on(node_, pod_, kind=None, owner="other", leaves=False):
    """The pod on a node, with its controller; with ``leaves`` it is being deleted."""
    meta = dict(pod_["metadata"])
    if kind:
        version = "batch/v1" if kind == "Job" else "apps/v1"
        meta["ownerReferences"] = [{"apiVersion": version, "kind": kind, "name": owner, "uid": owner, "controller": True}]
    meta |= {"deletionTimestamp": "2026-11-24T06:00:00Z", "deletionGracePeriodSeconds": 30} if leaves else {}
    return {**pod_, "metadata": meta, "spec": {**pod_["spec"], "nodeName": node_["metadata"]["name"]}}


def terminating(rng):
    """Pods that are being deleted, at most one on a node: the workload's own, and those of every other controller."""
    nodes = bare(rng, zones(rng, cpu=lambda r: r.choice(["16", "1", "2"])), 0.06)
    kind, own_spec = rng.choice(["StatefulSet", "StatefulSet", "Deployment", "Job"]), {}
    apart = rng.random()
    if apart < 0.25:
        own_spec["affinity"] = {"podAntiAffinity": required(term(rng.choice([HOSTNAME, ZONE]), rng.choice([WEB, DB])))}
    elif apart < 0.31:
        own_spec["affinity"] = {"podAffinity": required(term(ZONE, rng.choice([WEB, DB])))}
    template = pod("w", WEB, spread(rng, *KEYS, (ZONE, HOSTNAME)), rng.choice(["100m", "900m"]), **own_spec)
    alone = rng.random() < 0.2  # a host port: one of its pods on a node
    if alone:
        template["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    replicas, parallel = rng.randint(2, 5), rng.random() < 0.5
    unreachable = [{"key": "node.kubernetes.io/unreachable", "effect": each} for each in ("NoSchedule", "NoExecute")]
    for each in nodes:
        if rng.random() < 0.12:
            each["spec"] = {"taints": unreachable}
    pods, own, free = [], [], rng.sample(nodes, len(nodes))
    for number in range(replicas if kind == "StatefulSet" else rng.randint(0, replicas)):
        # Its own pods: some run, some terminate, and some ordinals are missing.
        state = rng.choice(["runs", "leaves", "leaves", "missing"])
        takes_one = alone or state == "leaves"
        if state == "missing" or (takes_one and not free):
            continue
        extra = named_by("web", number) if kind == "StatefulSet" else {}
        made = labelled(template, f"web-{number}", **extra)
        pods.append(on(free.pop() if takes_one else rng.choice(nodes), made, kind, "web", state == "leaves"))
        own.append(f"shop/web-{number}")
    for each in free[: rng.randint(0, 2)]:
        other = pod(f"x-{len(pods)}", rng.choice([WEB, DB]), cpu=rng.choice(["100m", "900m"]))
        other["metadata"]["labels"] = {**other["metadata"]["labels"], "app": rng.choice(["db", "cache"])}
        pods.append(on(each, other, rng.choice(["StatefulSet", "ReplicaSet", "DaemonSet", "Job", None]), leaves=True))
    world = {"nodes": nodes, "pods": pods + running(rng, nodes, DB, 2, "db"), "own": own, "terminating": True}
    if kind == "StatefulSet":
        policy = {"podManagementPolicy": "Parallel"} if parallel else {}
        world |= {"manifests": [controller(kind, "web", template, replicas, **policy)], "ordered": not parallel}
        return world | {"ordinals": [labelled(template, f"web-{each}", **named_by("web", each)) for each in range(replicas)]}
    return world | {"manifests": [controller(kind, "web", template, replicas)], "template": template, "replicas": replicas}


def deployments(rng):
    """Several Deployments in one file beside pods that run, most of them spread by revision."""
    nodes, every, manifests, pods = zones(rng, cpu=lambda r: r.choice(["16", "16", "2"])), [], [], []
    both = {"part-of": "shop"}
    names = ("web", "api", "job")[: rng.randint(2, 3)]
    for name in names:
        by_revision = {"matchLabelKeys": [REVISION]} if rng.random() < 0.7 else {}
        given = spread(rng, *KEYS, labels=rng.choice([both, both, {"app": name}]), **by_revision)
        template = pod("w", {"app": name, **both}, given, rng.choice(["100m", "900m"]))
        replicas, there = rng.randint(1, 5 - len(names)), rng.choice([0, 0, 1])
        manifests.append(controller("Deployment", name, template, replicas))
        for number in range(there):
            made = labelled(template, f"{name}-old-{number}", **{REVISION: f"{name}-old"})
            pods.append(on(rng.choice(nodes), made, "ReplicaSet", f"{name}-old"))
        new = labelled(template, name, **{REVISION: f"{name}-new"})
        every += [labelled(new, f"{name}-{number}") for number in range(replicas - there)]
    others = running(rng, nodes, {"app": "db", **both}, 2, "db")
    return {"nodes": nodes, "pods": pods + others, "ordinals": every, "ordered": False, "manifests": manifests}


def recreate(rng):
    """A new revision with the strategy Recreate: the referee places it in a cluster without the old pods."""
    nodes = bare(rng, zones(rng, nodes=2, cpu=lambda r: r.choice(["16", "1", "2"]), cordoned=lambda r: r.random() < 0.15), 0.06)
    by_revision = {"matchLabelKeys": [REVISION]} if rng.random() < 0.3 else {}
    template = pod("w", WEB, spread(rng, *KEYS, (ZONE, HOSTNAME), **by_revision), rng.choice(["100m", "900m"]))
    replicas = rng.randint(1, 6)
    old = [on(rng.choice(nodes), labelled(template, f"web-{number}", **{REVISION: "old"}), "ReplicaSet", "web-old") for number in range(rng.randint(0, replicas))]
    manifest = controller("Deployment", "web", template, replicas, strategy={"type": "Recreate"})
    others = running(rng, nodes, DB, 3, "db")
    own = [f"shop/{each['metadata']['name']}" for each in old]
    world = {"nodes": nodes, "pods": others + old, "own": own, "anew": True, "manifests": [manifest], "rolls": True}
    return world | {"template": labelled(template, "w", **{REVISION: "new"}), "replicas": replicas}


def late_claims(rng):
    """A StatefulSet whose claims wait for their pods: classes for some zones, free volumes, published capacity."""
    nodes, given = bare(rng, zones(rng), 0.06), spread(rng, *KEYS, (ZONE, HOSTNAME))
    near = storage_class("near", "WaitForFirstConsumer", rng.choice("ab"))
    if rng.random() < 0.4:
        near["allowedTopologies"][0]["matchLabelExpressions"][0]["values"] = rng.sample("abc", 2)
    classes, replicas, parallel = [storage_class("late", "WaitForFirstConsumer"), near], rng.randint(2, 5), rng.random() < 0.5
    name, size = rng.choice(["near", "near", "late"]), rng.choice(["1Gi", "5Gi"])
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, "storageClassName": name}
    template = pod("w", WEB, given)
    templates = [{"metadata": {"name": "data"}, "spec": claim}]
    policy = {"podManagementPolicy": "Parallel"} if parallel else {}
    manifest = controller("StatefulSet", "web", template, replicas, volumeClaimTemplates=templates, **policy)
    world = {"nodes": nodes, "pods": running(rng, nodes, WEB, 2), "storageClasses": classes, "ordered": not parallel}
    if rng.random() < 0.3:
        world["csiDrivers"] = [{"metadata": {"name": "csi.example.com"}, "spec": {"storageCapacity": True}}]
        world["csiStorageCapacities"] = [
            {"metadata": {"name": f"{each}-{zone}", "namespace": "disks"}, "storageClassName": each, "capacity": rng.choice(["2Gi", "9Gi"]),
             "nodeTopology": {"matchLabels": {ZONE: zone}}}
            for each in ("near", "late") for zone in "abc" if rng.random() < 0.8
        ]  # fmt: skip
    claims_, volumes, ordinals_ = [], [], []
    for number in range(replicas):
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-web-{number}"}}
        made = labelled(template, f"web-{number}", **named_by("web", number))
        ordinals_.append({**made, "spec": {**made["spec"], "volumes": [volume]}})
        found = {"metadata": {"name": f"data-web-{number}", "namespace": "shop"}, "spec": dict(claim), "status": {"phase": "Pending"}}
        if rng.random() < 0.2:
            found["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
            found["spec"]["volumeName"], found["status"] = f"pv-{number}", {"phase": "Bound"}
            volumes.append(volume_in(rng.choice("abc"), f"pv-{number}", f"data-web-{number}"))
        claims_.append(found)
    # Its controller makes a claim that is not there; the referee needs it from the start.
    hidden = [each["metadata"]["name"] for each in claims_ if each["status"]["phase"] == "Pending" and rng.random() < 0.6]
    return world | {"persistentVolumes": volumes, "persistentVolumeClaims": claims_, "hidden": hidden, "ordinals": ordinals_, "manifests": [manifest]}


def runtime_classes(rng):
    """Pods whose RuntimeClass adds nodes, tolerations and overhead, on nodes of which some lack a key."""
    taint = {"key": "sandbox", "value": "yes", "effect": "NoSchedule"}
    nodes = bare(rng, zones(rng, taints=lambda r: [taint] if r.random() < 0.4 else (), cpu=lambda r: r.choice(["16", "1", "2"])))
    for each in nodes:
        each["metadata"]["labels"]["pool"] = rng.choice("pq")
    scheduling = {}
    if rng.random() < 0.5:
        scheduling["nodeSelector"] = {"pool": "p"}
    if rng.random() < 0.6:
        scheduling["tolerations"] = [{"key": "sandbox", "operator": "Exists", "effect": "NoSchedule"}]
    overhead = {"cpu": rng.choice(["250m", "900m"])} if rng.random() < 0.6 else {}
    given = spread(rng, *KEYS, (ZONE, HOSTNAME))
    for each in given:
        for name in ("nodeTaintsPolicy", "nodeAffinityPolicy"):
            if rng.random() < 0.4:
                each[name] = rng.choice(["Honor", "Ignore"])
    written = {"nodeSelector": {ZONE: rng.choice("ab")}} if rng.random() < 0.15 else {}
    template, replicas = pod("w", WEB, given, rng.choice(["100m", "900m"]), runtimeClassName="sandbox", **written), rng.randint(1, 6)
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "sandbox"}, "handler": "runsc"}
    runtime |= ({"scheduling": scheduling} if scheduling else {}) | ({"overhead": {"podFixed": overhead}} if overhead else {})
    # As kube-apiserver's RuntimeClass plugin leaves the pod.
    selector = {**written.get("nodeSelector", {}), **scheduling.get("nodeSelector", {})}
    added = ({"nodeSelector": selector} if selector else {}) | ({"overhead": overhead} if overhead else {})
    added |= {"tolerations": scheduling["tolerations"]} if "tolerations" in scheduling else {}
    pods, kind = running(rng, nodes, rng.choice([WEB, DB]), 3), rng.choice(["Deployment", "ReplicaSet", "Job"])
    own = [name for each in pods if each["metadata"]["labels"] == WEB for name in [f"shop/{each['metadata']['name']}"]]
    world = {"nodes": nodes, "pods": pods, "own": own, "objects": [runtime]}
    manifest = controller(kind, "web", template, replicas)
    return world | {"manifests": [manifest], "template": {**template, "spec": {**template["spec"], **added}}, "replicas": replicas}


# Each has ``manifests`` beside the pods: `evenspread simulate` reads the manifests and makes its pods itself.
MANIFESTS = {
    "terminating pods": terminating,
    "several Deployments": deployments,
    "Recreate": recreate,
    "claims yet to be bound": late_claims,
    "RuntimeClass": runtime_classes,
}


TAINT = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}


def spans(rng, zones, racks):
    """The zones of each rack: every one, some, or a few racks that cross while the others have one zone."""
    kind = rng.choice(["grid", "some", "some", "few", "nested"])
    for rack in racks:
        many = {"grid": len(zones), "some": rng.randint(1, len(zones)), "few": 1 + (rng.random() < 0.3), "nested": 1}[kind]
        yield rack, rng.sample(zones, min(many, len(zones)))


def machines(rng, zones, racks, count):
    """Nodes in the cells of racks and zones; some cells are larger, and a few nodes lack a key."""
    cells = [(zone, rack) for rack, inside in spans(rng, zones, racks) for zone in inside]
    weights = [1 for _ in cells] if rng.random() < 0.3 else [rng.choice([1, 1, 1, 2, 4]) for _ in cells]
    rare, taints, cpu = rng.choice([0, 0, 0.05, 0.2]), rng.choice([0, 0.1, 0.4]), rng.choice([["64"], ["64", "2"], ["1", "2", "3"]])
    for number in range(count):
        zone, rack = rng.choices(cells, weights)[0]
        made = node(f"n{number}", zone, rack, cpu=rng.choice(cpu), taints=[TAINT] if rng.random() < taints else ())
        if rng.random() < rare:
            del made["metadata"]["labels"][rng.choice([ZONE, RACK])]
        yield made


def crossing_constraints(rng, zones, racks, skews):
    found = [constraint(key, rng.choice(skews), WEB) for key in (ZONE, RACK)]
    if rng.random() < 0.3:
        found.append(constraint(HOSTNAME, rng.choice(skews), WEB))
    if rng.random() < 0.2:
        each = rng.choice(found[:2])
        each["minDomains"] = len(zones if each["topologyKey"] == ZONE else racks) + rng.choice([-1, 0, 1])
        each["minDomains"] = max(1, each["minDomains"])
    if rng.random() < 0.3:
        found.append(constraint(rng.choice([ZONE, HOSTNAME]), 1, WEB) | {"whenUnsatisfiable": "ScheduleAnyway"})
        if any(each["topologyKey"] == found[-1]["topologyKey"] for each in found[:-1]):
            found[-1]["labelSelector"] = {"matchLabels": DB}
    return found


def crossing(rng, zones, racks, nodes, replicas, pods):  # noqa: PLR0913, PLR0917 each a size
    zones, racks = [f"z{n}" for n in range(zones)], [f"r{n}" for n in range(racks)]
    every = [*machines(rng, zones, racks, nodes)]
    given = crossing_constraints(rng, zones, racks, rng.choice([(1,), (1, 2), (1, 2, 3), (2, 5)]))
    spec = {"tolerations": [{"key": "dedicated", "operator": "Exists"}]} if rng.random() < 0.3 else {}
    template = pod("w", WEB, given, cpu=rng.choice(["100m", "500m", "900m"]), **spec)
    there = running(rng, every, WEB, pods) + running(rng, every, DB, pods, "db")
    return {"nodes": every, "pods": there, "replicas": replicas, "template": template}


def crossing_keys(rng):
    """Racks that span zones, as few as a search of all orders needs."""
    return crossing(rng, rng.randint(2, 3), rng.randint(2, 4), rng.randint(3, 9), rng.randint(2, 7), 2)


def crossing_at_scale(rng):
    """The same with 80 to 350 nodes: more than a search of all orders can follow."""
    nodes = rng.randint(80, 350)
    replicas = rng.choice([rng.randint(5, 40), rng.randint(20, 120), rng.randint(nodes // 2, 2 * nodes)])
    return crossing(rng, rng.randint(2, 6), rng.randint(4, 30), nodes, replicas, rng.choice([0, 0, replicas // 4, replicas]))


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
    **MANIFESTS,
    "crossing keys": crossing_keys,
}


def world(family, seed, number):
    name = f"{family}/{seed}/{number}"
    return {"id": name, **FAMILIES[family](random.Random(name))}
