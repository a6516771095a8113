"""What a controller makes of a manifest: its pods, as the API server gets them, and which of them run."""

from conformance.claims.worlds import HASH, OLD_HASH, admitted

LISTS = {
    "Node": "nodes",
    "Pod": "pods",
    "Namespace": "namespaces",
    "Service": "services",
    "ReplicaSet": "replicaSets",
    "StatefulSet": "statefulSets",
    "PersistentVolume": "persistentVolumes",
    "PersistentVolumeClaim": "persistentVolumeClaims",
    "StorageClass": "storageClasses",
}


def cluster_of(world):
    """The lists of a scenario, with the claims that a StatefulSet's controller is about to make."""
    lists = {name: [] for name in LISTS.values()}
    for each in world["objects"]:
        if each["kind"] in LISTS:
            lists[LISTS[each["kind"]]].append(each)
    known = {each["metadata"]["name"] for each in lists["persistentVolumeClaims"]}
    for claim in claims_of(world["workload"], most_of(world)):
        if claim["metadata"]["name"] not in known:
            lists["persistentVolumeClaims"].append(claim)
    if not lists["storageClasses"]:
        lists["storageClasses"].append({"metadata": {"name": "late"}, "provisioner": "x.example", "volumeBindingMode": "WaitForFirstConsumer"})
    return lists


def claims_of(manifest, replicas):
    for template in manifest["spec"].get("volumeClaimTemplates", ()):
        for ordinal in range(replicas):
            meta = {"name": f"{template['metadata']['name']}-web-{ordinal}", "namespace": manifest["metadata"]["namespace"]}
            yield {"metadata": meta, "spec": template["spec"], "status": {"phase": "Pending"}}


def replicas_of(manifest):
    """How many pods the manifest asks for at a time; None for a DaemonSet."""
    if manifest["kind"] == "Pod":
        return 1
    if manifest["kind"] == "DaemonSet":
        return None
    return manifest["spec"].get("parallelism" if manifest["kind"] == "Job" else "replicas", 1)


def most_of(world):
    """The autoscaler's maximum, where there is one above the replicas."""
    wanted = replicas_of(world["workload"]) or 0
    scalers = [each["spec"]["maxReplicas"] for each in world["objects"] if each["kind"] == "HorizontalPodAutoscaler"]
    return max([wanted, *scalers])


def template_of(manifest):
    if manifest["kind"] == "Pod":
        return {"metadata": {"labels": manifest["metadata"].get("labels", {})}, "spec": manifest["spec"]}
    return manifest["spec"]["template"]


def constraints_of(manifest):
    return template_of(manifest)["spec"].get("topologySpreadConstraints") or []


def hard_of(manifest):
    return [each for each in constraints_of(manifest) if each.get("whenUnsatisfiable") != "ScheduleAnyway"]


def pod_of(manifest, name="web", **more):
    """A pod as the controller posts it."""
    template = template_of(manifest)
    labels = dict(template["metadata"].get("labels") or {})
    key = {"Deployment": "pod-template-hash", "Rollout": "rollouts-pod-template-hash"}.get(manifest["kind"])
    if key:
        labels[key] = HASH
    labels |= more.pop("labels", {})
    meta = {"name": name, "namespace": manifest["metadata"]["namespace"], "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**template["spec"], **more}}


def own_names(world):
    """The pods in the cluster that the workload made."""
    def is_own(pod):
        above = (pod["metadata"].get("ownerReferences") or [{}])[0]
        return above.get("name") in {"web", f"web-{HASH}"}

    return [named(each) for each in world["objects"] if each["kind"] == "Pod" and is_own(each)]


def question(world, replicas=None, manifest=None, **more):
    """The world as `oracle place` takes it."""
    manifest = manifest or world["workload"]
    asked = {"id": world["id"], **cluster_of(world), "own": own_names(world), **more}
    wanted = replicas_of(manifest) if replicas is None else replicas
    if manifest["kind"] != "StatefulSet":  # what is being deleted goes whatever is placed, and is nobody's to place anew
        asked["own"] = [each for each in asked["own"] if each not in leaving(world)]
    if manifest["kind"] == "StatefulSet":  # its controller makes a pod anew once the terminating one of that name is gone
        gone = terminated(world)
        asked["pods"] = [each for each in asked["pods"] if named(each) not in gone]
        asked["ordinals"] = [ordinal(manifest, number) for number in range(wanted)]
        asked["ordered"] = manifest["spec"].get("podManagementPolicy") != "Parallel"
    elif manifest["kind"] == "DaemonSet":
        served = [each["metadata"]["name"] for each in asked["nodes"] if is_served(manifest, each)]
        asked["ordinals"], asked["anew"] = [daemon(manifest, name, number) for number, name in enumerate(served)], True
    else:
        asked["template"], asked["replicas"] = pod_of(manifest), wanted
    return posted(world, asked)


def leaving(world):
    """The pods that are being deleted."""
    return {named(each) for each in world["objects"] if each["kind"] == "Pod" and "deletionTimestamp" in each["metadata"]}


def terminated(world):
    """The workload's pods whose kubelet completes their deletion: not those on unreachable nodes."""
    lost = {each["metadata"]["name"] for each in world["objects"] if each["kind"] == "Node" and is_unreachable(each)}
    on = {named(each): each["spec"].get("nodeName") for each in world["objects"] if each["kind"] == "Pod"}
    return {each for each in leaving(world) & set(own_names(world)) if on[each] not in lost}


def is_unreachable(node):
    return any(each["key"] == "node.kubernetes.io/unreachable" for each in node["spec"].get("taints", ()))


def named(pod):
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def posted(world, asked):
    """The question with its pods as the API server's RuntimeClass plugin leaves them; controllers read the template."""
    runtime = runtime_of(world)
    if runtime is not None:
        pods = [asked["template"]] if "template" in asked else asked["ordinals"]
        given = [{**each, "spec": admitted(each["spec"], runtime)} for each in pods]
        asked |= {"template": given[0]} if "template" in asked else {"ordinals": given}
    return asked


def runtime_of(world):
    """The RuntimeClass of the workload's pods."""
    named = template_of(world["workload"])["spec"].get("runtimeClassName")
    return next((each for each in world["objects"] if named and each["kind"] == "RuntimeClass" and each["metadata"]["name"] == named), None)


def rollout(world, manifest=None):
    """A rolling update of the Deployment in the world to the manifest's template, as `oracle place` takes it."""
    manifest = manifest or world["workload"]
    replicas = replicas_of(manifest)
    written = manifest["spec"].get("strategy", {}).get("rollingUpdate", {})
    surge, unavailable = written.get("maxSurge", -(-replicas // 4)), written.get("maxUnavailable", replicas // 4)
    asked = {"id": world["id"], **cluster_of(world), "template": pod_of(manifest, labels={"pod-template-hash": OLD_HASH}), "replicas": replicas}
    if manifest["spec"].get("strategy", {}).get("type") == "Recreate":
        return posted(world, {**asked, "own": own_names(world), "anew": True})
    return posted(world, {**asked, "rollout": {"leaving": [each for each in own_names(world) if each not in leaving(world)], "surge": surge, "unavailable": unavailable or int(not surge)}})


def ordinal(manifest, number):
    name = f"web-{number}"
    volumes = [
        {"name": each["metadata"]["name"], "persistentVolumeClaim": {"claimName": f"{each['metadata']['name']}-{name}"}}
        for each in manifest["spec"].get("volumeClaimTemplates", ())
    ]
    labels = {"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": str(number)}
    return pod_of(manifest, name, labels=labels, **({"volumes": volumes} if volumes else {}))


def is_served(manifest, node):
    """Whether a DaemonSet makes a pod for the node. Source: daemon_controller.go NodeShouldRunDaemonPod."""
    spec, labels = template_of(manifest)["spec"], node["metadata"]["labels"]
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    if required and not any(all(meets(labels, part) for part in each["matchExpressions"]) for each in required["nodeSelectorTerms"]):
        return False
    tolerations = daemon(manifest, node["metadata"]["name"], 0)["spec"]["tolerations"]
    taints = [each for each in node["spec"].get("taints", ()) if each["effect"] != "PreferNoSchedule"]
    return all(any(tolerates(each, taint) for each in tolerations) for taint in taints)


def meets(labels, part):
    value = labels.get(part["key"])
    return {
        "In": value in part.get("values", ()),
        "NotIn": value not in part.get("values", ()),
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[part["operator"]]


def tolerates(toleration, taint):
    same_key = toleration.get("key") in {None, taint["key"]}
    same_effect = toleration.get("effect") in {None, taint["effect"]}
    exists = toleration.get("operator") == "Exists"
    return same_key and same_effect and (exists or toleration.get("value", "") == taint.get("value", ""))


TOLERATED = ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")


def daemon(manifest, node, number):
    """Source: daemon/util ReplaceDaemonSetPodNodeNameNodeAffinity and AddOrUpdateDaemonPodTolerations."""
    spec = template_of(manifest)["spec"]
    affinity = dict(spec.get("affinity") or {})
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    tolerations = [*spec.get("tolerations", ())]
    for each in TOLERATED:
        effect = "NoExecute" if each in {"not-ready", "unreachable"} else "NoSchedule"
        tolerations.append({"key": f"node.kubernetes.io/{each}", "operator": "Exists", "effect": effect})
    return pod_of(manifest, f"web-{number}", affinity=affinity, tolerations=tolerations)
