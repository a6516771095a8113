"""Where the pods of a workload stand."""

import pytest
from build import running
from core.rules.shop import LABELS, shop
from manifest import DENY, decide, examined, said, workload
from msgspec.structs import replace

from webhook.core.model import HOSTNAME, ZONE
from webhook.core.policy import Messages, Mode

RULE = "all-in-one-domain"


def asked(*constraints, kind="Deployment", **more):
    return workload(kind, "app=web", *constraints, **more)


def told(manifest, found, policy=DENY):
    judged = [each for each in examined(manifest, policy, index=found).findings if each.finding.rule == RULE]
    return [f"{each.mode} {each.finding.summary}; {each.finding.remedy}" for each in judged]


NODE = ["audit all 2 running pods are on one node; spread them over nodes"]
IN_A = ["audit all 2 running pods are in zone a; spread them over zones"]


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        pytest.param("a: n1=web,web | b: n2", NODE, id="on one node"),
        pytest.param("a: n1=web n2=web | b: n3", IN_A, id="in one zone"),
        pytest.param("a: n1=web | b: n2=web", [], id="in two zones"),
        pytest.param("a: n1=web | b: n2", [], id="one pod"),
        pytest.param("a: n1 | b: n2", [], id="none yet"),
        pytest.param("a: n1=web,~web | b: n2", [], id="one, and one on its way out"),
        pytest.param("a: n1=web,old | b: n2", NODE, id="two revisions"),
        pytest.param("a: n1=web,cart | b: n2", [], id="one, and one of another workload"),
        pytest.param("a: n1=web,web", [], id="there is one node"),
        pytest.param("a: n1=web n2=web", [], id="there is one zone"),
        pytest.param("a: n1=web,web n2", NODE, id="there is one zone, and another node in it"),
        pytest.param("a: n1=web n2=web | b: ~n3", [], id="the other zone is cordoned"),
        pytest.param("n1=web n2=web | b: n3", [], id="their nodes have no zone"),
        pytest.param("n1=web,web | b: n3", NODE, id="one node without a zone"),
    ],
)
def test_where_they_stand(cluster, expected):
    assert told(asked(), shop(cluster)) == expected


APART = "a: n1=web n2=web | b: n3"
ALONE = "a: n1=web,web | b: n2"


def near(key, *, required=True):
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "cache"}}}
    if required:
        return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    weighted = [{"weight": 1, "podAffinityTerm": term}, {"weight": 1}]
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}


@pytest.mark.parametrize(
    ("cluster", "fields", "expected"),
    [
        pytest.param(APART, {"nodeSelector": {ZONE: "a"}}, [], id="pinned to the zone"),
        pytest.param(ALONE, {"nodeSelector": {HOSTNAME: "n1"}}, [], id="pinned to the node"),
        pytest.param(
            "a: n1=web,web n2 | b: n3", {"nodeSelector": {ZONE: "a"}}, NODE, id="pinned to the zone, on one node"
        ),
        pytest.param(APART, {"affinity": near(ZONE)}, [], id="wanted near others"),
        pytest.param(APART, {"affinity": near(ZONE, required=False)}, [], id="rather near others"),
        pytest.param(ALONE, {"affinity": near(ZONE)}, NODE, id="near others, in their zone and not on their node"),
        pytest.param(ALONE, {"affinity": near(HOSTNAME)}, [], id="on the node of others, which is in one zone"),
        pytest.param(APART, {"affinity": {"podAntiAffinity": {}}}, IN_A, id="anti-affinity pins nothing"),
        pytest.param(APART, {"replicas": 1}, [], id="one replica"),
        pytest.param(APART, {"replicas": 0}, [], id="no replica"),
        pytest.param(APART, {"replicas": None}, IN_A, id="an autoscaler's replicas"),
        pytest.param(APART, {"kind": "DaemonSet"}, [], id="a DaemonSet"),
        pytest.param(APART, {"kind": "Job"}, [], id="a Job"),
        pytest.param(APART, {"kind": "ReplicationController"}, IN_A, id="its selector is its labels"),
    ],
)
def test_what_may_be_meant(cluster, fields, expected):
    assert told(asked(**fields), shop(cluster)) == expected


@pytest.mark.parametrize(
    ("constraint", "remedy"),
    [
        pytest.param("zone hard 1 app=web", "restart it to place them anew", id="it came after the pods"),
        pytest.param("zone soft 1 app=web", "restart it to place them anew", id="soft"),
        pytest.param("zone hard 1 app=api", "spread them over zones", id="it counts others"),
        pytest.param("zone hard 1 {}", "spread them over zones", id="it counts nobody"),
        pytest.param("zone hard 1 app=a_", "spread them over zones", id="it cannot be read"),
        pytest.param("hostname hard 1 app=web", "spread them over zones", id="over another key"),
    ],
)
def test_what_helps(constraint, remedy):
    assert told(asked(constraint), shop(APART)) == [f"audit all 2 running pods are in zone a; {remedy}"]


@pytest.mark.parametrize(
    ("constraints", "remedy"),
    [
        pytest.param(["zone hard 1 app=web"], "count these pods alone", id="it balances them with others"),
        pytest.param(["zone hard 1 app=web keys:pod-template-hash"], "restart it to place them anew", id="by revision"),
        pytest.param(
            ["zone hard 1 app=web", "zone soft 1 track=stable"], "restart it to place them anew", id="one is for them"
        ),
    ],
)
def test_what_helps_beside_others_that_are_counted(constraints, remedy):
    manifest = workload("Deployment", LABELS["stable"], *constraints, selector=LABELS["stable"])
    found = shop("a: n1=stable n2=stable | b: n3=canary,canary")
    assert told(manifest, found) == [f"audit all 2 running pods are in zone a; {remedy}"]


@pytest.mark.parametrize(
    ("detail", "zone", "node"),
    [
        ("minimal", "in one zone", "on one node"),
        ("own-namespace", "in zone a", "on one node"),
        ("full", "in zone a", "on node n1"),
    ],
)
def test_names_as_far_as_they_may_be_told(detail, zone, node):
    policy = replace(DENY, messages=Messages(detail=detail))
    assert told(asked(), shop(APART), policy) == [f"audit all 2 running pods are {zone}; spread them over zones"]
    assert told(asked(), shop(ALONE), policy) == [f"audit all 2 running pods are {node}; spread them over nodes"]


def test_a_node_that_is_gone_is_no_place():
    found = shop("a: n1=web | b: n2")
    found.apply("ADDED", running("web-9", "n9", LABELS["web"]))
    assert told(asked(), found) == []


def test_what_is_missing():
    assert said(RULE, asked()) == ["not evaluated: no cluster"]
    assert said(RULE, asked(), index=shop("")) == ["not evaluated: no nodes known"]
    found = shop(APART)
    found.lack("pods", "403 Forbidden")
    assert said(RULE, asked(), index=found) == ["not evaluated: pods: 403 Forbidden"]
    without = ["not evaluated: which pods are its own: the kind has no selector"]
    assert (
        said(
            RULE,
            asked(kind="PyTorchJob", spec={"pytorchReplicaSpecs": {"Worker": {"template": {}}}}),
            index=shop(APART),
        )
        == without
    )
    assert said(RULE, asked(spec={"template": None}), index=shop(APART)) == []


def test_the_words():
    found = examined(asked(), index=shop(APART)).findings
    [together] = [each.finding for each in found if each.finding.rule == RULE]
    assert together.detail == "the loss of that zone takes all 2 running pods down; other zones are open to them"
    assert together.fix.startswith(f"- {{maxSkew: 1, topologyKey: {ZONE}, whenUnsatisfiable: ScheduleAnyway")
    warned = replace(DENY, rules={RULE: Mode.WARN})
    assert decide(asked(), policy=warned, index=shop(APART)).warnings == (
        "evenspread/all-in-one-domain: all 2 running pods are in zone a; spread them over zones",
    )
