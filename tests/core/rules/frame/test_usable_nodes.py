"""Which nodes the pods may use: rules read the pod that kube-apiserver's admission makes of the template."""

import pytest
from build import ROOMY, index, node
from core.rules.shop import shop
from manifest import said, workload
from msgspec import convert
from msgspec.structs import replace

from webhook.core.api.admission_objects import RuntimeClass
from webhook.core.api.types import NodeSpec, NodeStatus, Taint
from webhook.core.api.well_known import ZONE

SANDBOX = {"nodeSelector": {"sandbox": "yes"}, "tolerations": [{"key": "sandbox", "operator": "Exists"}]}
TAINTED = NodeSpec(taints=(Taint(key="sandbox", effect="NoSchedule"),))


def boxed(scheduling=SANDBOX, name="gvisor"):
    return convert({"metadata": {"name": name}, "handler": "runsc", "scheduling": scheduling}, RuntimeClass)


def nodes(text):
    """``a: n1 s2 t3 | n4``: zones and nodes; ``s`` is labelled for the sandbox, ``t`` labelled and tainted for it."""
    found = []
    for part in text.split("|"):
        zone, _, names = part.rpartition(":")
        for name in names.split():
            extra = {"sandbox": "yes"} if name[0] in "st" else {}
            made = replace(node(name, zone.strip() or None, **extra), status=NodeStatus(allocatable=ROOMY))
            found.append(replace(made, spec=TAINTED) if name[0] == "t" else made)
    return found


def in_sandbox(*constraints, **more):
    return workload("Deployment", "app=web", *constraints, runtimeClassName="gvisor", **more)


def known(cluster, *classes):
    for each in classes or [boxed()]:
        cluster.apply("ADDED", each)
    return cluster


@pytest.mark.parametrize(
    ("rule", "cluster", "manifest", "expected"),
    [
        pytest.param(
            "topology-key-partial",
            "a: s1 | b: s2 | n3",
            in_sandbox("zone hard 1 app=web"),
            [],
            id="the class excludes it",
        ),
        pytest.param(
            "topology-key-partial",
            "a: s1 | b: s2 | s3",
            in_sandbox("zone hard 1 app=web"),
            ["1 of 3 usable nodes lacks the label, so zone[0] excludes it"],
            id="the class selects it",
        ),
        pytest.param(
            "topology-key-partial",
            "a: s1 | b: s2 | t3",
            in_sandbox("zone hard 1 app=web"),
            ["1 of 3 usable nodes lacks the label, so zone[0] excludes it"],
            id="the class tolerates it",
        ),
        pytest.param(
            "topology-key-partial",
            "a: s1 | b: s2 | t3",
            workload("Deployment", "app=web", "zone hard 1 app=web"),
            [],
            id="without the class the taint is in the way",
        ),
        pytest.param(
            "spread-without-effect",
            "a: s1 s2 | b: n3",
            in_sandbox("zone hard 1 app=web"),
            ["zone[0] has no effect: all usable nodes are in one zone"],
            id="its nodes are in one zone",
        ),
        pytest.param(
            "spread-without-effect", "a: s1 s2 | b: s3", in_sandbox("zone hard 1 app=web"), [], id="they are in two"
        ),
        pytest.param(
            "spread-conflicts-affinity",
            "a: s1 s2 | b: n3",
            in_sandbox("zone hard 1 app=web nodeAffinityPolicy:Ignore"),
            ["at most 1 of 3 fit: RuntimeClass gvisor allows 1 of 2 zones"],
            id="a domain counts that the class excludes",
        ),
        pytest.param(
            "spread-conflicts-affinity",
            "a: s1 s2 | b: s3",
            in_sandbox("zone hard 1 app=web nodeAffinityPolicy:Ignore"),
            [],
            id="the class selects nodes of both",
        ),
    ],
)
def test_the_runtime_class_chooses_nodes(rule, cluster, manifest, expected):
    assert said(rule, manifest, index=known(index(*nodes(cluster)))) == expected


@pytest.mark.parametrize(
    ("scheduling", "expected"),
    [
        pytest.param({"nodeSelector": {ZONE: "a"}}, [], id="the class leaves one zone"),
        pytest.param(None, ["all 2 running pods are in zone a"], id="the class chooses no nodes"),
    ],
)
def test_pods_that_can_be_in_one_domain_only_are_no_finding(scheduling, expected):
    cluster = known(shop("a: n1=web n2=web | b: n3"), boxed(scheduling))
    assert said("all-in-one-domain", in_sandbox(), index=cluster) == expected


def test_without_a_list_of_classes_the_nodes_are_not_known():
    cluster = index(*nodes("a: s1 | b: s2 | n3"))
    cluster.mark_missing("runtimeclasses", "forbidden")
    assert said("topology-key-partial", in_sandbox("zone hard 1 app=web"), index=cluster) == [
        "not evaluated: runtimeclasses: forbidden"
    ]
    plain = workload("Deployment", "app=web", "zone hard 1 app=web")
    assert said("topology-key-partial", plain, index=cluster) == [
        "1 of 3 usable nodes lacks the label, so zone[0] excludes it"
    ]
