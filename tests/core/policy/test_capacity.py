import pytest
from build import index, node

from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.policy.capacity import can_add_nodes, domain_count, has_karpenter
from webhook.core.policy.policy import Policy

PLAIN = node("n1", "a")


def pooled(label):
    return node("n2", "b", **{label: "default"})


def nodes(*values):
    return index(*values).nodes.view()


@pytest.mark.parametrize(
    "label",
    [
        "karpenter.sh/nodepool",
        "karpenter.sh/provisioner-name",
        "eks.amazonaws.com/nodegroup",
        "eks.amazonaws.com/compute-type",
        "alpha.eksctl.io/nodegroup-name",
        "cloud.google.com/gke-nodepool",
        "kubernetes.azure.com/agentpool",
        "agentpool",
    ],
)
def test_one_node_of_a_pool_says_that_nodes_can_be_added(label):
    assert can_add_nodes(Policy(), nodes(PLAIN, pooled(label)))
    assert has_karpenter(nodes(PLAIN, pooled(label))) == label.startswith("karpenter.sh/")


@pytest.mark.parametrize(
    ("capacity", "found", "expected"),
    [
        pytest.param("auto", [], False, id="no node at all"),
        pytest.param("auto", [PLAIN], False, id="nodes that nobody makes"),
        pytest.param("auto", [node("n1", pool="x", nodepool="x")], False, id="a team's own label"),
        pytest.param("fixed", [pooled("agentpool")], False, id="the configuration says that pools stay as they are"),
        pytest.param("growing", [PLAIN], True, id="the configuration says that nodes are added"),
    ],
)
def test_the_configuration_decides_before_the_labels_do(capacity, found, expected):
    assert can_add_nodes(Policy(capacity=capacity), nodes(*found)) is expected


def test_capacity_follows_the_nodes():
    cluster = index(PLAIN, pooled("agentpool"))
    cluster.apply("MODIFIED", node("n2", "b"))
    assert not can_add_nodes(Policy(), cluster.nodes.view())
    cluster.apply("MODIFIED", pooled("agentpool"))
    assert can_add_nodes(Policy(), cluster.nodes.view())
    cluster.apply("DELETED", pooled("agentpool"))
    assert not can_add_nodes(Policy(), cluster.nodes.view())


def test_domains_are_those_of_nodes_and_those_configured():
    policy = Policy(domains={ZONE: ("b", "c")})
    two = nodes(PLAIN, node("n2", "b"))
    assert domain_count(policy, two, ZONE, two.live) == 3
    assert domain_count(policy, two, ZONE, 0) == 2
    assert domain_count(policy, two, HOSTNAME, two.live) == 2
    assert domain_count(policy, nodes(), ZONE, 0) == 2
    assert domain_count(policy, two, "rack", two.live) == 0
