"""Does what the maintainer of a Redis operator would, from a ConfigMap to a cluster that grows and loses a zone.

`make transcript` writes docs/redis-walk.md, redis-changes.md and redis-mistakes.md. Nothing in them is by hand.
Commands run as a person would type them.
"""

from collections.abc import Callable

import pytest
import yaml
from e2e.terminal import PAGES, Terminal, open_namespaces, with_kubelet
from e2e.test_groups import GROUPS, group
from e2e.test_scan import shard
from e2e.test_switches import NAMESPACE
from e2e.waiting import eventually

HEAD = """\
# Plan a Redis cluster from its ConfigMap

`make transcript` runs these commands in a new cluster and writes this page. The control plane is real, with twelve
fake nodes in three zones. evenspread runs from its image, as plain processes. The script waits for the pods and the
status after each step. [Groups](groups.md) explains the commands. [The next part](redis-changes.md) changes the
cluster.

<!-- run by: tests/e2e/redis_walk.py -->
"""
CHANGES = """\
# A Redis cluster changes: more shards, fewer, an update, a lost zone

`make transcript` writes this page after [the first part](redis-walk.md), in the same cluster. [The last
part](redis-mistakes.md) makes mistakes.

<!-- run by: tests/e2e/redis_walk.py -->
"""
MISTAKES = """\
# A Redis cluster: mistakes, and a plan from the webhook

`make transcript` writes this page after [the changes](redis-changes.md), in the same cluster.

<!-- run by: tests/e2e/redis_walk.py -->
"""
CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: redis}
data:
  cluster-size: "6"
  max-pod-on-node: "1"
  max-pod-in-zone: "2"
  available-zones: a,b,c
"""
STATUS = "kubectl -n shop get spreadgroups"
WHY = (
    "kubectl -n shop get sg {} -o"
    """ jsonpath='{{range .status.conditions[*]}}{{.type}}: {{.reason}}, {{.message}}{{"\\n"}}{{end}}'"""
)
PODS = "kubectl -n shop get pods -o custom-columns=POD:.metadata.name,NODE:.spec.nodeName"
TEMPLATES = "kubectl -n shop get sts -o custom-columns=NAME:.metadata.name,TEMPLATES:.metadata.generation"
LOST = "kubectl taint nodes -l topology.kubernetes.io/zone=c lost"


class Cluster:
    """What is waited for."""

    def __init__(self, plane) -> None:
        self._api = plane.api

    def says(self, *reasons: str, name="redis", namespace="shop", held="") -> None:
        """Until the status of the group as it is now has these reasons, and ``held`` in the message about caps."""

        def told() -> bool:
            made = self._api.request("GET", f"{GROUPS.format(namespace)}/{name}")
            status = made.get("status") or {}
            now = {each["reason"]: each["message"] for each in status.get("conditions", ())}
            current = status.get("observedGeneration") == made["metadata"]["generation"]
            return current and now.keys() >= {*reasons} and now.get("Held", held).endswith(held)

        eventually(told, 90, 0.2)

    def runs(self, pods: int, namespace="shop", image="redis:8") -> None:
        """Until so many pods of the image run, and no other."""

        def there() -> bool:
            found = self._api.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
            run = [each for each in found if each["status"].get("phase") == "Running"]
            return len(found) == len(run) == pods and all(
                each["spec"]["containers"][0]["image"] == image for each in found
            )

        eventually(there, 90, 0.2)

    def alarms(self, namespace="shop") -> None:
        """Until there is an event of a cap that is broken."""
        where = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        eventually(lambda: "GroupCapExceeded" in str(self._api.request("GET", where)), 30, 0.2)


def plain() -> str:
    """The workloads of another cluster, whose author says nothing of spreading."""
    made = [shard(number, {"containers": [{"name": "redis", "image": "redis:8"}]}) for number in range(3)]
    for each in made:
        each["spec"]["template"]["spec"].pop("topologySpreadConstraints", None)
    return yaml.safe_dump_all(made, sort_keys=False)


@pytest.fixture(name="terminal")
def _terminal(plane, tmp_path):
    for zone in "abc":
        of = plane.api.request("GET", f"/api/v1/nodes/node-{zone}-0")
        for name in (f"node-{zone}-2", f"node-{zone}-3"):
            meta = {"name": name, "labels": of["metadata"]["labels"] | {"kubernetes.io/hostname": name}}
            status = {key: of["status"][key] for key in ("allocatable", "capacity")}
            plane.api.request("POST", "/api/v1/nodes", {"metadata": meta, "status": status})
    plane.await_nodes()
    open_namespaces(plane, NAMESPACE, "shop", "cache")
    keys = (("kubernetes.io/hostname", "1/3"), ("topology.kubernetes.io/zone", "1/2"))
    caps = [{"topologyKey": key, "lessThan": share} for key, share in keys]
    asked = group(delivery="inject", expected={"shards": 3, "podsPerShard": 2}, planFor=None, caps=caps)
    for name, text in {
        "redis.yaml": CONFIG,
        "cache.yaml": yaml.safe_dump(asked, sort_keys=False),
        "shards-of-cache.yaml": plain(),
    }.items():
        (tmp_path / name).write_text(text)
    yield from with_kubelet(plane, NAMESPACE, tmp_path, HEAD)


def installed(terminal: Terminal) -> None:
    terminal.say("## Install it")
    terminal.type(
        "helm upgrade --install evenspread charts/evenspread -n evenspread --create-namespace --wait"
        " --set crds.install=true",
        "kubectl api-resources --api-group evenspread.io",
    )


def applied(terminal: Terminal, cluster: Cluster) -> None:
    terminal.say("## Plan from the ConfigMap")
    terminal.type("cat redis.yaml", "evenspread plan redis.yaml -n shop")
    terminal.say("## Apply the plan\n\n`plan` invents the containers. Replace them by yours first:")
    terminal.type(
        "evenspread plan redis.yaml -n shop -o manifest > shards.yaml",
        "head -40 shards.yaml",
        "sed -i 's/image: redis$/image: redis:8/' shards.yaml",
        "kubectl apply -f shards.yaml",
    )
    cluster.runs(6)
    cluster.says("ZoneByZone", "Held", "Delivered", held="the fullest zone has 2 of 2 pods")
    terminal.type(PODS, STATUS, WHY.format("redis"))


def resized(size: int, node: int, zone: int) -> str:
    to = {"cluster-size": size, "max-pod-on-node": node, "max-pod-in-zone": zone}
    edits = "; ".join(f's/{key}: .*/{key}: "{value}"/' for key, value in to.items())
    return f"sed -i '{edits}' redis.yaml"


def grown(terminal: Terminal, cluster: Cluster) -> None:
    terminal.say(
        "## Grow to five shards\n\nThe fields of the old plan keep the new caps too, so no old shard restarts."
        " `plan` prints the missing shards as copies of the first:"
    )
    terminal.type(
        resized(10, 3, 4),
        "evenspread plan redis.yaml -n shop | tail -2",
        "evenspread plan redis.yaml -n shop -o manifest | kubectl apply -f -",
    )
    cluster.runs(10)
    cluster.says("ZoneByZone", "Held", "Delivered", held="the fullest zone has 4 of 4 pods")
    terminal.type(TEMPLATES, STATUS, WHY.format("redis"))
    terminal.write(PAGES / "redis-walk.md")


def grown_again(terminal: Terminal, cluster: Cluster) -> None:
    terminal.begin(CHANGES)
    terminal.say(
        "## Grow to ten shards\n\nThe templates allow one pod on a node. Twenty pods need more on some of the"
        " twelve nodes, so the templates change. All five running shards restart at the same time, each pod by pod."
        " If your database cannot bear this, apply the shards one by one."
    )
    terminal.type(
        resized(20, 6, 9),
        "evenspread plan redis.yaml -n shop | head -22",
        "evenspread plan redis.yaml -n shop | tail -2",
        "evenspread plan redis.yaml -n shop -o manifest | kubectl apply -f -",
    )
    cluster.runs(20)
    cluster.says("ZoneByZone", "Held", "Delivered", held="the fullest zone has 7 of 9 pods")
    terminal.type(TEMPLATES, STATUS, WHY.format("redis"))


def shrunk(terminal: Terminal, cluster: Cluster) -> None:
    terminal.say(
        "## Shrink to five shards\n\nBefore you delete a shard, move its hash slots to other shards: evenspread knows"
        " pods and zones, not your data. Then delete the shards, and change the numbers last. If you change the"
        " numbers first, twenty pods break the caps for ten pods, and you get an alert. evenspread deletes no pod."
    )
    terminal.type(
        "kubectl -n shop delete sts redis-5 redis-6 redis-7 redis-8 redis-9",
        resized(10, 3, 4),
        "evenspread plan redis.yaml -n shop -o manifest | kubectl apply -f -",
    )
    cluster.runs(10)
    cluster.says("ZoneByZone", "Held", "Delivered", held="the fullest zone has 4 of 4 pods")
    terminal.type(STATUS, WHY.format("redis"))


def rolled(terminal: Terminal, cluster: Cluster) -> None:
    terminal.say("## Roll out an update")
    terminal.type("kubectl -n shop set image sts --all redis=redis:8.2")
    cluster.runs(10, image="redis:8.2")
    cluster.says("ZoneByZone", "Held", "Delivered", held="the fullest zone has 4 of 4 pods")
    terminal.type(PODS, STATUS)


def without_a_zone(terminal: Terminal, cluster: Cluster) -> None:
    terminal.say("## Lose a zone\n\nEvict all pods from zone `c`:")
    terminal.type(f"{LOST}=true:NoExecute")
    cluster.says("Kept", "DoesNotFit", "Held")
    terminal.type(PODS, STATUS, WHY.format("redis"), "evenspread explain --pending -n shop")
    terminal.say(
        "The three pods wait for zone `c`: without it, the caps admit only 8 of the 10 pods. Bring the zone back:"
    )
    terminal.type(f"{LOST}-")
    cluster.runs(10, image="redis:8.2")
    cluster.says("ZoneByZone", "Held", "Delivered")
    terminal.type(STATUS)


def mistaken(terminal: Terminal, cluster: Cluster, change: Callable[[str, str], str]) -> None:
    terminal.say(
        "## Make mistakes\n\n`plan` finds faults before you apply them: too low caps, a misspelt key, a wrong number."
    )
    terminal.type(
        "sed 's/max-pod-in-zone: .*/max-pod-in-zone: \"3\"/' redis.yaml | evenspread plan - -n shop | tail -4",
        "sed 's/max-pod-in-zone/max-pods-in-zone/' redis.yaml | evenspread plan - -n shop | head -6",
        "sed 's/\"10\"/ten/' redis.yaml | evenspread plan - -n shop",
    )
    terminal.say("kube-apiserver accepts too low caps. The group's status reports them:")
    terminal.type(change("redis", '"caps":[{"topologyKey":"topology.kubernetes.io/zone","atMost":3}]'))
    cluster.says("Impossible", "CapExceeded")
    cluster.alarms()
    terminal.type(STATUS, WHY.format("redis"), "kubectl -n shop get events --field-selector reason=GroupCapExceeded")
    terminal.say("kube-apiserver refuses a share above 1:")
    terminal.type(change("redis", '"caps":[{"topologyKey":"topology.kubernetes.io/zone","lessThan":"3/2"}]'))
    terminal.say("Restore the caps from the ConfigMap, and create a second group for the same pods:")
    terminal.type(
        "evenspread plan redis.yaml -n shop -o manifest | kubectl apply -f -",
        "kubectl -n shop get sg redis -o yaml | sed 's/name: redis/name: other/' | kubectl create -f -",
    )
    cluster.says("ZoneByZone", "Held", "Delivered")
    cluster.says("Overlaps", name="other")
    terminal.type(STATUS, WHY.format("other"))
    terminal.say("Misspell the selector of the second group, so that it selects no pods:")
    terminal.type(change("other", '"selector":{"matchLabels":{"app":"redsi"}}'))
    cluster.says("NothingSelected", name="other")
    terminal.type(STATUS, WHY.format("other"), "kubectl -n shop delete sg other")


def injected(terminal: Terminal, cluster: Cluster) -> None:
    terminal.say(
        "## Let the webhook deliver the plan\n\nThe StatefulSets of a second Redis have no constraints. Its group"
        " has `delivery: inject`, so the webhook adds the fields at creation:"
    )
    terminal.type("cat cache.yaml", "kubectl -n cache apply -f cache.yaml")
    cluster.says("ZoneByZone", name="cache", namespace="cache")
    terminal.type("kubectl -n cache apply -f shards-of-cache.yaml")
    cluster.runs(6, namespace="cache")
    cluster.says("Delivered", name="cache", namespace="cache")
    terminal.type(
        "kubectl -n cache get sts redis-0 -o yaml | grep -A7 'topologySpreadConstraints:'",
        PODS.replace("shop", "cache"),
        STATUS.replace("shop", "cache"),
    )


@pytest.mark.usefixtures("pod_addresses")  # the Service is dialled
def test_a_redis_cluster(plane, terminal):
    cluster = Cluster(plane)
    installed(terminal)
    applied(terminal, cluster)
    grown(terminal, cluster)
    grown_again(terminal, cluster)
    shrunk(terminal, cluster)
    rolled(terminal, cluster)
    without_a_zone(terminal, cluster)
    terminal.write(PAGES / "redis-changes.md")
    terminal.begin(MISTAKES)
    mistaken(
        terminal,
        cluster,
        lambda name, spec: f"""kubectl -n shop patch sg {name} --type merge -p '{{"spec":{{{spec}}}}}'""",
    )
    injected(terminal, cluster)
    terminal.say(
        "## Uninstall it\n\nPods keep their fields. The CustomResourceDefinition and every group stay until you"
        " delete the definition."
    )
    terminal.type(
        "helm uninstall evenspread -n evenspread",
        "kubectl delete crd spreadgroups.evenspread.io",
        "kubectl -n shop get sts",
    )
    cluster.runs(10, image="redis:8.2")
    terminal.write(PAGES / "redis-mistakes.md")
