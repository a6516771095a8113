"""Topology keys that are no label of any node."""

import pytest
from build import index, node
from manifest import decide, examined, findings, said, workload

from webhook.core.index.key_suggestions import meant_by
from webhook.core.spelling import did_you_mean, nearest


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("topology.kubernetes.io/hostname", "kubernetes.io/hostname"),
        ("kubernetes.io/host", "kubernetes.io/hostname"),
        ("kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("topology.kubernetes.io/zones", "topology.kubernetes.io/zone"),
        ("topology.kuberentes.io/zone", "topology.kubernetes.io/zone"),
        ("topology.kubernetes.io/Zone", "topology.kubernetes.io/zone"),
        ("failure-domain.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("topology.k8s.io/region", "topology.kubernetes.io/region"),
        ("kubernetes.io/hostnmae", "kubernetes.io/hostname"),
        ("topology.kubernetes.io/zone", None),
        ("kubernetes.io/hostname", None),
        ("failure-domain.beta.kubernetes.io/zone", None),
        ("zone", None),
        ("hostname", None),
        ("example.com/zone", None),
        ("topology.kubernetes.io/rack", None),
        ("topology.k8s.aws/zone-id", None),
        ("topology.gke.io/zone", None),
        ("topology.ebs.csi.aws.com/zone", None),
        ("topology.disk.csi.azure.com/zone", None),
        ("node.kubernetes.io/instance-type", None),
        ("kubernetes.azure.com/zone", None),
        ("karpenter.sh/capacity-type", None),
        ("", None),
        ("/", None),
    ],
    ids=str,
)
def test_which_keys_are_misspelt(key, meant):
    assert meant_by(key) == meant


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [("abc", "abc", 0), ("abc", "acb", 1), ("abc", "ab", 1), ("abc", "xbc", 1), ("", "ab", 2), ("abcd", "badc", 2)],
)
def test_letters_between_two_texts(one, other, distance):
    assert nearest(one, (other,), distance) == other
    assert nearest(one, (other,), distance - 1) is None


def test_the_nearest_of_several_and_words_that_are_similar():
    assert nearest("ignor", ("honor", "ignore"), 2) == "ignore"
    assert did_you_mean("shp", ("shop", "ship", "db"), 2) == "; did you mean 'shop' or 'ship'?"
    assert did_you_mean("shop", ()) == ""


def test_a_key_of_ones_own_is_right():
    found = findings(workload("Deployment", "app=web", "example.com/rack hard 1 app=web", "room hard 1 app=web"))
    assert [rule for rule, *_ in found if rule.startswith("topology-key-")] == []


def test_a_misspelt_key_is_told_with_the_right_one():
    manifest = workload("Deployment", "app=web", "topology.kubernetes.io/hostname hard 1 app=web")
    expected = ("Kubernetes has no label topology.kubernetes.io/hostname", "use kubernetes.io/hostname")
    assert ("topology-key-typo", "warn", *expected) in findings(manifest)


def test_with_nodes_it_says_that_none_has_the_key():
    manifest = workload("Deployment", "app=web", "topology.kubernetes.io/hostname hard 1 app=web")
    assert said("topology-key-typo", manifest, index=index(node("n1", "a"))) == [
        "no node has topology.kubernetes.io/hostname"
    ]


def test_a_key_that_a_node_has_is_right_however_odd():
    manifest = workload("Deployment", "app=web", "topology.kubernetes.io/zones hard 1 app=web")
    odd = node("n1", None, **{"topology.kubernetes.io/zones": "a"})
    assert said("topology-key-typo", manifest, index=index(odd)) == []


@pytest.mark.parametrize(
    ("key", "successor"),
    [
        ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
        ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
    ],
)
def test_a_deprecated_key_is_told_with_its_successor(key, successor):
    found = findings(workload("Deployment", "app=web", f"{key} soft 1 app=web"))
    name = key.rpartition("/")[2]
    assert ("topology-key-deprecated", "warn", f"{name}[0]: {key} is deprecated", f"use {successor}") in found


def test_of_built_in_kinds_kube_apiserver_itself_warns_in_admission():
    key = "beta.kubernetes.io/arch"
    told = {
        kind: [each.finding.rule for each in decide(workload(kind, "app=web", f"{key} hard 1 app=web")).findings]
        for kind in ("Deployment", "Rollout")
    }
    assert "topology-key-deprecated" not in told["Deployment"]
    assert "topology-key-deprecated" in told["Rollout"]


@pytest.mark.parametrize(
    ("constraints", "zoned", "fixes"),
    [
        pytest.param(
            ["kubernetes.io/zone soft 1 app=web"], None, ["topologyKey: topology.kubernetes.io/zone"], id="it"
        ),
        pytest.param(
            ["zone soft 1 app=web", "kubernetes.io/zone soft 1 app=web"], None, ["remove the constraint"], id="twice"
        ),
        pytest.param(
            ["zone hard 1 app=web", "failure-domain.beta.kubernetes.io/zone soft 1 app=web"],
            None,
            ["topologyKey: topology.kubernetes.io/zone"],
            id="once with each action",
        ),
        pytest.param(
            ["kubernetes.io/zone soft 1 app=web"],
            False,
            ["use topology.kubernetes.io/zone, and label the nodes with it"],
            id="no node has the right one either",
        ),
    ],
)
def test_the_right_key_stands_once(constraints, zoned, fixes):
    nodes = None if zoned is None else index(node("n1", labels={"kubernetes.io/hostname": "n1"}))
    found = examined(workload("Deployment", "app=web", *constraints), index=nodes).findings
    told = [each.finding for each in found if each.finding.rule in {"topology-key-typo", "topology-key-deprecated"}]
    assert [each.fix for each in told] == fixes
    assert all(bool(each.edits) is (zoned is None) for each in told)
