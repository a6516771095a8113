"""Pods of custom controllers, with ephemeral volumes: pending ones keep their claims, evicted ones get new claims."""

import pytest
from build import filled, limited, policy
from msgspec import convert

from webhook.core.api.storage import Claim, PersistentVolume
from webhook.core.api.types import Pod
from webhook.core.api.version import RECORDED
from webhook.core.context import Context, problem_of
from webhook.core.placement.game_from_cluster import game_of
from webhook.core.placement.simulation import simulate
from webhook.core.scheduler.cycle import decide
from webhook.core.what_if.workloads import other_pods, workload_of_other_pods

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
ONLY_A = {
    "nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["a0"]}]}]
}


def pod(name, on=None):
    """A pod of a custom controller, with an ephemeral volume."""
    owner = {"apiVersion": "example.com/v1", "kind": "Foo", "name": "foo", "uid": "f", "controller": True}
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "late"}}}}
    meta = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "ownerReferences": [owner]}
    spec = {"nodeName": on, "containers": [{"name": "c"}], "volumes": [volume]}
    return convert({"metadata": meta, "spec": spec}, Pod)


def claim(name, volume=None):
    """The claim of a pod's volume."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-{name}", "controller": True}
    meta = {"name": f"{name}-scratch", "namespace": "shop", "ownerReferences": [owner]}
    meta["annotations"] = BOUND if volume else None
    return convert({"metadata": meta, "spec": {"storageClassName": "late", "volumeName": volume}}, Claim)


def known(most, *objects):
    return filled(limited("a: a0 | b: b0", most), objects)


def placed(index, *pods):
    """The fewest and the most pods that get a node."""
    context = Context(policy=policy(mode="observe"), version=RECORDED, index=index)
    groups = other_pods(pods, (), index)
    batches = [batch for each in groups for batch in workload_of_other_pods(each, context).batches]
    found = simulate(game_of(batches, index))
    return found.fewest, found.most


@pytest.mark.parametrize(("most", "expected"), [(1, (2, 2)), (2, (3, 3))])
def test_pending_pods_count_together_for_the_attach_limit(most, expected):
    names = ("one", "two", "three")
    assert placed(known(most, *map(claim, names)), *map(pod, names)) == expected


@pytest.mark.parametrize(("on", "expected"), [(None, {"a0"}), ("gone", {"a0", "b0"})])
def test_only_a_pending_pod_keeps_its_volume(on, expected):
    volume = convert({"metadata": {"name": "pv"}, "spec": {"nodeAffinity": {"required": ONLY_A}}}, PersistentVolume)
    index = known(9, claim("one", "pv"), volume)
    (found,) = other_pods([pod("one", on)], (), index)
    verdict = decide(problem_of(found.pod, Context(policy=policy(mode="observe"), version=RECORDED, index=index)))
    assert {*verdict.nodes.names_of(verdict.feasible)} == expected


@pytest.mark.parametrize(("most", "expected"), [(1, (2, 2)), (2, (3, 3))])
def test_evicted_pods_get_new_volumes(most, expected):
    volume = convert({"metadata": {"name": "pv"}, "spec": {"nodeAffinity": {"required": ONLY_A}}}, PersistentVolume)
    names = ("one", "two", "three")
    index = known(most, *(claim(name, "pv") for name in names), volume)
    assert placed(index, *(pod(name, "gone") for name in names)) == expected
