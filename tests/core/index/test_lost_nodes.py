"""The cluster after nodes failed, by every question whose answer changes."""

import pytest
from build import NAMESPACE, apart, cluster, running, selector, terminating

from webhook.core.api.selectors import compile_selector
from webhook.core.api.types import PodAffinityTerm
from webhook.core.api.well_known import ZONE
from webhook.core.index.lost_nodes import UNREACHABLE, keeps_name, terminated, without_nodes

WEB = compile_selector(selector("app=web"))


def after(index, name, *, gone):
    slot = index.nodes.view().slots[name]
    return without_nodes(index, 1 << slot, gone=gone), slot


@pytest.mark.parametrize("gone", [False, True])
def test_pods_there_do_not_count(gone):
    index = cluster("z1: a=2 | z2: b=1")
    lost, slot = after(index, "a", gone=gone)
    other = index.nodes.view().slots["b"]
    assert lost.pods.count(NAMESPACE, WEB) == {other: 1}
    assert lost.pods.count(NAMESPACE, WEB, terminating=True) == {other: 1}
    assert slot in index.pods.count(NAMESPACE, WEB)


def test_unreachable_nodes_are_tainted_and_their_domains_stay():
    index = cluster("z1: a | z2: b")
    lost, slot = after(index, "a", gone=False)
    view = lost.nodes.view()
    assert view.taint_classes == ((UNREACHABLE, 1 << slot),)
    assert view.column(ZONE).values == ("z1", "z2")
    assert lost.nodes.get("a") is not None
    assert index.nodes.view().taint_classes == ()


def test_nodes_that_are_gone_take_their_domains_along():
    index = cluster("z1: a | z2: b")
    lost, slot = after(index, "a", gone=True)
    view = lost.nodes.view()
    assert (view.column(ZONE).values, view.live >> slot & 1) == (("z2",), 0)
    assert (lost.nodes.get("a"), lost.nodes.get("b").name) == (None, "b")


def test_pods_with_names_keep_them_until_their_node_is_gone():
    index = cluster("z1: a=1 | z2: b=1")
    unreachable, gone = after(index, "a", gone=False)[0], after(index, "a", gone=True)[0]
    assert [keeps_name(each, NAMESPACE, "a-0") for each in (index, unreachable, gone)] == [True, True, False]
    assert [keeps_name(each, NAMESPACE, "b-0") for each in (unreachable, gone)] == [True, True]
    assert not keeps_name(gone, NAMESPACE, "nobody")


def test_terminating_pods_keep_their_names_on_unreachable_nodes_alone():
    index = cluster("z1: a | z2: b")
    index.apply("ADDED", terminating("a-0", "a"))
    index.apply("ADDED", terminating("c-0", "no-node"))
    unreachable, gone = after(index, "a", gone=False)[0], after(index, "a", gone=True)[0]
    assert [keeps_name(each, NAMESPACE, "a-0") for each in (index, unreachable, gone)] == [False, True, False]
    assert not keeps_name(index, NAMESPACE, "c-0")
    assert terminated(index, NAMESPACE, WEB).pods.matching(NAMESPACE, WEB) == []
    assert terminated(unreachable, NAMESPACE, WEB).pods.on_node(NAMESPACE, "a-0") is not None


def test_anti_affinity_of_lost_pods_keeps_nobody_away():
    term = PodAffinityTerm(label_selector=selector("app=web"), topology_key=ZONE)
    index = cluster("z1: a | z2: b")
    index.apply("ADDED", running("p", "a", affinity=apart(term)))
    lost, _ = after(index, "a", gone=False)
    assert lost.pods.terms_matching(NAMESPACE, {"app": "web"}) == []
    assert len(after(index, "b", gone=True)[0].pods.terms_matching(NAMESPACE, {"app": "web"})) == 1


def test_nobody_there_mounts_a_claim():
    index = cluster("z1: a")
    assert after(index, "a", gone=True)[0].pods.claim_users(NAMESPACE, "data") == {}
