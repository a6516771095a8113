"""Nodes and pods at random, for the scheduler and us to disagree about; the same seed gives the same ones."""

import random

from e2e.objects import HOST, ZONE

NAMESPACES = {"east": {"team": "web"}, "west": {"team": "data"}, "north": {}}
APPS = ("a", "b", "c")
TEAMS = ({"matchLabels": {"team": "web"}}, {"matchExpressions": [{"key": "team", "operator": "Exists"}]}, {})
TAINTS = (
    {"key": "dedicated", "value": "x", "effect": "NoSchedule"},
    {"key": "dedicated", "value": "y", "effect": "NoSchedule"},
    {"key": "gone", "effect": "NoExecute"},
    {"key": "rather-not", "effect": "PreferNoSchedule"},
)
TOLERATIONS = (
    {"key": "dedicated", "operator": "Equal", "value": "x", "effect": "NoSchedule"},
    {"key": "dedicated", "operator": "Exists"},
    {"key": "gone", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
    {"operator": "Exists"},
)
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def sometimes(dice: random.Random, share: float) -> bool:
    return dice.random() < share


def node(dice: random.Random, number: int) -> dict:
    """Of four zones, one in eight without any; of unequal size; with a taint or cordoned now and then."""
    name = f"node-{number:02}"
    labels = {HOST: name, "kubernetes.io/os": "linux", "disk": dice.choice(("ssd", "hdd"))}
    if not sometimes(dice, 0.12):
        labels[ZONE] = f"z{dice.randrange(4)}"
    if sometimes(dice, 0.6):
        labels["rack"] = f"r{dice.randrange(3)}"
    amounts = {
        "cpu": dice.choice(("2", "6", "7500m")),
        "memory": dice.choice(("4Gi", "16Gi")),
        "ephemeral-storage": "9Gi",
    }
    amounts["pods"] = dice.choice(("8", "40", "40"))
    spec: dict = {"taints": dice.sample(TAINTS, 1)} if sometimes(dice, 0.35) else {"taints": []}
    if sometimes(dice, 0.12):
        spec["unschedulable"] = True
        spec["taints"] = [*spec["taints"], CORDON]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def change(dice: random.Random, node: dict) -> dict:
    """What an operator does to a node, as a merge patch: cordon it or not, taint it or not, move it, relabel it."""
    taints = [taint for taint in node["spec"].get("taints", ()) if taint["key"] != CORDON["key"]]
    match dice.randrange(4):
        case 0:
            cordoned = not node["spec"].get("unschedulable")
            return {"spec": {"unschedulable": cordoned, "taints": taints + ([CORDON] if cordoned else [])}}
        case 1:
            kept = [taint for taint in node["spec"].get("taints", ()) if taint["key"] != "dedicated"]
            return {"spec": {"taints": kept + ([TAINTS[0]] if len(taints) < 1 else [])}}
        case 2:
            return {"metadata": {"labels": {ZONE: dice.choice((None, "z0", "z4"))}}}
        case _:
            return {"metadata": {"labels": {"disk": dice.choice(("ssd", "hdd")), "rack": dice.choice((None, "r0"))}}}


def pod(dice: random.Random, name: str) -> dict:
    """With constraints, affinity, tolerations, requests and ports, each of them now and then."""
    labels = {"app": dice.choice(APPS), "revision": dice.choice("12")} | dice.choice(({}, {"tier": "front"}))
    spec: dict = {"containers": [_container(dice)], "affinity": _affinity(dice, labels)}
    if sometimes(dice, 0.7):
        spec["topologySpreadConstraints"] = _constraints(dice, labels)
    if sometimes(dice, 0.4):
        spec["tolerations"] = dice.sample(TOLERATIONS, dice.choice((1, 1, 2)))
    if sometimes(dice, 0.15):
        spec["nodeSelector"] = dice.choice(
            ({"disk": "ssd"}, {"rack": "r1"}, {ZONE: "z1"}, {"disk": "hdd", "rack": "r2"})
        )
    if sometimes(dice, 0.1):
        spec["initContainers"] = [{**_container(dice), "name": "first", "ports": []}]
    metadata: dict = {"name": name, "namespace": dice.choice(list(NAMESPACES)), "labels": labels}
    if sometimes(dice, 0.3):
        metadata["finalizers"] = ["example.com/stays"]  # once it is deleted, it is terminating for the rest of the run
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _container(dice: random.Random) -> dict:
    container: dict = {"name": "c", "image": "busybox"}
    if sometimes(dice, 0.7):
        asked = {
            "cpu": dice.choice(("50m", "50m", "200m", "400m", "3")),
            "memory": dice.choice(("64Mi", "64Mi", "500Mi", "5Gi")),
        }
        if sometimes(dice, 0.05):
            asked["example.com/gpu"] = "1"
        kind = "limits" if "example.com/gpu" in asked or sometimes(dice, 0.2) else "requests"
        container["resources"] = {kind: asked}
    if sometimes(dice, 0.15):
        container["ports"] = [
            {
                "containerPort": 80,
                "hostPort": dice.choice((8080, 8081)),
                **dice.choice(({}, {"hostIP": "127.0.0.1"}, {"protocol": "UDP"})),
            }
        ]
    return container


def _selector(dice: random.Random, labels: dict) -> dict | None:
    return dice.choice(
        (
            {"matchLabels": {"app": labels["app"]}},
            {"matchLabels": {"app": labels["app"]}},
            {"matchLabels": {"app": dice.choice(APPS)}},
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", labels["app"]]}]},
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["b"]}]},
            {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
            {},
        )
    )


def _constraints(dice: random.Random, labels: dict) -> list[dict]:
    found = []
    for key in dice.sample((ZONE, ZONE, HOST, "rack", "nowhere"), dice.choice((1, 1, 2))):
        hard = sometimes(dice, 0.8) and (key != "nowhere" or sometimes(dice, 0.3))
        made: dict = {
            "maxSkew": dice.choice((1, 1, 2, 3)),
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
            "labelSelector": _selector(dice, labels),
        }
        if hard and sometimes(dice, 0.3):
            made["minDomains"] = dice.choice((1, 3, 5, 9))
        if sometimes(dice, 0.3):
            made["nodeAffinityPolicy"] = dice.choice(("Honor", "Ignore"))
        if sometimes(dice, 0.4):
            made["nodeTaintsPolicy"] = dice.choice(("Honor", "Ignore"))
        if sometimes(dice, 0.3):
            made["matchLabelKeys"] = [dice.choice(("revision", "absent"))]
        if (key, hard) not in [(each["topologyKey"], each["whenUnsatisfiable"] == "DoNotSchedule") for each in found]:
            found.append(made)
    return found


def _affinity(dice: random.Random, labels: dict) -> dict:
    made: dict = {}
    if sometimes(dice, 0.2):
        terms = dice.sample(
            (
                {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
                {"matchExpressions": [{"key": "rack", "operator": "DoesNotExist"}]},
                {"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": ["z0", "z1"]}]},
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-03"]}]},
            ),
            dice.choice((1, 2)),
        )
        made["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    for kind, share in (("podAffinity", 0.12), ("podAntiAffinity", 0.2)):
        if sometimes(dice, share):
            made[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": [_term(dice, labels)]}
    return made


def _term(dice: random.Random, labels: dict) -> dict:
    term = {"topologyKey": dice.choice((ZONE, HOST, "rack")), "labelSelector": _selector(dice, labels)}
    where = dice.randrange(4)
    if where == 0:
        term["namespaceSelector"] = dice.choice(TEAMS)
    if where == 1:
        term["namespaces"] = dice.sample(list(NAMESPACES), 2)
    if sometimes(dice, 0.2):
        term["mismatchLabelKeys" if sometimes(dice, 0.5) else "matchLabelKeys"] = ["revision"]
    return term
