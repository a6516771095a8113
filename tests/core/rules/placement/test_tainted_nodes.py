"""`tainted-nodes-counted`, each case beside a twin of which it says nothing."""

import pytest
from build import autoscaler, cluster, owner, running
from core.rules.placement.places import CEILING, HONOR, HOST, NOON, TAINTED, ZONE, with_node
from manifest import FIXED, PLAIN, findings_of, told, web, workload
from msgspec.structs import replace

from webhook.core.json_edits import Edit
from webhook.core.policy.policy import Messages
from webhook.core.review.messages import WARNING_CHARS, warnings_of


@pytest.mark.parametrize(
    ("nodes", "constraints", "replicas", "expected"),
    [
        pytest.param(
            "a: n1 | b: n2 | c: ~n3",
            [ZONE],
            7,
            ["warn at most 2 of 7 fit: tainted zone c stays at 0; set nodeTaintsPolicy: Honor"],
            id="a tainted zone",
        ),
        pytest.param("a: n1 | b: n2 | c: n3 ~n4", [ZONE], 7, [], id="a zone with a node that is not"),
        pytest.param("a: n1 | b: n2 | c: ~n3", [ZONE + HONOR], 7, [], id="Honor"),
        pytest.param("a: n1 | b: n2 | c: ~n3", ["zone soft 1 app=web"], 7, [], id="a soft constraint"),
        pytest.param("a: n1 | b: n2 | c: ~n3", ["zone hard 7 app=web"], 7, [], id="a maxSkew that is never reached"),
        pytest.param(
            "a: n1 | b: n2 | c: ~n3 ~n4 | d: ~n5",
            [ZONE],
            7,
            ["warn at most 2 of 7 fit: 2 tainted zones stay at 0; set nodeTaintsPolicy: Honor"],
            id="two tainted zones",
        ),
        pytest.param(
            "a: n1 n2 n3 | c: ~n4",
            [HOST],
            4,
            ["warn at most 3 of 4 fit: 1 tainted node stays at 0; set nodeTaintsPolicy: Honor"],
            id="a tainted host, not named",
        ),
        pytest.param("a: n1 n2 n3 | c: ~n4", [HOST], 2, [], id="where other hosts are empty too"),
        pytest.param(
            "a: n1 | b: n2 | c: ~n3",
            [ZONE],
            2,
            ["audit at most 2 pods fit: tainted zone c stays at 0; set nodeTaintsPolicy: Honor"],
            id="no replica too many, and no room for another",
        ),
        pytest.param(
            "a: n1 n2 | b: n3 | c: ~n4",
            ["zone hard 2 app=web"],
            3,
            ["audit at most 4 pods fit: tainted zone c stays at 0; set nodeTaintsPolicy: Honor"],
            id="room for some",
        ),
        pytest.param(
            "a: n1=2 | b: n2=1 | c: ~n3=1",
            [ZONE],
            5,
            ["audit at most 5 pods fit (4 run already): tainted zone c stays at 1; set nodeTaintsPolicy: Honor"],
            id="its own pods count",
        ),
        pytest.param(
            "a: n1=2 | b: n2=1 | c: ~n3=1",
            [ZONE],
            6,
            ["warn at most 5 of 6 fit (4 run already): tainted zone c stays at 1; set nodeTaintsPolicy: Honor"],
            id="and are among the replicas",
        ),
        pytest.param("a: ~n1 | b: ~n2", [ZONE], 2, [], id="no node at all for these pods"),
        pytest.param(
            "a: n1 | b: n2 | c: ~n3", [f"{ZONE} minDomains:4"], 7, [], id="too few domains: the minimum is 0 anyway"
        ),
        pytest.param("a: n1 | b: n2 | c: ~n3", ["zone hard 1 app=other"], 7, [], id="pods that it does not count"),
        pytest.param(
            "a: n1 | b: n2 | c: ~n3",
            [ZONE, HOST],
            7,
            [
                "warn at most 2 of 7 fit: tainted zone c stays at 0",
                "warn at most 2 of 7 fit: 1 tainted node stays at 0",
            ],
            id="two constraints, and no change of one is enough",
        ),
        pytest.param(
            "a: n1 n4 n5 n6| b: n2 n7 n8 n9| c: ~n3",
            [ZONE, HOST],
            4,
            ["warn at most 2 of 4 fit: tainted zone c stays at 0; set nodeTaintsPolicy: Honor"],
            id="two constraints, and hosts enough",
        ),
        pytest.param(
            "a: n1 n2 | b: n3 n4 | c: ~n5",
            [ZONE, HOST + HONOR],
            8,
            ["warn at most 2 of 8 fit: tainted zone c stays at 0"],
            id="two constraints that both move",
        ),
    ],
)
def test_domains_of_tainted_nodes(nodes, constraints, replicas, expected):
    assert told(TAINTED, web(*constraints, replicas=replicas), cluster(nodes), FIXED) == expected


def test_what_it_says_at_length():
    manifest = web("hostname soft 1 app=web", ZONE, replicas=7)
    (finding,) = findings_of(TAINTED, manifest, FIXED, index=cluster("a: n1 | b: n2 | c: ~n3 ~n4"))
    assert finding.path == "spec.template.spec.topologySpreadConstraints[1].nodeTaintsPolicy"
    assert finding.detail == (
        "at most 2 of 7 fit: tainted zone c stays at 0 (2 nodes), and maxSkew 1 limits every other zone to 1; "
        "nodeTaintsPolicy: Ignore counts nodes with taints the pods do not tolerate"
    )
    # With one domain fewer the end of a rollout may be uneven: that fix joins.
    assert finding.fix == "add nodeTaintsPolicy: Honor and add matchLabelKeys: [pod-template-hash]"
    assert finding.edits[0] == Edit(finding.path, "Honor")
    (warning,) = warnings_of([finding])
    assert warning == (
        "evenspread/tainted-nodes-counted: at most 2 of 7 fit: tainted zone c stays at 0; set nodeTaintsPolicy: Honor"
    )
    assert len(warning) < WARNING_CHARS


@pytest.mark.parametrize(
    ("detail", "key", "expected"),
    [
        pytest.param("minimal", "zone", "1 tainted zone stays at 0", id="no names"),
        pytest.param("own-namespace", "zone", "tainted zone c stays at 0", id="names of zones"),
        pytest.param("own-namespace", "hostname", "1 tainted node stays at 0", id="no names of hosts"),
        pytest.param("full", "hostname", "tainted node n3 stays at 0", id="all names"),
    ],
)
def test_names_as_configured(detail, key, expected):
    policy = replace(PLAIN, capacity="fixed", messages=Messages(detail=detail))
    manifest = web(f"{key} hard 1 app=web", replicas=7)
    assert told(TAINTED, manifest, cluster("a: n1 | b: n2 | c: ~n3"), policy) == [
        f"warn at most 2 of 7 fit: {expected}; set nodeTaintsPolicy: Honor"
    ]


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param({"cordoned": True}, [], id="cordoned, nobody knows since when"),
        pytest.param(
            {"cordoned": True, "node.kubernetes.io/unschedulable": "2026-11-21T11:30:00Z"}, [], id="cordoned just now"
        ),
        pytest.param(
            {"cordoned": True, "node.kubernetes.io/unschedulable": "2026-11-21T09:00:00Z"},
            ["warn at most 2 of 7 fit: cordoned zone c stays at 0; set nodeTaintsPolicy: Honor"],
            id="cordoned for hours",
        ),
        pytest.param({"node.kubernetes.io/not-ready": None}, [], id="not ready, nobody knows since when"),
        pytest.param({"node.kubernetes.io/not-ready": "2026-11-21T11:30:00Z"}, [], id="not ready since just now"),
        pytest.param(
            {"node.kubernetes.io/not-ready": "2026-11-21T09:00:00Z"},
            ["warn at most 2 of 7 fit: tainted zone c stays at 0; set nodeTaintsPolicy: Honor"],
            id="not ready for hours",
        ),
        pytest.param({"karpenter.sh/disrupted": "2026-11-21T11:59:00Z"}, [], id="about to be replaced"),
        pytest.param(
            {"dedicated": None, "karpenter.sh/disrupted": "2026-11-21T11:59:00Z"},
            ["warn at most 2 of 7 fit: tainted zone c stays at 0; set nodeTaintsPolicy: Honor"],
            id="about to be replaced by one that is tainted too",
        ),
        pytest.param({"node.kubernetes.io/not-ready": "yesterday"}, [], id="a time that is none"),
    ],
)
def test_nodes_that_are_away_for_a_while(node, expected):
    index = with_node(cluster("a: n1 | b: n2 | c: n3"), "n3", **node)
    assert told(TAINTED, web(ZONE, replicas=7), index, FIXED, now=NOON) == expected
    if expected and "dedicated" not in node:
        assert told(TAINTED, web(ZONE, replicas=7), index, FIXED) == []


def test_the_time_of_what_is_known_outweighs_the_clock():
    index = with_node(
        cluster("a: n1 | b: n2 | c: n3"), "n3", **{"node.kubernetes.io/not-ready": "2026-11-21T09:00:00Z"}
    )
    index.taken_at = "2026-11-21T09:10:00Z"
    assert told(TAINTED, web(ZONE, replicas=7), index, FIXED, now=NOON) == []
    index.taken_at = "2026-11-21T10:00:00+00:00"
    assert len(told(TAINTED, web(ZONE, replicas=7), index, FIXED)) == 1


def test_a_toleration_opens_the_zone():
    tolerant = web(ZONE, replicas=7, tolerations=[{"key": "dedicated", "operator": "Exists"}])
    assert told(TAINTED, tolerant, cluster("a: n1 | b: n2 | c: ~n3"), FIXED) == []


def test_pods_of_others_hold_the_zone_up():
    index = cluster("a: n1 | b: n2 | c: ~n3=2")
    manifest = workload("Deployment", "app=web team=new", ZONE, selector="team=new", replicas=6)
    assert told(TAINTED, manifest, index, FIXED) == [
        "audit at most 6 pods fit: tainted zone c stays at 2; set nodeTaintsPolicy: Honor"
    ]
    assert told(TAINTED, {**manifest, "spec": {**manifest["spec"], "replicas": 7}}, index, FIXED) == [
        "warn at most 6 of 7 fit: tainted zone c stays at 2; set nodeTaintsPolicy: Honor"
    ]


def test_a_fix_is_offered_only_if_there_is_room():
    small = cluster("a: n1 | b: n2 | c: ~n3", resources={"cpu": "2", "pods": "110"})
    requests = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
    assert told(TAINTED, web(ZONE, replicas=4, containers=requests), small, FIXED) == [
        "warn at most 2 of 4 fit: tainted zone c stays at 0; set nodeTaintsPolicy: Honor"
    ]
    assert told(TAINTED, web(ZONE, replicas=5, containers=requests), small, FIXED) == [
        "warn at most 2 of 5 fit: tainted zone c stays at 0"
    ]


def test_its_own_pods_leave_their_room_to_the_new_ones():
    small = cluster("a: n1 | b: n2 | c: ~n3", resources={"cpu": "2", "pods": "110"})
    requests = [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]
    for number in (1, 2):
        pod = running(f"web-{number}", f"n{number}")
        small.apply("ADDED", replace(pod, spec=replace(pod.spec, containers=None)))
    manifest = web(ZONE, replicas=2, containers=requests)
    assert told(TAINTED, manifest, small, FIXED) == [
        "audit at most 2 pods fit (2 run already): tainted zone c stays at 0"
    ]


@pytest.mark.parametrize(
    ("policy", "index", "expected"),
    [
        pytest.param(FIXED, {}, "warn", id="fixed"),
        pytest.param(replace(PLAIN, capacity="growing"), {}, "audit", id="growing"),
        pytest.param(PLAIN, {}, "warn", id="auto, nodes of no pool"),
        pytest.param(PLAIN, {"labelled": "agentpool=x"}, "audit", id="auto, nodes of a pool"),
    ],
)
def test_where_capacity_grows_it_does_not_warn(policy, index, expected):
    for rule, nodes, constraints in (
        (TAINTED, "a: n1 | b: n2 | c: ~n3", [ZONE]),
        (CEILING, "a: n1 | b: n2 n3 n4 n5", [ZONE, HOST]),
    ):
        (answer,) = told(rule, web(*constraints, replicas=7), cluster(nodes, **index), policy)
        assert answer.split()[0] == expected


def test_the_most_that_an_autoscaler_makes_of_it_is_a_note():
    index = cluster("a: n1 | b: n2 n3 n4 n5")
    manifest = web(ZONE, HOST, replicas=3)
    assert told(CEILING, manifest, index, FIXED) == []
    index.apply("ADDED", autoscaler("Deployment/web", 6))
    assert told(CEILING, manifest, index, FIXED) == [
        "audit zones of 1 and 4 nodes hold at most 3 pods; make hostname ScheduleAnyway"
    ]


def test_replicas_that_the_manifest_leaves_out():
    index = cluster("a: n1 | b: n2 | c: ~n3")
    manifest = web(ZONE, kind="Rollout")
    del manifest["spec"]["replicas"]
    assert told(TAINTED, manifest, index, FIXED) == []
    index.apply("ADDED", owner("Rollout/web", replicas=7))
    assert told(TAINTED, manifest, index, FIXED) == [
        "warn at most 2 of 7 fit: tainted zone c stays at 0; set nodeTaintsPolicy: Honor"
    ]
