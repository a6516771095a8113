"""A number of domains that the cluster does not have."""

import json

import pytest
from build import ROOMY, cluster, index, node
from manifest import DENY, FIXED, PLAIN, decide, findings_of, said, told, web, workload
from msgspec.structs import replace

from webhook.core.api.types import NodeSpec, NodeStatus, Taint
from webhook.core.json_edits import applied
from webhook.core.policy.policy import Mode
from webhook.core.review.messages import WARNING_CHARS
from webhook.core.scheduler.profile import SchedulerProfile

RULE = "min-domains-unreachable"
ZONE = "topology.kubernetes.io/zone"
CAPPED = ["audit at most 2 of 3 fit: minDomains 3, but 2 eligible zones, with at most 1 pod each; use minDomains: 2"]


def roomy(name, zone, rack=None):
    made = node(name, zone, **({"rack": rack} if rack else {}))
    return replace(made, status=NodeStatus(allocatable=ROOMY))


def cordoned(name, zone, since):
    taint = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule", time_added=since)
    return replace(roomy(name, zone), spec=NodeSpec(taints=(taint,), unschedulable=True))


@pytest.mark.parametrize(
    ("nodes", "constraint", "more", "expected"),
    [
        pytest.param("a: n1 | b: n2", "zone hard 1 app=web minDomains:2", {}, [], id="as many as there are"),
        pytest.param("a: n1 | b: n2", "zone hard 1 app=web", {}, [], id="none is asked for"),
        pytest.param("a: n1 | b: n2", "zone soft 1 app=web minDomains:3", {}, [], id="a soft one is refused anyway"),
        pytest.param(
            "a: n1 | b: n2",
            "zone hard 1 app=web minDomains:3",
            {},
            CAPPED,
            id="one too many",
        ),
        pytest.param(
            "a: n1",
            "zone hard 2 app=web minDomains:3",
            {},
            ["audit at most 2 of 3 fit: minDomains 3, but 1 eligible zone, with at most 2 pods; remove zone[0]"],
            id="one domain",
        ),
        pytest.param("a: n1 | b: n2", "zone hard 3 app=web minDomains:3", {}, [], id="no domain gets so many"),
        pytest.param("a: n1 | b: n2", "zone hard 0 app=web minDomains:3", {}, [], id="a maxSkew that is refused"),
        pytest.param("a: n1 | b: n2", "zone hard 1 app=web minDomains:100000", {}, [], id="a cap, and meant as one"),
        pytest.param("a: n1 | b: n2", "zone hard 1 app=else minDomains:3", {}, [], id="other pods fill it"),
        pytest.param("a: n1 | b: n2", "zone hard 1 {} minDomains:3", {}, [], id="an empty selector counts none"),
        pytest.param(
            "a: n1 | b: n2 | c: n3",
            "zone hard 1 app=web minDomains:3",
            {"affinity": "a or b"},
            CAPPED,
            id="the third is not eligible",
        ),
        pytest.param(
            "a: n1 | b: n2 | c: n3",
            "zone hard 1 app=web minDomains:3 nodeAffinityPolicy:Ignore",
            {"affinity": "a or b"},
            [],
            id="affinity is ignored",
        ),
        pytest.param("a: n1 | b: n2 | c: ~n3", "zone hard 1 app=web minDomains:3", {}, [], id="taints are ignored"),
        pytest.param(
            "a: n1 | b: n2 | c: ~n3",
            "zone hard 1 app=web minDomains:3 nodeTaintsPolicy:Honor",
            {},
            CAPPED,
            id="taints are honoured",
        ),
    ],
)
def test_more_domains_than_there_are(nodes, constraint, more, expected):
    if "affinity" in more:
        zones = {"key": ZONE, "operator": "In", "values": ["a", "b"]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [zones]}]}
        more = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    assert told(RULE, web(constraint, **more), cluster(nodes)) == expected


def test_only_nodes_with_the_keys_of_all_hard_constraints_make_domains():
    found = index(*(roomy(*each) for each in (("n1", "a", "r"), ("n2", "b", "r"), ("n3", "c"))))
    hard, soft = (web("zone hard 1 app=web minDomains:3", f"rack {how} 1 app=web") for how in ("hard", "soft"))
    assert [told(RULE, each, found) for each in (hard, soft)] == [CAPPED, []]


THREE = web("zone hard 1 app=web minDomains:3")


@pytest.mark.parametrize(
    ("policy", "labels", "expected"),
    [
        pytest.param(DENY, "", CAPPED, id="nobody adds nodes"),
        pytest.param(DENY, "karpenter.sh/nodepool=x", [], id="Karpenter does"),
        pytest.param(FIXED, "karpenter.sh/nodepool=x", CAPPED, id="but not here"),
        pytest.param(replace(DENY, domains={ZONE: ("b", "c")}), "", [], id="a third is configured"),
        pytest.param(replace(DENY, domains={ZONE: ("a", "b")}), "", CAPPED, id="these two are configured"),
    ],
)
def test_domains_that_are_not_there_yet(policy, labels, expected):
    assert told(RULE, THREE, cluster("a: n1 | b: n2", labelled=labels), policy) == expected


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        pytest.param(None, CAPPED, id="nothing was injected"),
        pytest.param({"revision": "7f", "constraints": [{"topologyKey": ZONE}]}, [], id="we gave it"),
        pytest.param({"revision": "7f", "filled": [0]}, CAPPED, id="we gave it a selector only"),
        pytest.param("{", CAPPED, id="somebody else wrote there"),
    ],
)
def test_of_what_was_injected_nothing_is_said(record, expected):
    text = record if isinstance(record, str) else json.dumps(record)
    noted = {} if record is None else {"annotations": {"evenspread.io/injected": text}}
    manifest = web("zone hard 1 app=web minDomains:3")
    manifest["spec"]["template"]["metadata"] |= noted
    assert told(RULE, manifest, cluster("a: n1 | b: n2")) == expected


def test_a_selector_that_is_refused_fills_no_cap():
    manifest = web("zone hard 1 app=web minDomains:3")
    selector = {"matchExpressions": [{"key": "app", "operator": "Near"}]}
    manifest["spec"]["template"]["spec"]["topologySpreadConstraints"][0]["labelSelector"] = selector
    assert told(RULE, manifest, cluster("a: n1 | b: n2")) == []


@pytest.mark.parametrize(
    ("kind", "nodes", "constraints", "fields", "expected"),
    [
        pytest.param("Deployment", "a: n1 | b: n2", [], {"replicas": 2}, [], id="all of them fit under the cap"),
        pytest.param("Deployment", "a: n1 | b: n2", [], {"replicas": 3}, CAPPED, id="one more does not"),
        pytest.param("Pod", "a: n1 | b: n2", [], {}, [], id="a single pod"),
        pytest.param("Job", "a: n1 | b: n2", [], {}, [], id="a Job's pods wait for those before them"),
        pytest.param("DaemonSet", "a: n1 | b: n2", [], {}, [], id="a DaemonSet"),
        pytest.param("Deployment", "a: n1=1 | b: n2", [], {"replicas": 1}, [], id="a single replica"),
        pytest.param(
            "Deployment",
            "a: n1=1 | b: n2",
            [],
            {"replicas": 3},
            ["audit at most 2 of 3 fit (1 runs already): " + CAPPED[0].partition(": ")[2]],
            id="one runs",
        ),
        pytest.param(
            "Deployment",
            "a: n1 | b: n2",
            ["hostname hard 1 app=web"],
            {"replicas": 3},
            [CAPPED[0].replace("use minDomains: 2", "make zone ScheduleAnyway")],
            id="beside a hard constraint over hosts nothing is shown of minDomains: 2",
        ),
        pytest.param(
            "Deployment",
            "a: n1",
            ["hostname soft 1 app=web"],
            {"replicas": 3},
            ["audit at most 1 of 3 fit: minDomains 3, but 1 eligible zone, with at most 1 pod; remove minDomains"],
            id="one domain, beside another constraint",
        ),
    ],
)
def test_replicas_without_a_place(kind, nodes, constraints, fields, expected):
    manifest = workload(kind, "app=web", "zone hard 1 app=web minDomains:3", *constraints, **fields)
    assert told(RULE, manifest, cluster(nodes)) == expected


def test_without_min_domains_as_few_would_fit():
    """The tainted zone stays at 0, and so maxSkew is the cap whatever minDomains says."""
    manifest = web("zone hard 1 app=web minDomains:3")
    assert told(RULE, manifest, cluster("a: n1 | b: ~n2")) == []


def test_where_room_is_the_cause_nothing_is_said():
    manifest = web("zone hard 1 app=web minDomains:3")
    small = {"cpu": "1", "memory": "1Gi", "pods": "1"}
    assert told(RULE, manifest, cluster("a: n1 | b: n2", resources=small)) == []
    assert told(RULE, manifest, cluster("a: n1 | b: n2")) == CAPPED


@pytest.mark.parametrize(
    ("since", "expected"),
    [("2026-11-21T11:30:00Z", []), ("2026-11-21T09:00:00Z", CAPPED)],
    ids=["half an hour", "three hours"],
)
def test_a_domain_that_is_cordoned_for_long_is_not_eligible(since, expected):
    honours = web("zone hard 1 app=web minDomains:3 nodeTaintsPolicy:Honor")
    found = index(roomy("n1", "a"), roomy("n2", "b"), cordoned("n3", "c", since))
    assert told(RULE, honours, found, now="2026-11-21T12:00:00Z") == expected


@pytest.mark.parametrize("constraint", ["zone hard 1 app=web minDomains:3", "zone hard 2 app=web minDomains:9"])
def test_the_fix_makes_room_for_all(constraint):
    found = cluster("a: n1 n2 | b: n3")
    manifest = web(f"{constraint} nodeTaintsPolicy:Honor keys:pod-template-hash", replicas=7)
    [capped] = findings_of(RULE, manifest, index=found)
    assert capped.fix == "minDomains: 2"
    assert told(RULE, applied(manifest, capped.edits), found) == []


@pytest.mark.parametrize(
    ("fields", "policy", "missing"),
    [
        pytest.param({"schedulerName": "own"}, DENY, "another scheduler", id="another scheduler"),
        pytest.param(
            {},
            replace(
                DENY, scheduler_profiles=(SchedulerProfile(name="default-scheduler", disabled_filters=("NodePorts",)),)
            ),
            "the scheduler's profile disables NodePorts",
            id="another profile",
        ),
    ],
)
def test_another_scheduler_may_decide_otherwise(fields, policy, missing):
    manifest = web("zone hard 1 app=web minDomains:3", **fields)
    assert said(RULE, manifest, index=cluster("a: n1 | b: n2"), policy=policy) == [f"not evaluated: {missing}"]


@pytest.mark.parametrize(
    ("constraint", "asks"),
    [
        ("zone hard 1 app=web minDomains:3", True),
        ("zone hard 1 app=web minDomains:1", False),
        ("zone hard 1 app=web", False),
    ],
)
def test_without_a_cluster_it_says_what_is_missing(constraint, asks):
    hidden = index()
    hidden.mark_missing("nodes", "403 Forbidden")
    clusters = {"no cluster": None, "no nodes known": index(), "nodes: 403 Forbidden": hidden}
    for missing, known in clusters.items():
        expected = [f"not evaluated: {missing}"] if asks else []
        assert said(RULE, web(constraint), index=known) == expected
        assert said(RULE, workload("Deployment", "app=web"), index=known) == []


def test_its_warning_is_one_short_line():
    manifest = web("zone hard 10 app=web minDomains:99999", replicas=40)
    policy = replace(PLAIN, rules={RULE: Mode.WARN, "replicas-do-not-fit": Mode.OFF})
    [line] = decide(manifest, policy=policy, index=cluster("a: n1 | b: n2")).warnings
    assert len(line) <= WARNING_CHARS
    assert line.endswith("use minDomains: 2")
