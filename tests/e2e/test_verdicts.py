"""What we say of 300 random pods (EVENSPREAD_PODS), one after the other, and what the real scheduler does with them.

The cluster is known through the feed, as in the webhook. Between pods, others are deleted (some stay, terminating) and
nodes are cordoned, tainted and relabelled. `EVENSPREAD_SEED=n` repeats a run.
"""

import collections
import contextlib
import itertools
import json
import os
import random
import re
import time
from collections.abc import Callable

import msgspec
import pytest
from build import pod_names
from e2e import chance
from e2e.controlplane.up import ControlPlane
from e2e.objects import path
from e2e.waiting import eventually

from webhook.cluster.connection import ApiServer
from webhook.cluster.credentials import Account
from webhook.cluster.feed import Feed
from webhook.cluster.resources import BUILT_IN_RESOURCES
from webhook.core.api.types import Pod
from webhook.core.apiserver.admission_plugins import as_created
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.scheduler.cycle import decide
from webhook.core.scheduler.not_evaluated import not_evaluated
from webhook.core.scheduler.problem import take

SEED = int(os.environ.get("EVENSPREAD_SEED") or time.time())
PODS = int(os.environ.get("EVENSPREAD_PODS") or 300)
NODES = 14
EVERY = 8  # pods between changes
GROUND = "/api/v1/nodes"
REVISION = "example.com/revision"
# What PostFilter plugins say, the first of them from 1.34 to 1.36.
AFTER_FILTERS = re.compile(r"(?: no new claims to deallocate,)? preemption:")
NO_NODE_MATCHES = re.compile(r"0/(\d+) nodes are available: \1 node\(s\) didn't match Pod's node affinity/selector")


@pytest.fixture(name="own_plane", scope="module")
def _own_plane(binaries, tmp_path_factory):
    """Not the one of the other tests: their pods would be in the way, and these nodes in theirs."""
    with ControlPlane(tmp_path_factory.mktemp("verdicts"), binaries) as plane:
        for name, labels in {**chance.NAMESPACES, "probes": {}}.items():
            metadata = {"name": name, "labels": labels}
            plane.api.request(
                "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            )
        for name in (*chance.NAMESPACES, "probes"):
            eventually(
                lambda at=name: plane.api.send("GET", f"/api/v1/namespaces/{at}/serviceaccounts/default").status == 200
            )
        yield plane


class Cluster:
    """The real one, and what is known of it; every change returns when both we and the scheduler have seen it."""

    def __init__(self, plane: ControlPlane, feed: Feed) -> None:
        self.api = plane.api
        self.feed = feed
        self.placed: dict[str, dict] = {}
        self._numbers = itertools.count(1)

    def _await(self, fact: Callable[[ClusterIndex], object]) -> None:
        """Until the watches have brought it."""

        def known() -> object:
            with self.feed.lock:
                return fact(self.feed.index)

        eventually(known, 30)

    def add_node(self, node: dict) -> None:
        self.api.request("POST", GROUND, node)
        wanted = {taint["key"] for taint in node["spec"]["taints"]}

        def ready() -> bool:
            spec = self.node(node["metadata"]["name"])["spec"]
            return {taint["key"] for taint in spec.get("taints", ())} == wanted

        eventually(ready, 30)
        self.change_node(node["metadata"]["name"], {})

    def node(self, name: str) -> dict:
        return self.api.request("GET", f"{GROUND}/{name}")

    def change_node(self, name: str, patch: dict) -> None:
        """The scheduler has seen it when a pod that asks for the node's new label finds it."""
        revision = str(next(self._numbers))
        labels = patch.get("metadata", {}).get("labels", {}) | {REVISION: revision}
        changed = self.api.request(
            "PATCH", f"{GROUND}/{name}", {**patch, "metadata": {"labels": labels}}, "application/merge-patch+json"
        )
        wanted = int(changed["metadata"]["resourceVersion"])
        self._await(lambda index: (node := index.nodes.get(name)) and int(node.metadata.resource_version) >= wanted)
        eventually(lambda: self._finds(revision), 30)  # beside the other end-to-end tests it may take ten seconds

    def _finds(self, revision: str) -> bool:
        spec = {
            "containers": [{"name": "c", "image": "busybox"}],
            "nodeSelector": {REVISION: revision},
            "tolerations": [{"operator": "Exists"}],
        }
        where = path("Pod", "probes", name := f"probe-{next(self._numbers)}")
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        self.api.request("POST", path("Pod", "probes"), body)
        node, message = self.scheduled(where)
        self.api.request("DELETE", f"{where}?gracePeriodSeconds=0")
        self._await(lambda index: name not in pod_names(index, "probes"))
        # Pods of the node may keep it away, once the scheduler knows the node's new label.
        return bool(node) or not NO_NODE_MATCHES.match(message)

    def scheduled(self, where: str) -> tuple[str, str]:
        """The node that a pod got, or why it got none."""

        def decided() -> tuple[str, str] | None:
            pod = self.api.request("GET", where)
            node = pod["spec"].get("nodeName", "")
            reasons = [each for each in pod["status"].get("conditions", ()) if each["type"] == "PodScheduled"]
            refused = [each["message"] for each in reasons if each["status"] == "False"]
            return (node, "".join(refused)) if node or refused else None

        return eventually(decided, 20, every=0.005)

    def verdict(self, pod: dict):
        read = as_created(msgspec.json.decode(json.dumps(pod), type=Pod), self.feed.index.version)
        with self.feed.lock:
            problem = take(self.feed.index, read)
        assert set(not_evaluated(problem)) <= {"SchedulerConfiguration", "DynamicResources"}
        return decide(problem)

    def create(self, pod: dict) -> tuple[str, str]:
        """Where it went, or why nowhere; then it is gone again."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        where = path("Pod", namespace, name)
        self.api.request("POST", path("Pod", namespace), pod)
        node, message = self.scheduled(where)
        if node:
            self.placed[name] = pod
            self._await(lambda index: index.pods.record(namespace, name))
        else:
            self.delete(pod, terminating=False)
        return node, message

    def delete(self, pod: dict, *, terminating: bool) -> None:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        where = path("Pod", namespace, name)
        if not terminating:
            self.api.request("PATCH", where, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
        self.api.request("DELETE", f"{where}?gracePeriodSeconds=0")
        self.placed.pop(name, None)
        if terminating:
            self._await(lambda index: index.pods.record(namespace, name).terminating)
        else:
            self._await(lambda index: name not in pod_names(index, namespace))


@pytest.fixture(name="cluster")
def _cluster(own_plane):
    feed = Feed(ApiServer(Account(kubeconfig=str(own_plane.admin))), BUILT_IN_RESOURCES)
    feed.start()
    with contextlib.closing(own_plane.api):
        try:
            eventually(lambda: feed.synced, 30)
            yield Cluster(own_plane, feed)
        finally:
            feed.stop()


def happen(dice: random.Random, cluster: Cluster) -> None:
    """Something between two pods."""
    if cluster.placed and dice.random() < 0.6:
        for name in dice.sample(sorted(cluster.placed), min(4, len(cluster.placed))):
            gone = cluster.placed[name]
            cluster.delete(gone, terminating="finalizers" in gone["metadata"])
    else:
        name = f"node-{dice.randrange(NODES):02}"
        cluster.change_node(name, chance.change(dice, cluster.node(name)))


def test_the_scheduler_does_what_we_say(cluster, capsys):
    dice = random.Random(SEED)  # noqa: S311  cases, not secrets
    for number in range(NODES):
        cluster.add_node(chance.node(dice, number))
    differences, outcomes, reasons = [], collections.Counter(), collections.Counter()
    for number in range(PODS):
        if number % EVERY == EVERY - 1:
            happen(dice, cluster)
        pod = chance.pod(dice, f"pod-{number}")
        verdict = cluster.verdict(pod)
        feasible = {name for name in verdict.nodes.slots if verdict.status(name).code == "Success"}
        node, message = cluster.create(pod)
        outcomes["placed" if node else "pending"] += 1
        reasons.update(reason for status, members in verdict.failed if members for reason in status.reasons)
        said = AFTER_FILTERS.split(message)[0]
        if (node not in feasible) if node else (said != verdict.sentence):
            differences.append(
                {"pod": pod, "node": node, "feasible": sorted(feasible), "said": said, "ours": verdict.sentence}
            )
    with capsys.disabled():
        print(
            f"\nEVENSPREAD_SEED={SEED}: {dict(outcomes)}; pods by what kept nodes away: {dict(reasons.most_common())}"
        )

    assert not differences, f"EVENSPREAD_SEED={SEED}: {len(differences)}, the first: {json.dumps(differences[0])}"
    assert outcomes["pending"] >= 0.15 * PODS, f"EVENSPREAD_SEED={SEED}: too few that fit nowhere"
