"""Rolling updates that every order ends, in closed form: beside them the search of all orders."""

import pytest
from build import NAMESPACE, cluster, policy
from manifest import pods_term
from manifest import workload as written

from conformance.placing.ours import game_in
from conformance.placing.worlds import world
from webhook.core.api.selectors import selector_from_labels
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.placement.closed_forms import takes_every_pod
from webhook.core.placement.making_room import cause_of_misfit
from webhook.core.placement.placement_verdict import Effort, PlacementVerdict
from webhook.core.placement.search import search
from webhook.core.placement.simulation import simulate
from webhook.core.pods_to_create.missing_pods import rollout_pods
from webhook.core.pods_to_create.next_pod import PodSource
from webhook.core.scheduler.verdict import Cause
from webhook.core.workloads.reading import read_workload

ZONE, HOST = "zone hard 1 app=web", "hostname hard 1 app=web"
TWO = "a: a0=2 | b: b0=2"
FULL = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "32"}}}]}


def rolling(nodes, *constraints, replicas=4, **more):
    workload = read_workload(written("Deployment", "app=web", *constraints, replicas=replicas, **more))
    own = selector_from_labels({"app": "web"})
    source = PodSource(workload=workload, template=workload.templates[0], namespace=NAMESPACE, own=own)
    within = Context(policy=policy(mode="observe"), version=RECORDED, index=cluster(nodes))
    return rollout_pods(source, replicas, within)


@pytest.mark.parametrize(
    ("nodes", "constraints", "more", "known"),
    [
        pytest.param(TWO, [], {}, True, id="no constraint"),
        pytest.param(TWO, [ZONE], {}, True, id="zones"),
        pytest.param(TWO, [f"{ZONE} keys:pod-template-hash"], {}, True, id="zones, a revision alone"),
        pytest.param(TWO, [HOST], {}, True, id="hosts"),
        pytest.param("a: a0=2 | b: b0=2 ~b1=0", [ZONE], {}, True, id="a tainted node in an open zone"),
        pytest.param("a: a0=2 | b: ~b0=2", [ZONE], {}, False, id="a tainted zone"),
        pytest.param("a: a0=2 | b: b0=2 ~b1=0", [HOST], {}, False, id="a tainted host"),
        pytest.param("a: ~a0=2 | b: ~b0=2", [ZONE], {}, False, id="no node"),
        pytest.param(TWO, [f"{ZONE} minDomains:3"], {}, False, id="too few domains"),
        pytest.param(TWO, [f"{HOST} minDomains:3"], {}, False, id="too few hosts"),
        pytest.param(TWO, [ZONE], FULL, False, id="little room"),
        pytest.param("a: a0=1 a1=1 a2=0 | b: b0=2 b1=0 b2=0", [ZONE], FULL, False, id="for six pods a zone"),
        pytest.param("a: a0=1 a1=1 a2=0 a3=0 | b: b0=2 b1=0 b2=0 b3=0", [ZONE], FULL, True, id="for eight"),
        pytest.param("a: a0=2 a1=2 a2=0 a3=0", [], FULL, True, id="room on several nodes"),
        pytest.param(TWO, [ZONE, "hostname hard 2 app=web"], {}, False, id="two constraints"),
        pytest.param(TWO, [], pods_term("podAntiAffinity", "zone"), False, id="anti-affinity"),
        pytest.param(TWO, [], pods_term("podAffinity", "zone"), False, id="affinity"),
    ],
)
def test_every_order_ends(nodes, constraints, more, known):
    game = rolling(nodes, *constraints, **more).game()
    assert takes_every_pod(game.game) is known
    found = search(game.game, 20_000)
    assert found.exact
    if known:
        assert all(end.done for end in found.ends)
        assert simulate(game).verdict is PlacementVerdict.FITS


def test_no_random_rollout_that_is_known_to_end_gets_stuck():
    known = 0
    for number in range(60):
        game = game_in(world("rollout", "takes", number)).game
        if takes_every_pod(game):
            assert all(end.done for end in search(game, 20_000).ends), number
            known += 1
    assert known > 10


@pytest.mark.parametrize(
    ("nodes", "more", "expected"),
    [
        pytest.param("a: a0=2 | b: ~b0=0", {}, Cause.SPREAD, id="spread"),
        pytest.param("a: a0=2 | b: b0=2", FULL, Cause.CAPACITY, id="capacity"),
        pytest.param("a: ~a0=2 | b: ~b0=2", {}, Cause.OTHER, id="taints"),
    ],
)
def test_causes(nodes, more, expected):
    strategy = {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}
    came = rolling(nodes, ZONE, spec=strategy, **more)
    assert simulate(came.game()).verdict is PlacementVerdict.NO_FIT
    assert cause_of_misfit(came.batches, came.index, came.rollout, Effort()) is expected
