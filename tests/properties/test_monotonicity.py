"""Changes of a small cluster that can only help, or change nothing, whatever the cluster is."""

import pytest
from build import cluster, constraint, node, pod, running
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from webhook.core.api.types import NodeSpec, Taint
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.placement.game_from_cluster import PodBatch, game_of
from webhook.core.placement.placement_verdict import PlacementVerdict
from webhook.core.placement.simulation import simulate
from webhook.core.scheduler.cycle import decide
from webhook.core.scheduler.problem import take

quick = settings(max_examples=60)


@st.composite
def written_clusters(draw):
    """``z1: n0=2 ~n1=0 | z2: n2=1``, in the notation of `build.cluster`; some nodes have no zone."""
    nodes = draw(
        st.lists(st.tuples(st.sampled_from(["z1: ", "z2: ", "z3: ", ""]), st.booleans()), min_size=1, max_size=5)
    )
    return " | ".join(
        f"{zone}{'~' * (tainted and draw(st.booleans()))}n{number}={draw(st.sampled_from([2, 1, 3, 0]))}"
        for number, (zone, tainted) in enumerate(nodes)
    )


hard_constraints = st.lists(
    st.builds(
        constraint,
        st.sampled_from([ZONE, HOSTNAME]),
        max_skew=st.integers(1, 3),
        select=st.sampled_from(["app=web", "app=web", "app=other"]),
        min_domains=st.none() | st.integers(1, 4),
        node_taints_policy=st.sampled_from([None, "Honor"]),
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda each: each.topology_key,
)


def feasible(index, constraints, **spec):
    verdict = decide(take(index, pod(constraints=constraints, **spec)))
    return {*verdict.nodes.names_of(verdict.feasible)}


@quick
@given(written_clusters(), hard_constraints, st.integers(0, 1), st.integers(1, 3))
def test_a_higher_max_skew_never_denies_a_node(written, constraints, position, more):
    index, position = cluster(written), position % len(constraints)
    raised = list(constraints)
    raised[position] = replace(raised[position], max_skew=raised[position].max_skew + more)
    before, after = feasible(index, constraints), feasible(index, raised)
    event("admits more" if before < after else "admits the same")
    assert before <= after


INELIGIBLE = {
    "outside of the node selector": (node("extra", "z1"), None),
    "without the key": (node("extra", pool="a"), None),
    "tainted": (
        replace(node("extra", "z9", pool="a"), spec=NodeSpec(taints=(Taint(key="gpu", effect="NoSchedule"),))),
        "Honor",
    ),
}


@pytest.mark.parametrize(("added", "policy"), INELIGIBLE.values(), ids=INELIGIBLE)
@quick
@given(written_clusters(), hard_constraints, st.integers(0, 4))
def test_an_ineligible_node_changes_nothing(added, policy, written, constraints, pods):
    zones = constraint(ZONE, select="app=web", node_taints_policy=policy)
    every = [replace(each, node_taints_policy=policy or each.node_taints_policy) for each in constraints]
    every = [zones, *(each for each in every if each.topology_key != ZONE)]
    index = cluster(written, labelled="pool=a")
    before = feasible(index, every, node_selector={"pool": "a"})
    index.apply("ADDED", added)
    for number in range(pods):
        index.apply("ADDED", running(f"extra-{number}", "extra"))
    assert feasible(index, every, node_selector={"pool": "a"}) == before


@pytest.mark.slow
@quick
@given(written_clusters(), hard_constraints, st.integers(2, 6))
def test_fewer_replicas_fit_where_more_replicas_fit(written, constraints, replicas):
    index = cluster(written)
    problem = take(index, pod(constraints=constraints))

    def verdict(pods):
        return simulate(game_of([PodBatch(problem=problem, pods=pods)], index)).verdict

    more, fewer = verdict(replicas), verdict(replicas - 1)
    event(more.name)
    assert more is not PlacementVerdict.FITS or fewer is PlacementVerdict.FITS
