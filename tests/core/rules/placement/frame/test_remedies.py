"""What rules about places offer, what they blame, and nodes that are away: common to all of them."""

import pytest
from build import autoscaler, cluster
from core.rules.placement.places import CEILING, HONOR, HOST, TAINTED, ZONE, with_node
from manifest import FIXED, examined, told, web

from webhook.core.policy.policy import Mode


@pytest.mark.parametrize(
    ("nodes", "constraints", "remedy", "fix", "edits"),
    [
        pytest.param("a: n1 | b: ~n2", [ZONE], "remove zone[0]", "remove the constraint", 1, id="one zone is left"),
        pytest.param("a: n1 | b: ~n2", [ZONE, "hostname soft 1 app=web"], "", "", 0, id="beside another constraint"),
        pytest.param(
            "a: n1 n2 | b: n3 n4 n5 | c: ~n6",
            [ZONE, HOST],
            "set nodeTaintsPolicy: Honor",
            "add nodeTaintsPolicy: Honor and add nodeTaintsPolicy: Honor in hostname[1] and add matchLabelKeys:"
            " [pod-template-hash]",
            3,
            id="so that the loss of a zone costs nothing either",
        ),
        pytest.param(
            "a: n1 n2 | b: n4 | c: ~n3",
            ["hostname hard 2 app=web minDomains:3", ZONE],
            "set nodeTaintsPolicy: Honor",
            "add nodeTaintsPolicy: Honor",
            0,
            id="the loss of a zone goes on costing pods: for people alone",
        ),
        pytest.param(
            "a: n1 n2 n3 | c: ~n4 | n9",
            ["zone hard 9 app=web", HOST],
            "set nodeTaintsPolicy: Honor",
            "add nodeTaintsPolicy: Honor",
            0,
            id="as it does where the other constraint would have a single zone",
        ),
    ],
)
def test_a_fix_brings_nothing_else_to_be_said(nodes, constraints, remedy, fix, edits):
    found = examined(web(*constraints, replicas=4), FIXED, index=cluster(nodes)).findings
    finding = next(each.finding for each in found if each.finding.rule == TAINTED and each.mode is Mode.WARN)
    assert (finding.remedy, finding.fix, len(finding.edits)) == (remedy, fix, edits)


ONE_CPU = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]


@pytest.mark.parametrize(
    ("rule", "nodes", "constraints"),
    [
        pytest.param(TAINTED, "a: n1 | b: n2 | c: ~n3", [ZONE], id="a tainted zone"),
        pytest.param(CEILING, "a: n1 | b: n2 n3 n4 n5", [ZONE, "hostname hard 2 app=web"], id="zones and hosts"),
    ],
)
def test_constraints_are_not_blamed_where_as_few_have_room_without_them(rule, nodes, constraints):
    manifest = web(*constraints, replicas=7, containers=ONE_CPU)
    for cpu, expected in (("1", 0), ("9", 1)):
        small = cluster(nodes, resources={"cpu": cpu, "pods": "110"})
        assert len(told(rule, manifest, small, FIXED)) == expected, cpu


def test_more_pods_with_claims_than_are_looked_for():
    claims = {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}
    manifest = web(ZONE, kind="StatefulSet", replicas=999, spec=claims)
    index = cluster("a: n1 | b: n2 | c: ~n3")
    assert told(TAINTED, manifest, index, FIXED) == []
    fewer = web(ZONE, kind="StatefulSet", replicas=99, spec=claims)
    assert told(TAINTED, fewer, index, FIXED) == ["warn at most 2 of 99 fit: tainted zone c stays at 0"]


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        pytest.param([ZONE, HOST], 1, id="a node that is away counts all the same"),
        pytest.param([ZONE + HONOR, HOST + HONOR], 0, id="a node that counts only when it is back"),
    ],
)
def test_nodes_that_are_away_under_zones_and_hosts(constraints, expected):
    """Without the one node of zone a, the hosts of zone b are all that count, and hold any number."""
    index = with_node(cluster("a: n1 | b: n2 n3 n4 n5"), "n1", cordoned=True)
    assert len(told(CEILING, web(*constraints, replicas=6), index, FIXED)) == expected


def test_a_fix_that_uncovers_another_ceiling_is_for_people_alone():
    """Three find a place with it; of the thirteen that the autoscaler may make, zones and hosts hold six."""
    index = cluster("b: n1 n2 | c: ~n3 | d: n4")
    manifest = web(ZONE, "hostname hard 2 app=web", kind="StatefulSet", replicas=3)
    without = examined(manifest, FIXED, index=index).findings
    index.apply("ADDED", autoscaler("StatefulSet/web", 13))
    beside = examined(manifest, FIXED, index=index).findings
    for found, edits in ((without, True), (beside, False)):
        finding = next(each.finding for each in found if each.finding.rule == TAINTED and each.mode is Mode.WARN)
        assert finding.fix.startswith("add nodeTaintsPolicy: Honor")
        assert bool(finding.edits) is edits
