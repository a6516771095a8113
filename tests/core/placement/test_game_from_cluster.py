"""From pods and a cluster to a game, where neither the search nor brute force would notice."""

from build import apart, cluster, constraint, pod, requiring
from msgspec import convert

from webhook.core.api.storage import CsiNode
from webhook.core.api.types import (
    Container,
    LabelSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinityTerm,
    ResourceRequirements,
)
from webhook.core.api.well_known import ZONE
from webhook.core.placement.game_from_cluster import PodBatch, game_of
from webhook.core.placement.rolling_update import RolloutRules
from webhook.core.placement.search import search
from webhook.core.placement.simulation import simulate
from webhook.core.scheduler.problem import take

SMALL = {"cpu": "2", "memory": "2Gi", "pods": "110"}


def needs(**requests):
    return {"containers": (Container(name="c", resources=ResourceRequirements(requests=requests)),)}


def apart_by(key, select):
    term = PodAffinityTerm(label_selector=LabelSelector(match_labels=select), topology_key=key)
    return apart(term)


def only(name):
    field = NodeSelectorRequirement(key="metadata.name", operator="In", values=(name,))
    return requiring(NodeSelectorTerm(match_fields=(field,)))


def numbers(index, *batches):
    found = search(game_of(batches, index).game, 2_000)
    assert found.exact
    return sorted({end.placed for end in found.ends})


def batch(index, incoming, pods, **more):
    return PodBatch(problem=take(index, incoming), pods=pods, **more)


def test_a_pod_that_names_its_node():
    index = cluster("a: a0=0 a1=0", resources=SMALL)
    assert numbers(index, batch(index, pod(affinity=only("a1"), **needs(cpu="1")), 5)) == [(2,)]
    assert numbers(index, batch(index, pod(affinity=only("elsewhere"), **needs(cpu="1")), 5)) == [(0,)]


def test_workloads_that_need_different_things_of_one_node():
    index = cluster("a: a0=0", resources=SMALL)
    cpu, memory = pod(**needs(cpu="1")), pod(**needs(memory="1Gi"))
    assert numbers(index, batch(index, cpu, 5), batch(index, memory, 5)) == [(2, 2)]


def test_workloads_of_which_one_needs_more():
    index = cluster("a: a0=0 a1=0", resources=SMALL)
    small, large = pod(**needs(cpu="1")), pod(**needs(cpu="2"))
    assert numbers(index, batch(index, small, 2), batch(index, large, 1)) == [(2, 0), (2, 1)]


def test_batches_share_the_attachments_of_a_node():
    index = cluster("a: a0=0 a1=0 a2=0")
    for name, most in (("a0", 1), ("a1", 0)):
        drivers = [{"name": "disks", "allocatable": {"count": most}}]
        index.apply("ADDED", convert({"metadata": {"name": name}, "spec": {"drivers": drivers}}, CsiNode))
    both, a0 = 0b11, 1 << index.nodes.view().slots["a0"]
    without = batch(index, pod(), 1, nodes=a0)
    assert numbers(index, without, batch(index, pod(), 9, drivers=("disks",), nodes=both)) == [(1, 1)]
    assert numbers(index, without, batch(index, pod(), 9, drivers=("files",), nodes=both)) == [(1, 9)]
    pinned = batch(index, pod(), 1, drivers=("disks",), nodes=a0)
    assert numbers(index, pinned, batch(index, pod(), 9, drivers=("disks",), nodes=both)) == [(0, 1), (1, 0)]


def test_an_empty_selector_counts_no_pods_before_1_38():
    index = cluster("a: a0=1 | b: b0=0")
    one = pod(constraints=(constraint(ZONE, select="{}"),))
    assert numbers(index, batch(index, one, 3)) == [(3,)]


def test_anti_affinity_in_a_key_that_some_nodes_lack():
    """Nodes without a zone are in no domain, so that any number of pods may be there."""
    incoming = pod(affinity=apart_by(ZONE, {"app": "web"}))
    for text, most in (("a: a0=0 a1=0 | b: b0=0 b1=0", 2), ("bare=0 | a: a0=0 a1=0 | b: b0=0 b1=0", 3)):
        index = cluster(text)
        assert numbers(index, batch(index, incoming, 3))[-1] == (most,)


def test_pods_that_overfill_their_node_leave_no_place():
    """Of two pods on a node for one, one goes: the other one keeps it full."""
    for room, most in (("1", 0), ("2", 2)):
        index = cluster("a: a0=0 a1=0", resources=SMALL | {"pods": room})
        slots = index.nodes.view().slots
        full, leaving = 1 << slots["a0"], {slots["a0"]: 2}
        batches = [batch(index, pod(), 0, leaving=leaving), batch(index, pod(), 2, nodes=full)]
        rules = RolloutRules(old=0, new=1, replicas=2, surge=0, unavailable=1)
        assert simulate(game_of(batches, index, rollout=rules)).most == most
