"""Rules that need the cluster say that they could not look, of the objects that they are about."""

import pytest
from build import cluster
from manifest import examined, workload

from webhook.core.rules.rule_set import RULES

DECLARED = {
    "selector-too-wide",
    "topology-key-unknown",
    "topology-key-partial",
    "autoscaler-reads-it-differently",
}
REPLICATED = {"all-in-one-domain", "group-cap"}
SCALED = {"minimum-below-domains", "scale-in-skew"}
GROUPED = {"constraints-differ-in-group"}
HARD = {"replicas-do-not-fit"}
PLACED = {"tainted-nodes-counted", "zone-loss-strands-pods", "replicas-can-get-stuck", "rollout-can-get-stuck"}


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        pytest.param(workload("Pod", "app=web"), set(), id="a pod that declares nothing"),
        pytest.param(workload("Deployment", "app=web"), REPLICATED, id="replicas that declare nothing"),
        pytest.param(workload("Pod", "app=web", "zone soft 1 app=web"), DECLARED, id="a soft constraint on a pod"),
        pytest.param(workload("Pod", "app=web", "zone hard 1 app=web"), DECLARED | HARD, id="a hard one on a pod"),
        pytest.param(
            workload("Deployment", "app=web", "zone hard 1 app=web"),
            DECLARED | GROUPED | HARD | REPLICATED | PLACED | SCALED,
            id="a hard one on replicas",
        ),
        pytest.param(
            workload("Deployment", "app=web", "zone hard 1 app=web minDomains:3", "hostname hard 1 app=web"),
            (DECLARED | GROUPED | HARD | REPLICATED | PLACED | SCALED)
            | {"min-domains-unreachable", "zone-host-ceiling", "revision-mixed"},
            id="zone and host",
        ),
        pytest.param(
            workload("Pod", "app=web", "zone hard 1 app=web", nodeSelector={"disk": "ssd"}),
            DECLARED | HARD,
            id="a pinned pod",
        ),
        pytest.param(
            workload(
                "Deployment", "app=web", "zone hard 1 app=web nodeTaintsPolicy:Honor", nodeSelector={"disk": "ssd"}
            ),
            (DECLARED | GROUPED | HARD | REPLICATED | PLACED | SCALED | {"spread-conflicts-affinity"})
            - {"tainted-nodes-counted", "zone-loss-strands-pods"},
            id="pinned replicas",
        ),
    ],
)
def test_rules_that_could_not_look(manifest, expected):
    missing = examined(manifest).not_evaluated
    assert {each.rule for each in missing} == expected
    assert len(missing) == len(expected)


def test_they_say_what_is_missing():
    manifest = workload("Deployment", "app=web", "zone hard 1 app=web")
    missing = {each.rule: each.missing for each in examined(manifest).not_evaluated}
    assert set(missing.values()) == {"no cluster"}
    assert examined(manifest, index=cluster("a: n1")).not_evaluated == ()


def test_rules_are_named_once():
    assert len({rule.id for rule in RULES}) == len(RULES)


GANG = {"schedulingGroup": {"podGroupName": "train"}}
POD_GROUP = "pods of a PodGroup (schedulingGroup), which are scheduled all together or not at all"


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        pytest.param(workload("Deployment", "app=web", "zone hard 1 app=web", **GANG), HARD | PLACED, id="replicas"),
        pytest.param(workload("Pod", "app=web", "zone hard 1 app=web", **GANG), HARD, id="a pod"),
        pytest.param(
            workload("Job", "app=web", "zone hard 1 app=web", selector=None, spec={"scheduling": {}}),
            HARD | {"replicas-can-get-stuck"},
            id="a Job that makes a PodGroup",
        ),
        pytest.param(workload("Deployment", "app=web", "zone hard 1 app=web"), set(), id="no PodGroup"),
        pytest.param(workload("Deployment", "app=web", "zone soft 1 app=web", **GANG), set(), id="a soft constraint"),
    ],
)
def test_places_of_a_pod_group_are_not_evaluated(manifest, expected):
    missing = examined(manifest, index=cluster("a: n1 | b: n2")).not_evaluated
    assert {each.rule for each in missing if each.missing == POD_GROUP} == expected
