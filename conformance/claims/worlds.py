"""Random clusters with a workload, deterministic in seed and number.

A world is plain JSON: ``{"id", "objects": [every object of the cluster], "workload": the manifest}``.
"""

import json
import random

NOW = "2026-11-21T12:00:00Z"
OLD = "2026-11-01T12:00:00Z"
YOUNG = "2026-11-21T11:50:00Z"
ZONE, HOSTNAME, REGION, RACK = (
    "topology.kubernetes.io/zone",
    "kubernetes.io/hostname",
    "topology.kubernetes.io/region",
    "example.com/rack",
)
NAMESPACE = "shop"
HASH, OLD_HASH = "6c5bb8f7d9", "75d4f8c9b6"
KINDS = {
    "Deployment": ("apps/v1", "Deployment", 50),
    "StatefulSet": ("apps/v1", "StatefulSet", 16),
    "ReplicaSet": ("apps/v1", "ReplicaSet", 7),
    "DaemonSet": ("apps/v1", "DaemonSet", 6),
    "Job": ("batch/v1", "Job", 4),
    "Rollout": ("argoproj.io/v1alpha1", "Rollout", 7),
    "Pod": ("v1", "Pod", 10),
}


def world(seed, number):
    """The world of a number: it depends on nothing drawn for another."""
    rng = random.Random(f"{seed}/{number}")
    plain = rng.random() < 0.1
    objects, nodes = cluster(rng, plain)
    labels = {"app": "web"} | ({"tier": "front"} if rng.random() < 0.6 else {})
    kind = weighted(rng, [(name, weight) for name, (_, _, weight) in KINDS.items()])
    replicas = 1 if kind == "Pod" else min(rng.randint(1, 10), 12)
    spec = pod_spec(rng, labels, nodes)
    if plain:
        spec["topologySpreadConstraints"] = [plain_constraint(key, labels, rng.choice([1, 1, 1, 2])) for key in (ZONE, HOSTNAME)]
    manifest = workload(rng, kind, labels, spec, replicas)
    objects += others(rng, nodes, labels)
    objects += peers(random.Random(f"{seed}/{number}/peers"), nodes, manifest)
    objects += own_pods(rng, manifest, nodes)
    strategy(random.Random(f"{seed}/{number}/strategy"), manifest)
    if kind in {"Deployment", "StatefulSet", "Rollout"} and rng.random() < 0.08:
        objects.append(autoscaler(manifest, replicas + rng.randint(1, 6)))
    if kind == "StatefulSet" and rng.random() < 0.75:
        objects += volumes(rng, manifest, objects, nodes)
    objects += more(random.Random(f"{seed}/{number}/more"), manifest, objects, nodes)
    return {"id": f"{seed}/{number}", "objects": objects, "workload": manifest}


def weighted(rng, choices):
    return rng.choices([each for each, _ in choices], [weight for _, weight in choices])[0]


def plain_constraint(key, labels, max_skew):
    return {"maxSkew": max_skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": dict(labels)}}


def cluster(rng, plain):
    """Zones and nodes; a plain one has room, and lets everything in."""
    zones = weighted(rng, [(1, 1), (2, 4), (3, 8), (4, 2), (5, 1)])
    large = rng.random() < 0.02
    scarce = rng.random() < 0.35 and not plain
    tainted = {zone for zone in range(zones) if rng.random() < 0.16 and not plain}
    cordoned = {zone for zone in range(zones) if rng.random() < 0.06 and not plain}
    racked, regional, pooled = rng.random() < 0.2, rng.random() < 0.3, rng.random() < 0.04
    bare = rng.random() < 0.12 and not plain
    nodes = []
    for zone in range(zones):
        most = 8 if large else weighted(rng, [(1, 3), (2, 4), (3, 2), (4, 1)])
        for number in range(rng.randint(1, most)):
            name = f"n{'abcde'[zone]}{number}"
            labels = {HOSTNAME: name, ZONE: f"zone-{'abcde'[zone]}", "kubernetes.io/os": "linux"}
            labels["disk"] = rng.choice(["ssd", "ssd", "hdd"])
            labels["pool"] = rng.choice("ab")
            if regional:
                labels[REGION] = "north" if zone < 3 else "south"
            if racked:
                labels[RACK] = f"r{rng.randint(0, 3)}" if rng.random() < 0.7 else f"{zone}-{number % 2}"
            if pooled:
                labels["eks.amazonaws.com/nodegroup"] = "main"
            if bare and rng.random() < 0.3:
                labels.pop(rng.choice([ZONE, ZONE, HOSTNAME, RACK]), None)
            nodes.append(node(rng, name, labels, scarce, zone in tainted, zone in cordoned))
            if plain:
                nodes[-1]["spec"] = {}
                nodes[-1]["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}]
    return [*namespaces, *nodes], nodes


def node(rng, name, labels, scarce, tainted, cordoned):
    taints, spec = [], {}
    if tainted or rng.random() < 0.05:
        taints.append({"key": "dedicated", "value": "infra", "effect": rng.choice(["NoSchedule", "NoSchedule", "NoExecute"])})
    if rng.random() < 0.03:
        taints.append({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"})
    if rng.random() < 0.03:
        taints.append({"key": "slow", "effect": "PreferNoSchedule"})
    if cordoned or rng.random() < 0.05:
        spec["unschedulable"] = True
        taints.append(timed(rng, "node.kubernetes.io/unschedulable", "NoSchedule"))
    ready = "True"
    if rng.random() < 0.03:
        ready = rng.choice(["False", "Unknown"])
        key = "node.kubernetes.io/not-ready" if ready == "False" else "node.kubernetes.io/unreachable"
        taints += [timed(rng, key, "NoSchedule"), timed(rng, key, "NoExecute")]
    if taints:
        spec["taints"] = taints
    cpu = rng.choice(["1", "2", "2", "3"]) if scarce else "16"
    room = {"cpu": cpu, "memory": "32Gi", "pods": rng.choice(["3", "5", "110"]) if scarce else "110"}
    status = {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": ready}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def timed(rng, key, effect):
    taint = {"key": key, "effect": effect}
    if (added := rng.choice([OLD, OLD, YOUNG, None])) is not None:
        taint["timeAdded"] = added
    return taint


def pod_spec(rng, labels, nodes):
    cpu = rng.choice(["100m", "500m", "500m", "1", "1500m"])
    spec = {"containers": [{"name": "c", "image": "registry.example/web:1", "resources": {"requests": {"cpu": cpu}}}]}
    spec["topologySpreadConstraints"] = constraints(rng, labels)
    if rng.random() < 0.14:
        spec["nodeSelector"] = rng.choice([{"pool": "a"}, {"disk": "ssd"}, {ZONE: rng.choice(nodes)["metadata"]["labels"].get(ZONE, "none")}])
    affinity = {}
    if rng.random() < 0.1:
        expression = rng.choice([
            {"key": "pool", "operator": "In", "values": ["a"]},
            {"key": "disk", "operator": "NotIn", "values": ["hdd"]},
            {"key": ZONE, "operator": "In", "values": ["zone-a", "zone-b"]},
            {"key": HOSTNAME, "operator": "Exists"},
        ])
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    if rng.random() < 0.14:
        affinity["podAntiAffinity"] = term(rng, labels, rng.choice([HOSTNAME, HOSTNAME, ZONE]))
    if rng.random() < 0.06:
        affinity["podAffinity"] = term(rng, labels, rng.choice([ZONE, ZONE, HOSTNAME, REGION]))
    if affinity:
        spec["affinity"] = affinity
    tolerations = []
    if rng.random() < 0.12:
        tolerations.append({"key": "dedicated", "operator": "Equal", "value": "infra"})
    if rng.random() < 0.03:
        tolerations.append({"operator": "Exists"})
    if rng.random() < 0.5:
        tolerations += [
            {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for name in ("not-ready", "unreachable")
        ]
    if tolerations:
        spec["tolerations"] = tolerations
    return spec


def term(rng, labels, key):
    selector = {"matchLabels": rng.choice([labels, labels, {"app": "web"}, {"app": "db"}])}
    one = {"topologyKey": key, "labelSelector": selector}
    if rng.random() < 0.8:
        return {"requiredDuringSchedulingIgnoredDuringExecution": [one]}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 50, "podAffinityTerm": one}]}


def constraints(rng, labels):
    if rng.random() < 0.03:
        return []
    usual = rng.random()
    if usual < 0.4:
        keys = [ZONE]
    elif usual < 0.68:
        keys = [ZONE, HOSTNAME]
    elif usual < 0.8:
        keys = [HOSTNAME]
    else:
        keys = rng.sample([ZONE, HOSTNAME, REGION, RACK, "example.com/absent", "zone"], rng.randint(1, 3))
    rng.shuffle(keys)
    found, both = [], rng.random() < 0.6
    for key in keys:
        hard = both or rng.random() < 0.7
        one = {
            "maxSkew": weighted(rng, [(1, 7), (2, 2), (3, 1), (5, 0.4)]),
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
            "labelSelector": selector(rng, labels),
        }
        if hard and rng.random() < 0.18:
            one["minDomains"] = rng.randint(1, 6)
        for field, share in (("nodeAffinityPolicy", 0.16), ("nodeTaintsPolicy", 0.22)):
            if rng.random() < share:
                one[field] = rng.choice(["Honor", "Ignore"])
        if rng.random() < 0.12:
            one["matchLabelKeys"] = ["pod-template-hash"]
        found.append(one)
    return found


def selector(rng, labels):
    drawn = rng.random()
    if drawn < 0.8:
        return {"matchLabels": dict(labels)}
    if drawn < 0.92:
        return {"matchLabels": {"app": "web"}}
    if drawn < 0.96:
        return {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}
    return {"matchLabels": {"app": "other"}}


def workload(rng, kind, labels, spec, replicas):
    api_version, name, _ = KINDS[kind]
    meta = {"name": "web", "namespace": NAMESPACE, "uid": "uid-web"}
    if kind == "Pod":
        meta["labels"] = labels
        return {"apiVersion": api_version, "kind": name, "metadata": meta, "spec": spec}
    body = {"selector": {"matchLabels": dict(labels)}, "template": {"metadata": {"labels": dict(labels)}, "spec": spec}}
    if kind == "Job":
        spec["restartPolicy"] = "Never"
        del body["selector"]
        body["parallelism"] = body["completions"] = replicas
    elif kind != "DaemonSet":
        body["replicas"] = replicas
    if kind == "ReplicaSet":
        for each in (body["selector"]["matchLabels"], body["template"]["metadata"]["labels"]):
            each["pod-template-hash"] = HASH
    if kind == "StatefulSet":
        body["serviceName"] = "web"
        body["podManagementPolicy"] = rng.choice(["OrderedReady", "OrderedReady", "Parallel"])
        if rng.random() < 0.8:
            claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "late", "resources": {"requests": {"storage": "1Gi"}}}
            body["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
    return {"apiVersion": api_version, "kind": name, "metadata": meta, "spec": body}


def others(rng, nodes, labels):
    """Other workloads: some under the same label, some that only take room."""
    found = []
    for name, share in (("canary", 0.22), ("db", 0.3), ("batch", 0.25)):
        if rng.random() > share:
            continue
        # No two workloads may select the same pods; a constraint may.
        theirs = {"app": "web", "tier": "canary"} if name == "canary" and "tier" in labels else {"app": name}
        size = rng.randint(1, 6)
        spec = {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": rng.choice(["100m", "500m", "1"])}}}]}
        if rng.random() < 0.3:
            key = rng.choice([ZONE, HOSTNAME])
            spec["topologySpreadConstraints"] = [
                {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": theirs}}
            ]
        if rng.random() < 0.1:
            spec["affinity"] = {"podAntiAffinity": term(rng, labels, rng.choice([HOSTNAME, ZONE]))}
        kind = rng.choice(["Deployment", "Deployment", "StatefulSet", "DaemonSet"])
        body = {"selector": {"matchLabels": theirs}, "template": {"metadata": {"labels": theirs}, "spec": spec}}
        if kind != "DaemonSet":
            body["replicas"] = size
        found.append({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}"}, "spec": body})
        places = [rng.choice(nodes) for _ in range(size)] if rng.random() < 0.7 else [rng.choice(nodes)] * size
        for number, place in enumerate(places):
            pod = running_pod(f"{name}-{number}", theirs, spec, place, owner(kind, name))
            if rng.random() < 0.05:
                pod["metadata"]["deletionTimestamp"] = NOW
            if rng.random() < 0.05:
                pod["status"]["phase"] = "Succeeded"
            found.append(pod)
    return found


def peers(rng, nodes, manifest):
    """Workloads that count the world's, and that it counts: some with its terms, some with others.

    They draw from numbers of their own, so that worlds without them are what they were.
    """
    spec = (manifest["spec"].get("template") or manifest)["spec"]
    if rng.random() > 0.1 or not spec["topologySpreadConstraints"]:
        return []
    labels = (manifest["spec"].get("template") or manifest)["metadata"]["labels"]
    theirs = {"app": "web", "tier": "peer"} if "tier" in labels else {"app": "peer"}
    both = rng.choice([{"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "peer"]}]}, {"matchLabels": {"app": "web"}}])
    for each in spec["topologySpreadConstraints"]:
        if rng.random() < 0.8:
            each["labelSelector"] = json.loads(json.dumps(both))
    found = []
    for name in ("peer", "peer-2")[: rng.choice([1, 1, 2])]:
        kind = rng.choice(["Deployment", "Deployment", "StatefulSet"])
        its = theirs | {"part": name}
        body = {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "100m"}}}]}
        body["topologySpreadConstraints"] = [other_terms(rng, each, both) for each in spec["topologySpreadConstraints"] if rng.random() < 0.9]
        size = rng.randint(1, 3)
        template = {"metadata": {"labels": its}, "spec": body}
        meta = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}"}
        if rng.random() < 0.1:
            meta["ownerReferences"] = [{"apiVersion": "example.com/v1", "kind": "App", "name": "all", "uid": "uid-all", "controller": True}]
        found.append({"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": {"selector": {"matchLabels": its}, "template": template, "replicas": size}})
        found += [running_pod(f"{name}-{number}", its, body, rng.choice(nodes), owner(kind, name)) for number in range(rng.randint(0, size))]
    if rng.random() < 0.1 and manifest["kind"] != "Pod":
        manifest["metadata"]["ownerReferences"] = [{"apiVersion": "example.com/v1", "kind": "App", "name": "all", "uid": "uid-all", "controller": True}]
    return found


def strategy(rng, manifest):
    """Some Deployments say how many pods more and fewer there may be; drawn from numbers of their own, as peers are."""
    if manifest["kind"] == "Deployment" and rng.random() < 0.4:
        surge = rng.randint(0, 2)
        rolling = {"maxSurge": surge, "maxUnavailable": rng.randint(0 if surge else 1, 2)}
        manifest["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}


DEPRECATED = "failure-domain.beta.kubernetes.io/zone"
RUNTIME = "sandbox"


def more(rng, manifest, objects, nodes):
    """What few clusters have; each is drawn by itself, and changes the world in place or adds objects."""
    drawn = (lacking_keys, 0.06), (runtime_class, 0.1), (terminating, 0.1), (at_once, 0.08), (topologies, 0.35), (deprecated, 0.05), (group, 0.08), (gang, 0.02)
    return [each for draw, share in drawn if rng.random() < share for each in draw(rng, manifest, objects, nodes)]


def spec_of(manifest):
    return (manifest["spec"].get("template") or manifest)["spec"]


def lacking_keys(rng, manifest, objects, nodes):
    """Some nodes without a key that a constraint has."""
    keys = [each["topologyKey"] for each in spec_of(manifest)["topologySpreadConstraints"]] or [ZONE]
    for each in rng.sample(nodes, rng.randint(1, max(1, len(nodes) // 2))):
        each["metadata"]["labels"].pop(rng.choice(keys), None)
    return []


def runtime_class(rng, manifest, objects, nodes):
    """A RuntimeClass that chooses nodes, tolerates taints or takes room; pods that run passed its admission."""
    made = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": RUNTIME}, "handler": "runsc", "scheduling": {}}
    if rng.random() < 0.7:
        made["scheduling"]["nodeSelector"] = rng.choice([{"pool": "a"}, {"disk": "ssd"}])
    if rng.random() < 0.4:
        made["scheduling"]["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if rng.random() < 0.4:
        made["overhead"] = {"podFixed": {"cpu": rng.choice(["250m", "1"])}}
    spec = spec_of(manifest)
    theirs = made["scheduling"].get("nodeSelector", {}).items()
    if any(spec.get("nodeSelector", {}).get(key, value) != value for key, value in theirs):
        return []  # kube-apiserver refuses the pods
    spec["runtimeClassName"] = RUNTIME
    for each in objects:
        above = (each["metadata"].get("ownerReferences") or [{}])[0].get("name", "")
        if each["kind"] == "Pod" and above in {"web", f"web-{HASH}"}:
            each["spec"] = admitted({**each["spec"], "runtimeClassName": RUNTIME}, made)
    return [made]


def admitted(spec, made):
    """The spec as the RuntimeClass plugin leaves it. Source: plugin/pkg/admission/runtimeclass/admission.go setOverhead, setScheduling."""
    scheduling, spec = made["scheduling"], dict(spec)
    if "overhead" in made:
        spec["overhead"] = made["overhead"]["podFixed"]
    if "nodeSelector" in scheduling:
        spec["nodeSelector"] = {**scheduling["nodeSelector"], **spec.get("nodeSelector", {})}
    if "tolerations" in scheduling:
        spec["tolerations"] = [*spec.get("tolerations", ()), *scheduling["tolerations"]]
    return spec


def terminating(rng, manifest, objects, nodes):
    """Pods that terminate, those of the workload itself among them."""
    for each in objects:
        if each["kind"] == "Pod" and rng.random() < 0.4:
            each["metadata"]["deletionTimestamp"] = NOW
    return []


def at_once(rng, manifest, objects, nodes):
    """A Deployment that deletes all old pods before it makes new ones."""
    if manifest["kind"] == "Deployment":
        manifest["spec"]["strategy"] = {"type": "Recreate"}
    return []


def topologies(rng, manifest, objects, nodes):
    """A class whose volumes can only be made in some zones."""
    values = sorted({each["metadata"]["labels"].get(ZONE, "zone-a") for each in nodes})
    some = rng.sample(values, rng.randint(1, len(values)))
    for each in objects:
        if each["kind"] == "StorageClass":
            each["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": some}]}]
    return []


def deprecated(rng, manifest, objects, nodes):
    """Nodes, some or all, with the former zone key, and constraints over it."""
    alone = rng.random() < 0.3
    for each in nodes:
        labels = each["metadata"]["labels"]
        if ZONE in labels and rng.random() < 0.9:
            labels[DEPRECATED] = labels.pop(ZONE) if alone else labels[ZONE]
    keys = [each["topologyKey"] for each in spec_of(manifest)["topologySpreadConstraints"]]
    for each in spec_of(manifest)["topologySpreadConstraints"]:
        if each["topologyKey"] == ZONE and keys.count(ZONE) == 1 and rng.random() < 0.8:
            each["topologyKey"] = DEPRECATED
    return []


def group(rng, manifest, objects, nodes):
    """A SpreadGroup that selects the workload and what runs of others."""
    key = rng.choice([ZONE, ZONE, HOSTNAME])
    cap = {"topologyKey": key} | rng.choice([{"atMost": rng.randint(1, 4)}, {"lessThan": "1/2"}])
    body = {"selector": {"matchLabels": {"app": "web"}}, "shard": {"label": "app", "neverShare": rng.choice([ZONE, HOSTNAME])}}
    body |= {"expected": {"shards": rng.randint(1, 4), "podsPerShard": rng.randint(1, 3)}, "caps": [cap]}
    meta = {"name": "all", "namespace": NAMESPACE, "uid": "uid-all", "generation": 1}
    return [{"apiVersion": "evenspread.io/v1alpha1", "kind": "SpreadGroup", "metadata": meta, "spec": body}]


def gang(rng, manifest, objects, nodes):
    """Pods that are scheduled as one PodGroup: no rule may claim anything of their places."""
    spec_of(manifest)["schedulingGroup"] = {"podGroupName": "all"}
    return []


def other_terms(rng, constraint, selector):
    """The constraint as another workload has it: mostly one field differs."""
    other = json.loads(json.dumps(constraint)) | {"labelSelector": json.loads(json.dumps(selector))}
    drawn = rng.random()
    if drawn < 0.2:
        other["maxSkew"] += 1
    elif drawn < 0.35:
        other.pop("minDomains", None)
        other["whenUnsatisfiable"] = "ScheduleAnyway" if other["whenUnsatisfiable"] == "DoNotSchedule" else "DoNotSchedule"
    elif drawn < 0.45:
        other[rng.choice(["nodeAffinityPolicy", "nodeTaintsPolicy"])] = rng.choice(["Honor", "Ignore"])
    elif drawn < 0.55 and other["whenUnsatisfiable"] == "DoNotSchedule":
        other["minDomains"] = rng.randint(1, 3)
    elif drawn < 0.6:
        other["topologyKey"] = rng.choice([ZONE, HOSTNAME])
    elif drawn < 0.7:
        other["matchLabelKeys"] = ["pod-template-hash"]
    elif drawn < 0.75:
        other["labelSelector"] = {"matchLabels": {"app": "peer"}}
    return other


def owner(kind, name):
    version = KINDS[kind][0] if kind in KINDS else "apps/v1"
    return {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}


def running_pod(name, labels, spec, place, above, phase="Running"):
    spec = {**spec, "nodeName": place["metadata"]["name"]}
    meta = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "labels": labels, "ownerReferences": [above]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": phase}}


def own_pods(rng, manifest, nodes):
    """What runs of the workload, and the ReplicaSet in between; often nothing."""
    kind, spec = manifest["kind"], manifest["spec"]
    if kind in {"Pod", "Job"} or rng.random() < 0.55:
        return []
    template, replicas = spec["template"], spec.get("replicas", 0)
    open_ = [each for each in nodes if not each["spec"].get("taints")] or nodes
    if rng.random() < 0.3:
        zone = rng.choice(open_)["metadata"]["labels"].get(ZONE)
        open_ = [each for each in open_ if each["metadata"]["labels"].get(ZONE) == zone]
    labels, above, found = dict(template["metadata"]["labels"]), owner(kind, "web"), []
    if kind in {"Deployment", "Rollout"}:
        key = "pod-template-hash" if kind == "Deployment" else "rollouts-pod-template-hash"
        labels[key] = HASH
        selector = {**spec["selector"], "matchLabels": {**spec["selector"]["matchLabels"], key: HASH}}
        meta = {"name": f"web-{HASH}", "namespace": NAMESPACE, "uid": f"uid-web-{HASH}", "ownerReferences": [above]}
        body = {"replicas": replicas, "selector": selector, "template": {"metadata": {"labels": labels}, "spec": template["spec"]}}
        found.append({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": body})
        above = {**owner("ReplicaSet", f"web-{HASH}"), "apiVersion": "apps/v1"}
    if kind == "DaemonSet":
        places = [each for each in open_ if rng.random() < 0.7]
    else:
        some = replicas if rng.random() < 0.5 else rng.randint(0, replicas)
        places = spread_out(rng, open_, some)
    for number, place in enumerate(places):
        name = f"web-{number}" if kind == "StatefulSet" else f"web-{HASH}-{number}"
        its = labels
        if kind == "StatefulSet":
            its = {**labels, "statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": str(number)}
        pod = running_pod(name, its, template["spec"], place, above)
        if kind == "StatefulSet":
            pod["spec"] = {**pod["spec"], **with_claims(manifest, number)}
        found.append(pod)
    return found


def spread_out(rng, nodes, number):
    """Nodes in turn, as an even placement would take them, or any."""
    if rng.random() < 0.3:
        return [rng.choice(nodes) for _ in range(number)]
    zones = {}
    for each in rng.sample(nodes, len(nodes)):
        zones.setdefault(each["metadata"]["labels"].get(ZONE), []).append(each)
    lists = list(zones.values())
    return [lists[n % len(lists)][n // len(lists) % len(lists[n % len(lists)])] for n in range(number)]


def with_claims(manifest, ordinal):
    made = [
        {"name": each["metadata"]["name"], "persistentVolumeClaim": {"claimName": f"{each['metadata']['name']}-web-{ordinal}"}}
        for each in manifest["spec"].get("volumeClaimTemplates", ())
    ]
    return {"volumes": made} if made else {}


def autoscaler(manifest, most):
    target = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "name": "web"}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": most}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web", "namespace": NAMESPACE}, "spec": spec}


def volumes(rng, manifest, objects, nodes):
    """Volumes of ordinals that run, and of some that ran once; the class makes others where the pod goes."""
    late = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"}, "provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
    if not manifest["spec"].get("volumeClaimTemplates"):
        return [late]
    where = {each["metadata"]["name"]: each["spec"]["nodeName"] for each in objects if each["kind"] == "Pod"}
    by_name, found = {each["metadata"]["name"]: each for each in nodes}, [late]
    local = rng.random() < 0.15
    for ordinal in range(manifest["spec"]["replicas"]):
        place = by_name.get(where.get(f"web-{ordinal}"))
        if place is None and rng.random() < 0.6:
            continue
        place = place or rng.choice(nodes)
        key = HOSTNAME if local else ZONE
        value = place["metadata"]["labels"].get(key)
        name, volume = f"data-web-{ordinal}", f"pv-{ordinal}"
        spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "late", "resources": {"requests": {"storage": "1Gi"}}, "volumeName": volume}
        meta = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        found.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec, "status": {"phase": "Bound"}})
        body = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "late", "csi": {"driver": "csi.example.com", "volumeHandle": volume}}
        body["claimRef"] = {"namespace": NAMESPACE, "name": name, "uid": meta["uid"]}
        if value is not None:
            expression = {"key": key, "operator": "In", "values": [value]}
            body["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
        found.append({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume}, "spec": body, "status": {"phase": "Bound"}})
    return found
