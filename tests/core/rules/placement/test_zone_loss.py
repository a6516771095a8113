"""`zone-loss-strands-pods`: how many replacements stay Pending, each beside a twin of which it says nothing."""

import pytest
from build import cluster, running
from manifest import FIXED, PLAIN, decide, findings_of, said, told, web, workload
from msgspec.structs import replace

from webhook.core.json_edits import Edit
from webhook.core.policy.policy import Messages, Mode

LOSS = "zone-loss-strands-pods"
ZONE, HOST = "zone hard 1 app=web", "hostname hard 1 app=web"
HONOR = " nodeTaintsPolicy:Honor"
HONOR_EVERYWHERE = "set nodeTaintsPolicy: Honor in every constraint"
THREE = "a: n1 n2 | b: n3 n4 | c: n5 n6"


@pytest.mark.parametrize(
    ("nodes", "constraints", "replicas", "expected"),
    [
        pytest.param(
            THREE,
            [ZONE],
            6,
            ["audit if zone a goes NotReady, at least 2 of 6 stay Pending; set nodeTaintsPolicy: Honor"],
            id="two a zone",
        ),
        pytest.param(THREE, [ZONE + HONOR], 6, [], id="Honor"),
        pytest.param(THREE, ["zone soft 1 app=web"], 6, [], id="a soft constraint"),
        pytest.param(THREE, ["zone hard 3 app=web"], 6, [], id="a maxSkew that takes all"),
        pytest.param(THREE, [ZONE], 2, [], id="as many as zones are left"),
        pytest.param(
            THREE,
            [ZONE],
            3,
            ["audit if zone a goes NotReady, at least 1 of 3 stay Pending; set nodeTaintsPolicy: Honor"],
            id="one a zone",
        ),
        pytest.param("a: n1 n2 n3", [ZONE], 6, [], id="a single zone"),
        pytest.param(
            "a: n1 | b: n2 | c: ~n3",
            [ZONE],
            2,
            ["audit if zone a goes NotReady, at least 1 of 2 stay Pending; set nodeTaintsPolicy: Honor"],
            id="a zone that is closed already",
        ),
        pytest.param("a: n1 | b: n2 | c: ~n3", [ZONE], 6, [], id="where they do not fit today"),
        pytest.param(
            "a: n1=2 | b: n2=3 | c: n3=2",
            [ZONE],
            7,
            ["audit if zone b goes NotReady, at least 3 of 7 stay Pending; set nodeTaintsPolicy: Honor"],
            id="the worst zone, where all run",
        ),
        pytest.param(
            "a: n1=1 n2=1 | b: n3=1 n4=2 | c: n5=1 n6=1",
            [ZONE],
            7,
            ["audit if zone b goes NotReady, at least 3 of 7 stay Pending; set nodeTaintsPolicy: Honor"],
            id="the worst zone of several nodes",
        ),
        pytest.param("a: n1=2 | b: n2=3 | c: n3=2", [ZONE], 8, [], id="where only some run"),
        pytest.param(
            "a: n1=1 n2=1 n3 | b: n4=1",
            [HOST],
            3,
            ["audit if zone a goes NotReady, at least 2 of 3 stay Pending; set nodeTaintsPolicy: Honor"],
            id="hosts of a zone",
        ),
        pytest.param("a: n1=1 n2 | b: n3=1 n4 n5 | c: n6=1", [HOST], 3, [], id="hosts enough in the others"),
        pytest.param(
            "a: n1 n2 | b: n3 n4",
            [HOST],
            4,
            ["audit if zone a goes NotReady, at least 2 of 4 stay Pending; set nodeTaintsPolicy: Honor"],
            id="hosts of a zone, none running",
        ),
        pytest.param(
            THREE,
            [ZONE, HOST],
            3,
            ["audit if zone a goes NotReady, at least 1 of 3 stay Pending; set nodeTaintsPolicy: Honor"],
            id="two constraints, of which one is in the way",
        ),
        pytest.param(
            "a: n1 n2 | b: n3 n4",
            [ZONE, HOST],
            4,
            [],
            id="two constraints that both move: it is not certain that all fit today",
        ),
        pytest.param(
            "a: n1=1 n2=1 | b: n3=1 n4=1",
            [ZONE, HOST],
            4,
            ["audit if zone a goes NotReady, at least 2 of 4 stay Pending"],
            id="where all run, they fit; what would help is not certain",
        ),
        pytest.param(
            "a: n1=1 n2 | b: n3=1",
            [ZONE, HOST],
            2,
            [f"audit if zone a goes NotReady, at least 1 of 2 stay Pending; {HONOR_EVERYWHERE}"],
            id="two constraints that are both in the way",
        ),
        pytest.param(
            "a: n1 | b: n2 n3",
            [ZONE, HOST],
            2,
            [f"audit if zone a goes NotReady, at least 1 of 2 stay Pending; {HONOR_EVERYWHERE}"],
            id="two constraints, of which the second is in the way where another zone is lost",
        ),
        pytest.param(
            "a: n1=1 | n2",
            [ZONE],
            1,
            [],
            id="a single replica",
        ),
        pytest.param(
            "a: n1 n2 | n3",
            [ZONE],
            2,
            ["audit if zone a goes NotReady, at least 2 of 2 stay Pending; remove zone[0]"],
            id="all nodes with the key are lost, and there is room on another",
        ),
        pytest.param("a: n1 n2", [ZONE], 2, [], id="all nodes are lost"),
    ],
)
def test_a_lost_zone(nodes, constraints, replicas, expected):
    assert told(LOSS, web(*constraints, replicas=replicas), cluster(nodes), FIXED) == expected


def test_what_it_says_at_length():
    (finding,) = findings_of(LOSS, web(ZONE, replicas=6), FIXED, index=cluster(THREE))
    assert finding.path == "spec.template.spec.topologySpreadConstraints[0].nodeTaintsPolicy"
    assert finding.detail == (
        "if zone a goes NotReady, at least 2 of 6 stay Pending: its tainted nodes still count for zone[0] with 0 pods,"
        " so maxSkew limits every other zone to 1 pod"
    )
    assert finding.fix == "add nodeTaintsPolicy: Honor"
    assert finding.edits == (Edit(finding.path, "Honor"),)


ONE_CPU = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        pytest.param(
            5,
            ["audit if zone a goes NotReady, at least 1 of 5 stay Pending; set nodeTaintsPolicy: Honor"],
            id="room for all",
        ),
        pytest.param(6, ["audit if zone a goes NotReady, at least 2 of 6 stay Pending"], id="room for some"),
        pytest.param(8, [], id="room for none"),
    ],
)
def test_room_in_the_other_zones(replicas, expected):
    small = cluster("a: n1 n2 n3 | b: n4 n5 | c: n6 n7 n8", resources={"cpu": "1", "pods": "110"})
    assert told(LOSS, web(ZONE, replicas=replicas, containers=ONE_CPU), small, FIXED) == expected


def test_pods_that_tolerate_everything():
    anywhere = web(ZONE, replicas=6, tolerations=[{"operator": "Exists"}])
    assert told(LOSS, anywhere, cluster(THREE), FIXED) == []


def test_a_domain_that_reaches_beyond_the_zone():
    index = cluster("a: n1 | b: ~n2 | c: n3")
    for name, rack in (("n1", "x"), ("n2", "x"), ("n3", "y")):
        node = index.nodes.get(name)
        labels = {**node.labels, "rack": rack}
        index.apply("MODIFIED", replace(node, metadata=replace(node.metadata, labels=labels)))
    # The tainted node of rack x that is left in zone b holds no pod, and counts.
    assert told(LOSS, web("rack hard 1 app=web", replicas=2), index, FIXED) == [
        "audit if zone a goes NotReady, at least 1 of 2 stay Pending; set nodeTaintsPolicy: Honor"
    ]


def racked(nodes, racks):
    index = cluster(nodes)
    for name, rack in racks.items():
        node = index.nodes.get(name)
        index.apply("MODIFIED", replace(node, metadata=replace(node.metadata, labels={**node.labels, "rack": rack})))
    return index


def test_a_domain_that_keeps_nodes_keeps_its_room():
    """What the domain lost with the zone comes back on its other node."""
    index = racked("a: n1=2 | b: n2 | c: n3=2", {"n1": "x", "n2": "x", "n3": "y"})
    assert told(LOSS, web("rack hard 2 app=web", replicas=4), index, FIXED) == [
        "audit if zone c goes NotReady, at least 2 of 4 stay Pending; set nodeTaintsPolicy: Honor"
    ]


def test_of_zones_that_cost_the_same_the_one_with_room_elsewhere_is_named():
    """With zone a goes the only large node: what stays Pending then lacks room."""
    index = cluster("a: n1 | b: n2 | c: n3", resources={"cpu": "2", "pods": "110"})
    large = index.nodes.get("n1")
    index.apply("MODIFIED", replace(large, status=replace(large.status, allocatable={"cpu": "9", "pods": "110"})))
    two = [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]
    assert told(LOSS, web(ZONE, replicas=3, containers=two), index, FIXED) == [
        "audit if zone b goes NotReady, at least 1 of 3 stay Pending; set nodeTaintsPolicy: Honor"
    ]


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param({"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}, 0, id="for ever"),
        pytest.param(
            {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "tolerationSeconds": 30}, 1, id="a while"
        ),
        pytest.param({"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}, 0, id="new pods too"),
    ],
)
def test_pods_that_tolerate_that_the_node_is_gone(toleration, expected):
    manifest = web(ZONE, replicas=6, tolerations=[{**toleration, "operator": "Exists"}])
    assert len(told(LOSS, manifest, cluster(THREE), FIXED)) == expected


def test_pods_of_others_that_count():
    """Nobody knows whether they are replaced, and where."""
    index = cluster("a: n1=1 | b: n2=1 | c: n3=1")
    index.apply("ADDED", running("theirs", "n1", "app=web team=other"))
    own = workload("Deployment", "app=web", ZONE, replicas=3)
    own["spec"]["selector"] = {
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "team", "operator": "DoesNotExist"}],
    }
    assert told(LOSS, own, index, FIXED) == []


def test_names_as_configured():
    policy = replace(PLAIN, capacity="fixed", messages=Messages(detail="minimal"))
    assert told(LOSS, web(ZONE, replicas=6), cluster(THREE), policy) == [
        "audit if a zone goes NotReady, at least 2 of 6 stay Pending; set nodeTaintsPolicy: Honor"
    ]


def test_statefulsets_wait_for_somebody():
    assert told(LOSS, web(ZONE, kind="StatefulSet", replicas=6), cluster(THREE), FIXED) == []
    assert said(LOSS, web(ZONE, kind="StatefulSet", replicas=6)) == []
    assert said(LOSS, web(ZONE, replicas=6)) == ["not evaluated: no cluster"]


@pytest.mark.parametrize(
    ("mode", "remedy"),
    [
        pytest.param(Mode.AUDIT, "", id="nobody is told"),
        pytest.param(Mode.WARN, "set nodeTaintsPolicy: Honor", id="somebody is"),
    ],
)
def test_at_admission_a_remedy_is_for_whoever_reads_it(mode, remedy):
    decision = decide(web(ZONE, replicas=6), policy=replace(FIXED, rules={LOSS: mode}), index=cluster(THREE))
    (loss,) = [each.finding for each in decision.findings if each.finding.rule == LOSS]
    assert (loss.summary, loss.remedy) == ("if zone a goes NotReady, at least 2 of 6 stay Pending", remedy)
