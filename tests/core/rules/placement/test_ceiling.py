"""`tainted-nodes-counted` and `zone-host-ceiling`, each beside a twin of which it says nothing."""

import pytest
from build import autoscaler, cluster, owner, running
from manifest import decide, examined, said, told, workload
from msgspec.structs import replace

from webhook.core.api.types import NodeSpec, Taint
from webhook.core.json_edits import Edit
from webhook.core.policy.policy import Messages, Mode, Policy
from webhook.core.review.messages import WARNING_CHARS, warnings_of
from webhook.core.rules.frame.subject import NO_TIME, STALE
from webhook.core.scheduler.profile import SchedulerProfile

TAINTED, CEILING = "tainted-nodes-counted", "zone-host-ceiling"
FIXED = Policy(ceiling=Mode.DENY, capacity="fixed")
ZONE, HOST = "zone hard 1 app=web", "hostname hard 1 app=web"
HONOR = " nodeTaintsPolicy:Honor"


def path(rest):
    return f"spec.template.spec.topologySpreadConstraints{rest}"


NOON = "2026-11-21T12:00:00Z"


def asked(*constraints, kind="Deployment", **fields):
    return workload(kind, "app=web", *constraints, **fields)


def with_node(index, name, *, cordoned=False, **taints):
    """The cluster with that node cordoned, or tainted: a key, and since when."""
    found = [Taint(key=key, effect="NoSchedule", time_added=since) for key, since in taints.items()]
    spec = NodeSpec(taints=tuple(found), unschedulable=cordoned or None)
    index.apply("MODIFIED", replace(index.node(name), spec=spec))
    return index


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
    assert told(TAINTED, asked(*constraints, replicas=replicas), cluster(nodes), FIXED) == expected


def test_what_it_says_at_length():
    manifest = asked("hostname soft 1 app=web", ZONE, replicas=7)
    found = examined(manifest, FIXED, index=cluster("a: n1 | b: n2 | c: ~n3 ~n4")).findings
    (finding,) = (each.finding for each in found if each.finding.rule == TAINTED)
    assert finding.path == "spec.template.spec.topologySpreadConstraints[1].nodeTaintsPolicy"
    assert finding.detail == (
        "at most 2 of 7 fit: tainted zone c stays at 0 (2 nodes), and maxSkew 1 lets no other zone have more than 1; "
        "nodeTaintsPolicy Ignore counts nodes although the pods do not tolerate their taints"
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
    policy = Policy(capacity="fixed", messages=Messages(detail=detail))
    manifest = asked(f"{key} hard 1 app=web", replicas=7)
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
    assert told(TAINTED, asked(ZONE, replicas=7), index, FIXED, now=NOON) == expected
    if expected and "dedicated" not in node:
        assert told(TAINTED, asked(ZONE, replicas=7), index, FIXED) == []


def test_the_time_of_what_is_known_outweighs_the_clock():
    index = with_node(
        cluster("a: n1 | b: n2 | c: n3"), "n3", **{"node.kubernetes.io/not-ready": "2026-11-21T09:00:00Z"}
    )
    index.taken_at = "2026-11-21T09:10:00Z"
    assert told(TAINTED, asked(ZONE, replicas=7), index, FIXED, now=NOON) == []
    index.taken_at = "2026-11-21T10:00:00+00:00"
    assert len(told(TAINTED, asked(ZONE, replicas=7), index, FIXED)) == 1


def test_a_toleration_opens_the_zone():
    tolerant = asked(ZONE, replicas=7, tolerations=[{"key": "dedicated", "operator": "Exists"}])
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
    assert told(TAINTED, asked(ZONE, replicas=4, containers=requests), small, FIXED) == [
        "warn at most 2 of 4 fit: tainted zone c stays at 0; set nodeTaintsPolicy: Honor"
    ]
    assert told(TAINTED, asked(ZONE, replicas=5, containers=requests), small, FIXED) == [
        "warn at most 2 of 5 fit: tainted zone c stays at 0"
    ]


def test_its_own_pods_leave_their_room_to_the_new_ones():
    small = cluster("a: n1 | b: n2 | c: ~n3", resources={"cpu": "2", "pods": "110"})
    requests = [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]
    for number in (1, 2):
        pod = running(f"web-{number}", f"n{number}")
        small.apply("ADDED", replace(pod, spec=replace(pod.spec, containers=None)))
    manifest = asked(ZONE, replicas=2, containers=requests)
    assert told(TAINTED, manifest, small, FIXED) == [
        "audit at most 2 pods fit (2 run already): tainted zone c stays at 0"
    ]


@pytest.mark.parametrize(
    ("policy", "index", "expected"),
    [
        pytest.param(FIXED, {}, "warn", id="fixed"),
        pytest.param(Policy(capacity="growing"), {}, "audit", id="growing"),
        pytest.param(Policy(), {}, "warn", id="auto, nodes of no pool"),
        pytest.param(Policy(), {"labelled": "agentpool=x"}, "audit", id="auto, nodes of a pool"),
    ],
)
def test_where_capacity_grows_it_does_not_warn(policy, index, expected):
    for rule, nodes, constraints in (
        (TAINTED, "a: n1 | b: n2 | c: ~n3", [ZONE]),
        (CEILING, "a: n1 | b: n2 n3 n4 n5", [ZONE, HOST]),
    ):
        (answer,) = told(rule, asked(*constraints, replicas=7), cluster(nodes, **index), policy)
        assert answer.split()[0] == expected


def test_the_most_that_an_autoscaler_makes_of_it_is_a_note():
    index = cluster("a: n1 | b: n2 n3 n4 n5")
    manifest = asked(ZONE, HOST, replicas=3)
    assert told(CEILING, manifest, index, FIXED) == []
    index.apply("ADDED", autoscaler("Deployment/web", 6))
    assert told(CEILING, manifest, index, FIXED) == [
        "audit zones of 1 and 4 nodes hold at most 3 pods; make hostname ScheduleAnyway"
    ]


def test_replicas_that_the_manifest_leaves_out():
    index = cluster("a: n1 | b: n2 | c: ~n3")
    manifest = asked(ZONE, kind="Rollout")
    del manifest["spec"]["replicas"]
    assert told(TAINTED, manifest, index, FIXED) == []
    index.apply("ADDED", owner("Rollout/web", replicas=7))
    assert told(TAINTED, manifest, index, FIXED) == [
        "warn at most 2 of 7 fit: tainted zone c stays at 0; set nodeTaintsPolicy: Honor"
    ]


@pytest.mark.parametrize(
    ("nodes", "constraints", "replicas", "expected"),
    [
        pytest.param(
            "a: n1 | b: n2 n3 n4 n5",
            [ZONE, HOST],
            6,
            ["warn zones of 1 and 4 nodes hold at most 3 of 6 pods; make hostname ScheduleAnyway"],
            id="zones of 1 and 4",
        ),
        pytest.param("a: n1 | b: n2 n3 n4 n5", [ZONE, HOST], 3, [], id="as many as they hold"),
        pytest.param("a: n1 n2 | b: n3 n4", [ZONE, HOST], 60, [], id="equal zones"),
        pytest.param("a: n1 | b: n2 n3 n4 n5", [ZONE, "hostname soft 1 app=web"], 6, [], id="one of them soft"),
        pytest.param("a: n1 | b: n2 n3 n4 n5", [ZONE, "hostname hard 6 app=web"], 6, [], id="hosts that take all"),
        pytest.param(
            "a: n1 | b: n2 n3 n4 | c: n5 n6 | d: n7 n8 n9 | e: p1",
            [ZONE, HOST],
            9,
            ["warn zones of 1 to 3 nodes hold at most 8 of 9 pods; make hostname ScheduleAnyway"],
            id="many zones",
        ),
        pytest.param(
            "a: n1=1 | b: n2=1 n3 n4 n5",
            [ZONE, HOST],
            6,
            ["warn zones of 1 and 4 nodes hold at most 3 of 6 pods (2 run already); make hostname ScheduleAnyway"],
            id="with two of them running",
        ),
        pytest.param(
            "a: n1 ~n2=2 | b: n3=1",
            [ZONE, HOST],
            6,
            ["warn 2 zones of 1 node hold at most 3 of 6 pods (3 run already); make hostname ScheduleAnyway"],
            id="zones of 1 node",
        ),
        pytest.param(
            "a: n1 n2 | b: n3 n4 n5 | c: ~n6",
            [ZONE, HOST],
            6,
            [],
            id="where the zones alone admit as few",
        ),
        pytest.param("a: n1=3 | b: n2=3 n3 n4 n5", [ZONE, HOST], 5, [], id="where more run than are asked for"),
        pytest.param(
            " | ".join(["a: n0", *(f"z{n}: n{n} m{n}" for n in range(1, 65))]), [ZONE, HOST], 999, [], id="65 zones"
        ),
        pytest.param(
            "a: n1 | b: n2 n3 n4 n5",
            [f"{HOST} keys:pod-template-hash", f"{ZONE} keys:pod-template-hash"],
            6,
            ["warn zones of 1 and 4 nodes hold at most 3 of 6 pods; make hostname ScheduleAnyway"],
            id="each revision by itself",
        ),
    ],
)
def test_zones_of_unequal_size(nodes, constraints, replicas, expected):
    assert told(CEILING, asked(*constraints, replicas=replicas), cluster(nodes), FIXED) == expected


def test_hosts_that_share_a_name():
    index = cluster("a: n1 | b: n2 n3 n4 n5")
    twin = index.node("n5")
    labels = {**twin.labels, "kubernetes.io/hostname": "n4"}
    index.apply("MODIFIED", replace(twin, metadata=replace(twin.metadata, labels=labels)))
    assert told(CEILING, asked(ZONE, HOST, replicas=6), index, FIXED) == []


def test_no_fix_without_room():
    small = cluster("a: n1 | b: n2 n3 n4 n5", resources={"cpu": "1", "pods": "110"})
    manifest = asked(ZONE, HOST, replicas=6, containers=[{"name": "c", "resources": {"requests": {"cpu": "1"}}}])
    assert told(CEILING, manifest, small, FIXED) == ["warn zones of 1 and 4 nodes hold at most 3 of 6 pods"]


def test_another_constraint_is_made_soft_where_the_first_is_not_enough():
    anti = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [anti]}}
    manifest = asked(ZONE, HOST, replicas=5, affinity=affinity)
    assert told(CEILING, manifest, cluster("a: n1 | b: n2 n3 n4 n5"), FIXED) == []  # spread-conflicts-affinity has it
    manifest = asked(
        "zone hard 1 app=web minDomains:2", "hostname hard 1 app=web", "hostname soft 1 app=web", replicas=6
    )
    found = examined(manifest, FIXED, index=cluster("a: n1 | b: n2 n3 n4 n5")).findings
    (finding,) = (each.finding for each in found if each.finding.rule == CEILING)
    assert finding.remedy == "remove hostname[1]"
    # Once all fit, the loss of a zone would cost pods: the fix sees to that as well.
    assert finding.fix == "remove the constraint and add nodeTaintsPolicy: Honor in zone[0]"
    assert finding.edits == (Edit(path("[1]")), Edit(path("[0].nodeTaintsPolicy"), "Honor"))


@pytest.mark.parametrize(
    ("manifest", "policy", "expected"),
    [
        pytest.param(
            asked(ZONE, replicas=7, schedulerName="volcano"), FIXED, "another scheduler", id="another scheduler"
        ),
        pytest.param(
            asked(ZONE, replicas=7),
            Policy(scheduler_profiles=(SchedulerProfile(disabled_filters=("TaintToleration",)),)),
            "the scheduler's profile disables TaintToleration",
            id="a profile without a filter",
        ),
        pytest.param(
            asked(ZONE, replicas=7),
            Policy(scheduler_profiles=(SchedulerProfile(name="other", disabled_filters=("TaintToleration",)),)),
            None,
            id="a profile of others",
        ),
    ],
)
def test_what_makes_another_scheduler_of_it(manifest, policy, expected):
    answers = said(TAINTED, manifest, policy=policy, index=cluster("a: n1 | b: n2 | c: ~n3"))
    assert answers == [
        "at most 2 of 7 fit: tainted zone c stays at 0" if expected is None else f"not evaluated: {expected}"
    ]


def test_what_is_missing():
    manifest = asked(ZONE, replicas=7)
    index = cluster("a: n1 | b: n2 | c: ~n3")
    assert said(TAINTED, manifest) == ["not evaluated: no cluster"]
    index.lack("pods", "403 Forbidden")
    assert said(TAINTED, manifest, index=index) == ["not evaluated: pods: 403 Forbidden"]


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        pytest.param({"age": 60.0}, set(), id="heard of a minute ago"),
        pytest.param({"age": 61.0}, {STALE}, id="heard of too long ago"),
        pytest.param({"remaining": 0.001}, {NO_TIME}, id="no time"),
    ],
)
def test_a_cluster_that_nobody_knows_for_sure(moment, expected):
    answer = decide(asked(ZONE, replicas=7), policy=FIXED, index=cluster("a: n1 | b: n2 | c: ~n3"), **moment)
    assert {each.missing for each in answer.not_evaluated if each.rule == TAINTED} == expected
    assert [TAINTED in each for each in answer.warnings].count(True) == (0 if expected else 1)


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(asked(ZONE, replicas=1), id="a single replica"),
        pytest.param(asked(ZONE, kind="DaemonSet"), id="a DaemonSet"),
        pytest.param(asked(ZONE, kind="Job", replicas=7), id="a Job"),
        pytest.param(asked(ZONE, kind="Pod"), id="a pod"),
        pytest.param(asked("zone hard 0 app=web", replicas=7), id="a constraint that is refused"),
        pytest.param(asked("zone hard 1 app=web rack=r", replicas=7), id="a selector of others"),
        pytest.param(asked("zone hard 1 {}", replicas=7), id="an empty selector"),
        pytest.param(asked("zone hard 1 null", replicas=7), id="a null selector"),
        pytest.param(
            asked("zone hard 1 app=web keys:team", kind="CloneSet", replicas=7, selector="app=web"),
            id="a key that is on no pod",
        ),
    ],
)
def test_of_what_nothing_is_said(manifest):
    if "team" in str(manifest):  # ignored by Kubernetes, so that the constraint holds as it is
        expected = ["warn at most 2 of 7 fit: tainted zone c stays at 0; set nodeTaintsPolicy: Honor"]
    else:
        expected = []
    assert told(TAINTED, manifest, cluster("a: n1 | b: n2 | c: ~n3"), FIXED) == expected


def test_a_label_that_comes_later_proves_nothing():
    index = cluster("a: n1 | b: n2 | c: ~n3")
    by_name = asked("zone hard 1 app=web keys:statefulset.kubernetes.io/pod-name", kind="StatefulSet", replicas=7)
    assert told(TAINTED, by_name, index, FIXED) == []
    selected = asked("zone hard 1 app=web pod-template-hash=1", replicas=7)
    assert told(TAINTED, selected, index, FIXED) == []


def test_a_selector_that_cannot_be_read():
    manifest = asked(ZONE, replicas=7)
    constraint = manifest["spec"]["template"]["spec"]["topologySpreadConstraints"][0]
    constraint["labelSelector"] = {"matchExpressions": [{"key": "app", "operator": "Is"}]}
    assert told(TAINTED, manifest, cluster("a: n1 | b: n2 | c: ~n3"), FIXED) == []


def test_a_kind_without_a_selector():
    manifest = workload("RayCluster", "app=web")
    group = {"replicas": 7, "template": asked(ZONE)["spec"]["template"]}
    manifest["spec"] = {"headGroupSpec": {"template": asked()["spec"]["template"]}, "workerGroupSpecs": [group]}
    # Any of the two pods that run may be its own.
    assert told(TAINTED, manifest, cluster("a: n1=1 | b: n2=1 | c: ~n3"), FIXED) == [
        "warn at most 2 of 7 fit: tainted zone c stays at 0; set nodeTaintsPolicy: Honor"
    ]


def test_admission_warns():
    answer = decide(asked(ZONE, replicas=7), policy=FIXED, index=cluster("a: n1 | b: n2 | c: ~n3"))
    assert answer.allowed
    assert [each for each in answer.warnings if TAINTED in each] == [
        "evenspread/tainted-nodes-counted: at most 2 of 7 fit: tainted zone c stays at 0; set nodeTaintsPolicy: Honor"
    ]
