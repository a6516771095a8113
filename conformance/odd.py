"""Scenarios of the oracle's generators, made stranger: what they never draw and the scheduler still answers.

    oracle generate --kind verdict ... | python odd.py mutate SEED > in.jsonl
    oracle verdict < in.jsonl > out.jsonl
    python odd.py join in.jsonl out.jsonl > vectors.jsonl

Objects lose names, namespaces, labels, containers and what is allocatable; pods get odd selectors, terms, quantities,
volumes and statuses; single plugins are asked. Every scenario stays readable for the scheduler, none stays sensible.
"""

import json
import os
import random
import sys

PLUGINS = (
    "NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
    "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity",
    "DefaultSelector",
)  # fmt: skip


def mutate(scenario, rng):
    pod = scenario["pod"]
    spec = pod.setdefault("spec", {})
    chosen = rng.sample(MUTATIONS, rng.randint(1, 5))
    if rng.random() < 0.7:
        scenario["raw"] = True
    if rng.random() < 0.8:
        scenario["plugin"] = rng.choice(PLUGINS)
    if rng.random() < 0.3:
        names = [node["metadata"]["name"] for node in scenario["nodes"]]
        scenario["feasible"] = rng.sample(names, rng.randint(1, len(names)))
    for mutation in chosen:
        mutation(scenario, pod, spec, rng)
    if not scenario.get("raw"):
        for container in spec.get("containers") or ():
            container.setdefault("name", "c")
            container.setdefault("image", "i")
    return scenario


def no_allocatable(scenario, pod, spec, rng):
    for node in scenario["nodes"]:
        if rng.random() < 0.5:
            node.get("status", {}).pop("allocatable", None)


def no_containers(scenario, pod, spec, rng):
    if scenario.get("raw"):
        spec["containers"] = []


def nameless_pods(scenario, pod, spec, rng):
    for each in scenario["pods"]:
        if rng.random() < 0.5:
            each["metadata"].pop("name", None)
            if rng.random() < 0.5:
                each["metadata"].pop("uid", None)


def empty_namespaces(scenario, pod, spec, rng):
    if scenario.get("raw"):
        pod["metadata"].pop("namespace", None)
        for each in (*scenario["pods"], *scenario.get("persistentVolumeClaims", ()), *scenario.get("services", ())):
            if each["metadata"].get("namespace") == "shop" and rng.random() < 0.8:
                del each["metadata"]["namespace"]


def no_namespaces(scenario, pod, spec, rng):
    scenario.pop("namespaces", None)


def odd_constraints(scenario, pod, spec, rng):
    for each in spec.get("topologySpreadConstraints") or ():
        field = rng.randint(0, 7)
        if field == 0:
            each["maxSkew"] = rng.choice([0, -1, 1, 100])
        elif field == 1:
            each["minDomains"] = rng.choice([0, 1, 2, 5, -1])
        elif field == 2:
            each["labelSelector"] = rng.choice([None, {}, {"matchLabels": {}}, {"matchExpressions": []}])
        elif field == 3:
            each["matchLabelKeys"] = rng.sample(["app", "tier", "version", "absent", "pod-template-hash"], 2)
        elif field == 4:
            each["topologyKey"] = rng.choice(["", "cores", "pool", "kubernetes.io/hostname", "disktype"])
        elif field == 5:
            each["nodeTaintsPolicy"] = rng.choice(["Honor", "Ignore", "Other", ""])
        elif field == 6:
            each["nodeAffinityPolicy"] = rng.choice(["Honor", "Ignore", "Other"])
        else:
            each["labelSelector"] = rng.choice(ODD_SELECTORS)


ODD_SELECTORS = (
    {"matchExpressions": [{"key": "app", "operator": "In", "values": []}]},
    {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["x"]}]},
    {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["x"]}]},
    {"matchExpressions": [{"key": "bad key!", "operator": "Exists"}]},
    {"matchLabels": {"app": "not valid!"}},
    {
        "matchExpressions": [
            {"key": "app", "operator": "NotIn", "values": ["api"]},
            {"key": "flag", "operator": "DoesNotExist"},
        ]
    },
    {"matchExpressions": [{"key": "flag", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "version", "operator": "In", "values": ["2", "1", ""]}]},
)


def new_constraints(scenario, pod, spec, rng):
    keys = ["topology.kubernetes.io/zone", "kubernetes.io/hostname", "example.com/rack", "cores", "pool"]
    selectors = [*ODD_SELECTORS[5:], {"matchLabels": {"app": "web"}}, {}, None, {"matchLabels": {"tier": "back"}}]
    spec["topologySpreadConstraints"] = [
        {
            "maxSkew": rng.randint(1, 3),
            "topologyKey": rng.choice(keys),
            "whenUnsatisfiable": rng.choice(["DoNotSchedule", "ScheduleAnyway"]),
            "labelSelector": rng.choice(selectors),
        }
        for _ in range(rng.randint(1, 3))
    ]


def node_affinity(scenario, pod, spec, rng):
    def expression():
        operator = rng.choice(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Bad"])
        values = {"Gt": ["7"], "Lt": ["16"], "Exists": None, "DoesNotExist": None}.get(operator, ["4", "ssd", "spot"])
        if rng.random() < 0.1:
            values = rng.choice([[], ["x", "y"], ["08"], ["+5"], ["-3"], ["99999999999999999999"]])
        found = {"key": rng.choice(["cores", "disktype", "pool", "topology.kubernetes.io/zone"]), "operator": operator}
        return found if values is None else {**found, "values": values}

    def field():
        names = [node["metadata"]["name"] for node in scenario["nodes"]] + ["nowhere"]
        values = rng.sample(names, rng.choice([1, 1, 1, 2]) if len(names) > 1 else 1)
        return {
            "key": rng.choice(["metadata.name"] * 4 + ["metadata.uid"]),
            "operator": rng.choice(["In", "In", "NotIn"]),
            "values": values,
        }

    terms = []
    for _ in range(rng.randint(0, 3)):
        term = {}
        if rng.random() < 0.7:
            term["matchExpressions"] = [expression() for _ in range(rng.randint(0, 2))]
        if rng.random() < 0.5:
            term["matchFields"] = [field() for _ in range(rng.randint(0, 2))]
        terms.append(term)
    required = {"nodeSelectorTerms": terms}
    spec.setdefault("affinity", {})["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    if rng.random() < 0.3:
        spec["nodeSelector"] = rng.choice([{}, {"disktype": "ssd"}, {"pool": ""}])


def node_name(scenario, pod, spec, rng):
    spec["nodeName"] = rng.choice([scenario["nodes"][0]["metadata"]["name"], "nowhere"])


def tolerations(scenario, pod, spec, rng):
    spec["tolerations"] = rng.sample(
        [
            {"operator": "Exists"},
            {"key": "dedicated", "operator": "Exists"},
            {"key": "level", "operator": "Gt", "value": "5"},
            {"key": "spot", "value": ""},
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "dedicated", "value": "infra", "effect": "NoExecute"},
            {"operator": "Odd", "key": "spot"},
            {"value": "infra"},
        ],
        rng.randint(0, 3),
    )


def quantities(scenario, pod, spec, rng):
    names = ["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu", "pods", "kubernetes.io/x",
             "attachable-volumes-y", "unknown", "bad_domain/x", "example.com/bad name", "requests.example.com/z"]  # fmt: skip
    amounts = ["0", "1", "1500m", "0.0001", "1e3", "1Ki", "3n", "2E", "100u", 1, 0.5, "1.5Gi", "12e-1"]
    if "IMMENSE" in os.environ and rng.random() < 0.3:
        # Amounts that no machine has. The API server stores them, and their sums have very many digits.
        amounts = ["1e999", "1m", "1", "9" * 999, "9223372036854775807", "16Ei", "0." + "9" * 400, "1e-400"]

    def draw():
        return {name: rng.choice(amounts) for name in rng.sample(names, rng.randint(0, 4))}

    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        container["resources"] = {"requests": draw(), "limits": draw()}
    if rng.random() < 0.5:
        spec["overhead"] = draw()
    if rng.random() < 0.5:
        spec["resources"] = {"requests": draw(), "limits": draw()}
    for each in (*scenario["pods"], *scenario["nodes"]):
        if rng.random() < 0.3 and "containers" in each["spec"]:
            each["spec"]["containers"][0]["resources"] = {"requests": draw()}
            if rng.random() < 0.3:
                each["spec"]["resources"] = {"requests": draw()}
            status = each.setdefault("status", {})
            if rng.random() < 0.4:
                status["containerStatuses"] = [
                    {
                        "name": each["spec"]["containers"][0].get("name", ""),
                        "allocatedResources": draw(),
                        "resources": {"requests": draw()},
                    }
                ]
            if rng.random() < 0.3:
                status["resources"] = {"requests": draw()}
            if rng.random() < 0.3:
                status["allocatedResources"] = draw()
            if rng.random() < 0.3:
                status["conditions"] = [
                    {"type": "PodResizePending", "status": "True", "reason": rng.choice(["Infeasible", "Deferred"])}
                ]
        elif rng.random() < 0.2 and "allocatable" in each.get("status", {}):
            each["status"]["allocatable"].update(draw())


def pod_affinity(scenario, pod, spec, rng):
    def term():
        found = {"topologyKey": rng.choice(["topology.kubernetes.io/zone", "kubernetes.io/hostname", "pool", "absent"])}
        found["labelSelector"] = rng.choice([{"matchLabels": {"app": "web"}}, {}, None, *ODD_SELECTORS])
        if rng.random() < 0.3:
            found["namespaces"] = rng.sample(["shop", "batch", "", "gone"], 2)
        if rng.random() < 0.3:
            found["namespaceSelector"] = rng.choice([{}, None, {"matchLabels": {"team": "shop"}}, ODD_SELECTORS[0]])
        return found

    kind = "requiredDuringSchedulingIgnoredDuringExecution"
    targets = [spec, *(each["spec"] for each in scenario["pods"] if rng.random() < 0.3)]
    for target in targets:
        affinity = target.setdefault("affinity", {})
        for side in ("podAffinity", "podAntiAffinity"):
            if rng.random() < 0.5:
                affinity[side] = {kind: [term() for _ in range(rng.randint(0, 2))]}
        if rng.random() < 0.2:
            preferred = [{"weight": 1, "podAffinityTerm": term()}]
            affinity.setdefault("podAffinity", {})["preferredDuringSchedulingIgnoredDuringExecution"] = preferred


def inline_volumes(scenario, pod, spec, rng):
    def volume(number):
        source = rng.choice(
            [
                {"gcePersistentDisk": {"pdName": rng.choice("ab"), "readOnly": rng.random() < 0.5}},
                {"awsElasticBlockStore": {"volumeID": rng.choice(["vol-1", "vol-2", "aws://zone/vol-1"])}},
                {"iscsi": {"iqn": rng.choice("ab"), "readOnly": rng.random() < 0.5, "targetPortal": "p", "lun": 0}},
                {"rbd": {"monitors": rng.sample("abc", 2), "pool": "p", "image": "i", "readOnly": rng.random() < 0.5}},
                {"emptyDir": {}},
                {"configMap": {"name": "c"}},
                {"cinder": {"volumeID": "c1"}},
                {"azureDisk": {"diskName": "d", "diskURI": "u"}},
                {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
                {"persistentVolumeClaim": {"claimName": rng.choice(["data-0", "data-1", "", "gone"])}},
            ]
        )
        return {"name": f"v{number}", **source}

    for target in [spec, *(each["spec"] for each in scenario["pods"] if rng.random() < 0.4)]:
        target["volumes"] = [*(target.get("volumes") or ()), *(volume(n) for n in range(rng.randint(1, 2)))]
    if rng.random() < 0.7:
        limits = [{"name": name, "nodeID": "n", "allocatable": {"count": rng.randint(0, 2)}}
                  for name in ("ebs.csi.aws.com", "pd.csi.storage.gke.io", "cinder.csi.openstack.org", "csi.example.com")]  # fmt: skip
        scenario["csiNodes"] = [
            {"metadata": {"name": node["metadata"]["name"]}, "spec": {"drivers": rng.sample(limits, rng.randint(0, 4))}}
            for node in scenario["nodes"]
            if rng.random() < 0.8
        ]


def claims(scenario, pod, spec, rng):
    for claim in scenario.get("persistentVolumeClaims", ()):
        change = rng.randint(0, 9)
        meta, its = claim["metadata"], claim["spec"]
        if change == 0:
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        elif change == 1:
            claim["status"] = {"phase": "Lost"}
        elif change == 2:
            meta.setdefault("annotations", {})["volume.kubernetes.io/selected-node"] = scenario["nodes"][0]["metadata"][
                "name"
            ]
        elif change == 3:
            its["storageClassName"] = rng.choice(["", "gone", "zonal", "local", "anywhere"])
            if rng.random() < 0.5:
                its.pop("volumeName", None)
        elif change == 4:
            meta.setdefault("annotations", {})["volume.beta.kubernetes.io/storage-class"] = rng.choice(
                ["local", "", "zonal"]
            )
        elif change == 5:
            its["volumeName"] = rng.choice(["pv-0", "gone"])
            meta.setdefault("annotations", {})["pv.kubernetes.io/bind-completed"] = "yes"
        elif change == 6:
            its["selector"] = rng.choice([{"matchLabels": {"a": "b"}}, ODD_SELECTORS[0]])
        elif change == 7:
            its["volumeMode"] = rng.choice(["Block", "Filesystem"])
        elif change == 8:
            its["accessModes"] = rng.choice([["ReadWriteOncePod"], ["ReadWriteMany"], []])
        else:
            its["volumeAttributesClassName"] = "gold"


def volumes(scenario, pod, spec, rng):
    zones = sorted(
        {node["metadata"].get("labels", {}).get("topology.kubernetes.io/zone", "") for node in scenario["nodes"]}
    )
    for volume in scenario.get("persistentVolumes", ()):
        meta, its = volume["metadata"], volume["spec"]
        change = rng.randint(0, 7)
        if change == 0:
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        elif change == 1:
            its["claimRef"] = {
                "namespace": "shop",
                "name": rng.choice(["data-0", "data-1"]),
                "uid": rng.choice(["", "uid-data-0", "other"]),
            }
        elif change == 2:
            volume["status"] = {"phase": rng.choice(["Available", "Released", "Failed"])}
        elif change == 3:
            its["capacity"] = {"storage": rng.choice(["1Gi", "5Gi", "100Gi"])}
        elif change == 4:
            meta["labels"] = {
                rng.choice(
                    [
                        "topology.kubernetes.io/zone",
                        "failure-domain.beta.kubernetes.io/zone",
                        "topology.kubernetes.io/region",
                    ]
                ): rng.choice([*zones, "x", f"{zones[0]}__", " " + zones[-1] + " __y"])
            }
        elif change == 5:
            its["nodeAffinity"] = {"required": {"nodeSelectorTerms": rng.choice([
                [], [{}], [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]}],
                [{"matchExpressions": [{"key": "disktype", "operator": "In", "values": ["ssd"]}]}],
                [{"matchExpressions": [{"key": "disktype", "operator": "In", "values": []}]}],
            ])}}  # fmt: skip
        elif change == 6:
            its.pop("csi", None)
            its.update(rng.choice([{"awsElasticBlockStore": {"volumeID": "vol-9"}}, {"hostPath": {"path": "/x"}}]))
        else:
            meta.setdefault("annotations", {})["volume.beta.kubernetes.io/storage-class"] = "local"
    for each in scenario.get("storageClasses", ()):
        change = rng.randint(0, 5)
        if change == 0:
            each.pop("volumeBindingMode", None)
        elif change == 1:
            each["allowedTopologies"] = rng.choice([[], [{}], [{"matchLabelExpressions": [{"key": "disktype", "values": ["ssd"]}]}],
                                                    [{"matchLabelExpressions": [{"key": "disktype", "values": []}]}]])  # fmt: skip
        elif change == 2:
            each["provisioner"] = rng.choice(["", "kubernetes.io/aws-ebs", "kubernetes.io/vsphere-volume"])


def bare_nodes(scenario, pod, spec, rng):
    for node in scenario["nodes"]:
        if rng.random() < 0.3:
            node["metadata"].pop("labels", None)
        if rng.random() < 0.2:
            node["spec"] = {"unschedulable": rng.random() < 0.5}


def services(scenario, pod, spec, rng):
    found = scenario.setdefault("services", [])
    for number in range(rng.randint(1, 3)):
        selector = rng.choice([{"app": "web"}, {}, None, {"tier": "back"}, {"app": "api"}])
        service = {
            "metadata": {"name": f"s{number}", "namespace": rng.choice(["shop", "", "batch"])},
            "spec": {"selector": selector},
        }
        if selector is None:
            service["spec"] = {}
        found.append(service)
    kind = rng.choice([("apps/v1", "ReplicaSet", "replicaSets"), ("v1", "ReplicationController", "replicationControllers"),
                       ("apps/v1", "StatefulSet", "statefulSets"), ("apps/v1beta1", "ReplicaSet", "replicaSets")])  # fmt: skip
    pod["metadata"]["ownerReferences"] = [
        {"apiVersion": kind[0], "kind": kind[1], "name": "owner", "uid": "u", "controller": rng.random() < 0.9}
    ]
    selector = rng.choice([{"matchLabels": {"app": "web"}}, {}, None, ODD_SELECTORS[0], ODD_SELECTORS[5]])
    if kind[1] == "ReplicationController":
        selector = rng.choice([{"app": "web"}, {}, {"tier": "front"}])
    owner = {
        "metadata": {
            "name": rng.choice(["owner", "owner", "other"]),
            "namespace": pod["metadata"].get("namespace", ""),
        },
        "spec": {"selector": selector},
    }
    scenario.setdefault(kind[2], []).append(owner)
    if rng.random() < 0.7:
        spec.pop("topologySpreadConstraints", None)
    if rng.random() < 0.6:
        scenario["podTopologySpreadArgs"] = {
            "defaultingType": "List",
            "defaultConstraints": [
                {"maxSkew": rng.randint(1, 2), "topologyKey": key, "whenUnsatisfiable": action}
                for key, action in rng.sample(
                    [("topology.kubernetes.io/zone", "DoNotSchedule"), ("kubernetes.io/hostname", "ScheduleAnyway"),
                     ("topology.kubernetes.io/zone", "ScheduleAnyway"), ("kubernetes.io/hostname", "DoNotSchedule")],
                    rng.randint(1, 3),
                )
            ],
        }  # fmt: skip


def ports(scenario, pod, spec, rng):
    def draw():
        return [{"containerPort": 80, "hostPort": rng.choice([0, 80, 81]), "protocol": rng.choice(["TCP", "UDP"]),
                 "hostIP": rng.choice(["", "0.0.0.0", "127.0.0.1", "::", "10.0.0.1"])} for _ in range(rng.randint(1, 2))]  # fmt: skip

    for target in [spec, *(each["spec"] for each in scenario["pods"] if rng.random() < 0.4)]:
        for container in target.get("containers") or ():
            container["ports"] = draw()
            if scenario.get("raw") and rng.random() < 0.3:
                for port in container["ports"]:
                    port.pop("protocol")
    if rng.random() < 0.2:
        spec["hostNetwork"] = True


def gone_nodes(scenario, pod, spec, rng):
    for each in scenario["pods"]:
        if rng.random() < 0.2:
            each["spec"]["nodeName"] = rng.choice(["gone", ""])
        if rng.random() < 0.2:
            each["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"


MUTATIONS = (
    no_allocatable, no_containers, nameless_pods, empty_namespaces, no_namespaces, odd_constraints, new_constraints,
    node_affinity, node_name, tolerations, quantities, pod_affinity, inline_volumes, claims, volumes, bare_nodes,
    services, ports, gone_nodes,
)  # fmt: skip


def join(scenarios, answers):
    """The lines of a vector file; cases that the oracle could not run are left out."""
    with open(scenarios) as asked, open(answers) as answered:
        for scenario, answer in zip(asked, answered, strict=True):
            expected = json.loads(answer)
            if not expected.get("error"):
                yield json.dumps({"scenario": json.loads(scenario), "expected": expected}, separators=(",", ":"))


def main():
    if sys.argv[1] == "join":
        sys.stdout.writelines(f"{line}\n" for line in join(*sys.argv[2:]))
        return
    rng = random.Random(int(sys.argv[2]))
    for line in sys.stdin:
        scenario = mutate(json.loads(line), rng)
        scenario["id"] = f"odd-{scenario['id']}"
        sys.stdout.write(json.dumps(scenario) + "\n")


if __name__ == "__main__":
    main()
