"""Random events of every kind: an index that took them answers as one that is filled with what is left.

    PYTHONPATH=tests python -m properties.churn SEED SECONDS      # as make fuzz-events

The cluster and the object are those of `anything`. Objects come, change, go, and come again under their name. Events
get lost, and a list follows: its objects are put, then the objects that it lacks are deleted, as a reflector does.
Reviews between the events fill what an index keeps from one question to the next.
"""

import json
import random
from itertools import count

from build import filled
from msgspec.structs import replace
from properties.anything import World, hunt, requests

from webhook.core.api.types import Node, ObjectMeta, Pod, PodStatus, TypeMeta
from webhook.core.api.version import KubernetesVersion
from webhook.core.context import Context
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import Owner
from webhook.core.index.readers import decode_object
from webhook.core.index.remote_index import answer_all, judge_remotely
from webhook.core.review.mutation import mutate
from webhook.core.review.review import review

STEPS = 40
_APP = {"matchLabels": {"app": "web"}}
# Kinds that the clusters of `anything` have none of, each by two names.
OTHERS = {
    "v1/LimitRange": {"spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "2"}}]}},
    "v1/Service": {"spec": {"selector": {"app": "web"}}},
    "scheduling.k8s.io/v1/PriorityClass": {"value": 7, "globalDefault": True},
    "node.k8s.io/v1/RuntimeClass": {"handler": "h", "overhead": {"podFixed": {"cpu": "1"}}},
    "autoscaling/v2/HorizontalPodAutoscaler": {
        "spec": {"maxReplicas": 7, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
    },
    "apps/v1/ReplicaSet": {
        "spec": {"replicas": 2, "selector": _APP, "template": {"metadata": {"labels": {"app": "web"}}}}
    },
    "batch/v1/Job": {"spec": {"parallelism": 2, "selector": _APP}},
    "argoproj.io/v1alpha1/Rollout": {"spec": {"replicas": 2, "selector": _APP}},
    "evenspread.io/v1alpha1/SpreadGroup": {
        "spec": {
            "selector": _APP,
            "shard": {"label": "tier"},
            "expected": {"shards": 2, "podsPerShard": 2},
            "caps": [{"topologyKey": "topology.kubernetes.io/zone", "atMost": 2}],
        }
    },
}  # fmt: skip


def others():
    for kind, fields in OTHERS.items():
        api_version, _, name = kind.rpartition("/")
        for number, labels in enumerate(({}, {"app": "web"})):
            meta = {"name": f"x{number}", "namespace": "shop", "labels": labels}
            meta["creationTimestamp"] = f"2026-01-0{2 - number}T00:00:00Z"
            yield decode_object(json.dumps({"metadata": meta, **fields}).encode(), TypeMeta(api_version, name))


def multiplied(nodes, times):
    """The nodes and their doubles, each with a hostname of its own."""
    for node in nodes:
        yield node
        for number in range(times if (node.labels or {}).get("kubernetes.io/hostname") else 0):
            name = f"{node.name}-{number}"
            yield renamed(node, name=name, labels={**node.labels, "kubernetes.io/hostname": name})


def kind_of(value):
    return (value.api_version, value.kind) if isinstance(value, Owner) else (type(value).__name__,)


def meta_of(value):
    return (value.meta if isinstance(value, Owner) else value.metadata) or ObjectMeta()


def at(value):
    return kind_of(value), meta_of(value).namespace, meta_of(value).name


def renamed(value, **fields):
    return replace(value, **{"meta" if isinstance(value, Owner) else "metadata": replace(meta_of(value), **fields)})


class Churn:
    """What the API server has, and an index that gets its events, some of them late."""

    def __init__(self, world, rng):
        self.rng, self.world = rng, world
        self.index = ClusterIndex(KubernetesVersion(1, 37), learn_at=rng.choice((1, 4, 64)), scoring=rng.random() < 0.5)
        nodes = [each for each in world.values if isinstance(each, Node) and each.name]
        values = [each for each in world.values if not isinstance(each, Node)]
        self.pool = [each if meta_of(each).name else renamed(each, name=f"p{n}") for n, each in enumerate(values)]
        self.pool += multiplied(nodes, rng.choice((0, 0, 0, 1, 9)))
        if rng.random() < 0.5:
            self.pool += others()
        self.alive, self.told, self.uids = {}, {}, count(1)
        self.deaf = False

    def put(self, value, *, again):
        """Create an object, or change it; another spec under the uid of a pod is what no API server has."""
        before = self.alive.get(at(value))
        keeps = before is not None and not again and not isinstance(value, Pod)
        uid = meta_of(before).uid if keeps else f"u{next(self.uids)}"
        if before is not None and not keeps:
            self.delete(before)
        made = renamed(value, uid=uid)
        self.alive[at(made)] = made
        self.tell("MODIFIED" if keeps else "ADDED", made)

    def change(self, before, **fields):
        made = replace(before, **fields)
        self.alive[at(made)] = made
        self.tell("MODIFIED", made)

    def delete(self, value):
        del self.alive[at(value)]
        self.tell("DELETED", value)

    def tell(self, event, value):
        if self.deaf:
            return
        assert self.index.apply(event, value) == ""
        if event == "DELETED":
            self.told.pop(at(value), None)
        else:
            self.told[at(value)] = value

    def relist(self):
        """All objects in some order, then what they lack by name and uid alone."""
        self.deaf = False
        listed = [*self.alive.values()]
        self.rng.shuffle(listed)
        for value in listed:
            self.tell("ADDED", value)
        for key, value in [*self.told.items()]:
            if key not in self.alive:
                self.tell("DELETED", value)

    def step(self):
        rng, value = self.rng, self.rng.choice(self.pool)
        there = self.alive.get(at(value))
        what = rng.random()
        if there is None or what < 0.15:
            self.put(value, again=what < 0.1)
        elif what < 0.3:
            self.delete(there)
        elif what < 0.4:
            like = rng.choice([each for each in self.pool if kind_of(each) == kind_of(value)])
            meta = meta_of(value)
            self.put(renamed(like, name=meta.name, namespace=meta.namespace), again=rng.random() < 0.3)
        elif what < 0.6 and isinstance(there, Pod):
            self.change(there, **self.of_pod(there))
        elif what < 0.7:
            labels = meta_of(rng.choice(self.pool)).labels
            self.alive[at(there)] = made = renamed(there, labels=labels)
            self.tell("MODIFIED", made)
        elif what < 0.75:
            self.tell("ADDED", there)
        elif what < 0.8:
            self.deaf = True
        elif what < 0.86:
            self.relist()
        else:
            answers(self.world, self.index)

    def of_pod(self, pod):
        """What changes in the life of a pod."""
        nodes = [each.name for each in self.pool if isinstance(each, Node)] or ["gone"]
        spec, status, what = pod.pod_spec, pod.status or PodStatus(), self.rng.randrange(4)
        if what == 0 and not spec.node_name:
            return {"spec": replace(spec, node_name=self.rng.choice([*nodes, "gone"]))}
        if what == 1:
            return {"status": replace(status, phase=self.rng.choice(("Running", "Succeeded", "Failed", "Pending")))}
        if what == 2:
            return {"metadata": replace(pod.meta, deletion_timestamp="2026-11-22T09:00:00Z")}
        return {"status": replace(status, nominated_node_name=self.rng.choice([*nodes, None]))}


class Asking:
    """As the server asks for what is judged beside the event loop."""

    def __init__(self, index):
        self.index = index

    def all(self, questions):
        return answer_all(self.index, questions)


def answers(world, index):
    """What is decided beside the index, by facts of one moment as the server asks for them, and directly."""
    given = Context(policy=world.policy, version=world.version, now=world.now)
    return [answer for request in requests(world) for answer in _answers(request, given, index)]


def _answers(request, given, index):
    yield judge_remotely(lambda facts: review(request, replace(given, index=facts)), Asking(index))
    yield review(request, replace(given, index=index))
    yield mutate(request, replace(given, index=index), waited=True)


def differences(number):
    """What an index after events answers otherwise than a new one."""
    world = World(number)
    if not world.values:
        return []
    rng = random.Random(number)  # noqa: S311 no secret
    churn = Churn(world, rng)
    first = [*churn.pool]
    rng.shuffle(first)
    for value in first[: rng.randint(0, len(first))]:
        churn.put(value, again=False)
    for _ in range(rng.randint(1, STEPS) if churn.pool else 0):
        churn.step()
    if churn.deaf:
        churn.relist()
    left = sorted(churn.alive.values(), key=at)
    fresh = filled(ClusterIndex(KubernetesVersion(1, 37)), left)
    mine, theirs = answers(world, churn.index), answers(world, fresh)
    return [parted(str(one), str(other)) for one, other in zip(mine, theirs, strict=True) if one != other]


def differences_by_order(number):
    """What an index answers otherwise if the same objects come in the opposite order."""
    world = World(number)
    values = [*{at(each): each for each in world.values or ()}.values()]
    one, other = (
        answers(world, filled(ClusterIndex(KubernetesVersion(1, 37)), each)) for each in (values, values[::-1])
    )
    return [parted(str(a), str(b)) for a, b in zip(one, other, strict=True) if a != b]


def parted(one, other):
    """Two texts from where they differ on."""
    same = next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0)
    return "\n  not  ".join(text[max(0, same - 150) : same + 200] for text in (one, other))


if __name__ == "__main__":
    hunt(lambda number: differences(number) + differences_by_order(number), "world", "with another answer")
