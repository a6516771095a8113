"""What node selector and affinity make of a constraint where no cluster is known."""

import pytest
from build import cluster
from manifest import PLAIN

from webhook.core.api.types import ObjectMeta
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.index.objects import Autoscaler, AutoscalerSpec, ScaleTarget
from webhook.core.policy.policy import Mode
from webhook.core.review.examination import examine

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
WEB = {"matchLabels": {"app": "web"}}
IN_A = {ZONE: "a"}
ALONE = "zone[0] has no effect: all pods go to one zone"
TOGETHER = "zone[0] has no effect: pod affinity keeps the pods in one zone"
APART = "adds nothing: anti-affinity already allows only one pod per"


def constraint(key=ZONE, **fields):
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB, **fields}


def soft(key=ZONE, **fields):
    return constraint(key, whenUnsatisfiable="ScheduleAnyway", **fields)


def within(*terms):
    """Required node affinity: each term the zones that it allows, None where it asks for something else."""
    other = {"key": "arch", "operator": "In", "values": ["arm"]}
    said = [
        {"matchExpressions": [other if zones is None else {"key": ZONE, "operator": "In", "values": [*zones]}]}
        for zones in terms
    ]
    required = {"nodeSelectorTerms": [*said, {}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def pods(name, key=ZONE, selector=WEB, **fields):
    """Required affinity or anti-affinity of pods."""
    term = {"topologyKey": key, "labelSelector": selector, **fields}
    return {"affinity": {name: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def near(**fields):
    return pods("podAffinity", **fields)


def apart(**fields):
    return pods("podAntiAffinity", **fields)


def workload(declared, kind="Deployment", replicas=3, **spec):
    template = {
        "metadata": {"labels": {"app": "web", "tier": "front"}},
        "spec": {"topologySpreadConstraints": [declared], "containers": [], **spec},
    }
    made = {"selector": WEB, "template": template, **({} if replicas is None else {"replicas": replicas})}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web", "namespace": "shop"}, "spec": made}


def found(value, rule, index=None, scalers=()):
    examined = examine(value, Context(policy=PLAIN, index=index, version=RECORDED, now="2026-01-01", scalers=scalers))
    return [each for each in examined.findings if each.finding.rule == rule]


def effects(value, **others):
    return [each.finding.summary for each in found(value, "spread-without-effect", **others)]


def conflicts(value, **others):
    return [(each.finding.summary, each.mode) for each in found(value, "spread-conflicts-affinity", **others)]


@pytest.mark.parametrize(
    ("declared", "spec", "said"),
    [
        pytest.param(constraint(), {"nodeSelector": IN_A}, [ALONE], id="a node selector"),
        pytest.param(soft(), {"nodeSelector": IN_A}, [ALONE], id="a soft constraint"),
        pytest.param(constraint(), within("a"), [ALONE], id="node affinity"),
        pytest.param(constraint(), within("a", "a"), [ALONE], id="twice the same zone"),
        pytest.param(constraint(), {"nodeSelector": IN_A, **within("ab")}, [ALONE], id="selector and affinity"),
        pytest.param(constraint(), {"nodeSelector": IN_A, **within("a", None)}, [ALONE], id="the selector alone"),
        pytest.param(constraint(), within("ab"), [], id="two zones"),
        pytest.param(constraint(), within("a", "b"), [], id="either of two zones"),
        pytest.param(constraint(), within("a", None), [], id="a zone or something else"),
        pytest.param(constraint(), {"nodeSelector": IN_A, **within("b")}, [], id="no zone at all"),
        pytest.param(constraint(HOST), {"nodeSelector": IN_A}, [], id="another key"),
        pytest.param(constraint(nodeAffinityPolicy="Ignore"), {"nodeSelector": IN_A}, [], id="Ignore"),
        pytest.param(constraint(minDomains=2), {"nodeSelector": IN_A}, [], id="minDomains"),
        pytest.param(constraint(maxSkew=0), {"nodeSelector": IN_A}, [], id="a broken constraint"),
        pytest.param(soft(), near(), [TOGETHER], id="soft, and pods that must be together"),
        pytest.param(soft(), near(topologyKey=HOST), [], id="together on one node"),
        pytest.param(soft(), near(labelSelector={"matchLabels": {"tier": "front"}}), [], id="with other pods"),
        pytest.param(soft(), near(namespaces=["other"]), [], id="with pods of another namespace"),
        pytest.param(soft(), near(namespaceSelector={}), [], id="with pods of any namespace"),
        pytest.param(soft(), near(matchLabelKeys=["pod-template-hash"]), [], id="of one revision"),
        pytest.param(
            soft(labelSelector={"matchLabels": {"tier": "front"}}), near(), [], id="counting more than these pods"
        ),
        pytest.param(constraint(HOST), apart(key=HOST), [f"hostname[0] {APART} node"], id="one pod a node"),
        pytest.param(constraint(), apart(), [f"zone[0] {APART} zone"], id="one pod a zone"),
        pytest.param(constraint(HOST), apart(), [], id="one pod a zone, spread over nodes"),
        pytest.param(
            constraint(labelSelector={"matchLabels": {"tier": "front"}}), apart(), [], id="others are counted too"
        ),
        pytest.param(constraint(labelSelector=None), apart(), [], id="nobody is counted"),
    ],
)
def test_without_effect(declared, spec, said):
    assert effects(workload(declared, **spec)) == said


def test_what_stands_beside_is_told():
    [finding] = [each.finding for each in found(workload(constraint(), nodeSelector=IN_A), "spread-without-effect")]
    assert finding.detail == "node selector allows only zone a, so there is nothing to spread over"
    assert (finding.fix, finding.edits) == ("remove the constraint", ())
    [finding] = [each.finding for each in found(workload(constraint(), **within("a")), "spread-without-effect")]
    assert finding.detail.startswith("node affinity allows only zone a")
    [finding] = [each.finding for each in found(workload(constraint(), **apart()), "spread-without-effect")]
    assert finding.detail.endswith("; it only keeps pods off nodes without the label")


BOUND = "at most 1 of 3 fit: node selector allows 1 zone, and minDomains is 2"
NEAR = "at most 1 of 3 fit: pod affinity keeps all pods in one zone"
WARN, AUDIT = Mode.WARN, Mode.AUDIT
TWO = constraint(minDomains=2)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        pytest.param(workload(TWO, nodeSelector=IN_A), [(BOUND, WARN)], id="one zone, minDomains 2"),
        pytest.param(
            workload(constraint(minDomains=3), replicas=5, **within("ab")),
            [("at most 2 of 5 fit: node affinity allows 2 zones, and minDomains is 3", WARN)],
            id="two zones, minDomains 3",
        ),
        pytest.param(workload(constraint(minDomains=2, maxSkew=3), nodeSelector=IN_A), [], id="maxSkew is enough"),
        pytest.param(workload(TWO, **within("ab")), [], id="as many zones as minDomains"),
        pytest.param(workload(TWO, nodeSelector=IN_A, **within("b")), [], id="no zone: not for the constraint"),
        pytest.param(
            workload(constraint(minDomains=2, nodeAffinityPolicy="Ignore"), nodeSelector=IN_A), [], id="Ignore"
        ),
        pytest.param(workload(TWO, replicas=None, nodeSelector=IN_A), [], id="replicas are not known"),
        pytest.param(workload(TWO, replicas=1, nodeSelector=IN_A), [], id="one replica"),
        pytest.param(workload(TWO, kind="DaemonSet", nodeSelector=IN_A), [], id="a DaemonSet"),
        pytest.param(
            workload(constraint(minDomains=2, labelSelector={"matchLabels": {"app": "db"}}), nodeSelector=IN_A),
            [],
            id="other pods are counted",
        ),
        pytest.param(
            workload(
                constraint(minDomains=2, labelSelector={"matchExpressions": [{"key": "app", "operator": "x"}]}),
                nodeSelector=IN_A,
            ),
            [],
            id="a selector that cannot be read",
        ),
        pytest.param(workload(constraint(), **near()), [(f"if there are two zones, {NEAR}", WARN)], id="together"),
        pytest.param(workload(TWO, **near()), [(NEAR, WARN)], id="together, and minDomains"),
        pytest.param(workload(constraint(maxSkew=0), **near()), [], id="a broken constraint"),
        pytest.param(workload(constraint(maxSkew=3), **near()), [], id="together, and maxSkew is enough"),
        pytest.param(workload(constraint()), [], id="nothing stands beside"),
        pytest.param(workload(soft(), **near()), [], id="a soft constraint"),
    ],
)
def test_fewer_places_than_replicas(value, said):
    assert conflicts(value) == said


def hpa(most, namespace="shop", name="web"):
    target = ScaleTarget(api_version="apps/v1", kind="Deployment", name=name)
    meta = ObjectMeta(name="any", namespace=namespace)
    return (Autoscaler(metadata=meta, spec=AutoscalerSpec(scale_target_ref=target, max_replicas=most)),)


def test_an_autoscaler_of_the_same_input_counts():
    value = workload(constraint(minDomains=2, maxSkew=3), nodeSelector=IN_A)
    more = "at most 3 of 9 fit: node selector allows 1 zone, and minDomains is 2"
    assert conflicts(value, scalers=hpa(9)) == [(more, AUDIT)]
    assert conflicts(value, scalers=hpa(9, namespace="other")) == []
    assert conflicts(value, scalers=hpa(9, name="other")) == []
    never = workload(constraint(maxSkew=5))
    assert effects(never) == ["zone[0] does not spread the pods: 3 replicas cannot exceed maxSkew 5"]
    assert effects(never, scalers=hpa(9)) == []


def test_where_nodes_are_known_they_are_looked_at_instead():
    nodes = cluster("a: n1 n2 | b: n3")
    assert conflicts(workload(TWO, nodeSelector=IN_A), index=nodes) == [(BOUND, WARN)], "once"
    assert effects(workload(constraint(), nodeSelector=IN_A), index=nodes) == [
        "zone[0] has no effect: all usable nodes are in one zone"
    ]
