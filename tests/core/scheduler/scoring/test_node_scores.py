"""The weighted scores of each plugin, on the smallest cluster that shows them; the recorded vectors have the rest."""

import pytest
from build import NAMESPACE, cluster, constraint, meta, namespace, node, pod, selector
from msgspec.structs import replace

from webhook.core.api.types import (
    Affinity,
    Container,
    NodeAffinity,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    NodeStatus,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PreferredSchedulingTerm,
    ResourceRequirements,
    Taint,
    Toleration,
    WeightedPodAffinityTerm,
)
from webhook.core.api.version import KubernetesVersion
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.overlay import with_pods
from webhook.core.scheduler.cycle import Cycle
from webhook.core.scheduler.problem import take
from webhook.core.scheduler.profile import SchedulerProfile
from webhook.core.scheduler.scoring.node_scores import best_nodes, node_scores, take_scoring

TAINT, AFFINITY, FIT = "TaintToleration", "NodeAffinity", "NodeResourcesFit"
SPREAD, NEIGHBOURS, BALANCE = "PodTopologySpread", "InterPodAffinity", "NodeResourcesBalancedAllocation"


def known(*nodes, version=None):
    """An index of nodes of 4 CPU and 8 GiB, that keeps what scores depend on."""
    index = ClusterIndex(*([version] if version else []), scoring=True)
    status = NodeStatus(allocatable={"cpu": "4", "memory": "8Gi", "pods": "10"})
    for each in nodes:
        index.apply("ADDED", each if each.status else replace(each, status=status))
    return index


def asking(**requests):
    return (Container(name="c", resources=ResourceRequirements(requests=requests or None)),)


def on(name, where, labelled="app=web", *, containers=None, affinity=None, space=NAMESPACE):
    spec = PodSpec(node_name=where, containers=containers or asking(cpu="1", memory="1Gi"), affinity=affinity)
    return Pod(metadata=meta(name, labelled=labelled, namespace=space), spec=spec)


def term(select, key=ZONE, **more):
    return PodAffinityTerm(label_selector=selector(select), topology_key=key, **more)


def liking(*terms, near=True, required=()):
    weighted = tuple(WeightedPodAffinityTerm(weight=weight, pod_affinity_term=each) for weight, each in terms)
    of = PodAffinity(preferred=weighted or None, required=tuple(required) or None)
    return Affinity(pod_affinity=of) if near else Affinity(pod_anti_affinity=of)


def preferring(*terms):
    return NodeAffinity(
        preferred=tuple(
            PreferredSchedulingTerm(
                weight=weight,
                preference=NodeSelectorTerm(
                    match_expressions=(NodeSelectorRequirement(key=key, operator=operator, values=(value,)),)
                ),
            )
            for weight, key, operator, value in terms
        )
    )


def judged(index, incoming, profile=None):
    problem = take(index, incoming, profile=profile)
    cycle, scoring = Cycle(problem), take_scoring(index, problem)
    return cycle, scoring, cycle.verdict().feasible


def scored(index, incoming, plugin, profile=None):
    cycle, scoring, feasible = judged(index, incoming, profile)
    found, names = node_scores(scoring, cycle, feasible), cycle.problem.nodes.names
    return {names[slot]: score for slot, score in found[plugin].items()}


def best(index, incoming, profile=None):
    cycle, scoring, feasible = judged(index, incoming, profile)
    return " ".join(sorted(cycle.problem.nodes.names_of(best_nodes(scoring, cycle, feasible))))


def test_the_emptier_node_is_better():
    index = known(node("a"), node("b"))
    index.apply("ADDED", on("p", "a"))
    assert scored(index, pod(containers=asking(cpu="1", memory="1Gi")), FIT) == {"a": 62, "b": 81}


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        pytest.param(asking(), {"a": 95, "b": 97}, id="a pod that requests nothing counts as 100m and 200Mi"),
        pytest.param(asking(memory="8Gi"), {"a": 47, "b": 97}, id="and so for each resource: memory is said"),
        pytest.param((*asking(), *asking()), {"a": 92, "b": 97}, id="and for each container"),
    ],
)
def test_what_pods_without_requests_count_as(containers, expected):
    index = known(node("a"), node("b"))
    index.apply("ADDED", on("p", "a", containers=containers))
    assert scored(index, pod(containers=asking()), FIT) == expected


def test_more_than_there_is_scores_nothing():
    index = known(node("a"), node("b"))
    for number in range(4):
        index.apply("ADDED", on(f"p{number}", "a", containers=asking(cpu="1", memory="1Mi")))
    assert scored(index, pod(containers=asking()), FIT)["a"] == 97 // 2


def test_a_node_that_says_nothing_of_a_resource_is_scored_by_the_other():
    only_cpu = replace(node("a"), status=NodeStatus(allocatable={"cpu": "4", "pods": "10"}))
    none = replace(node("b"), status=NodeStatus(allocatable={"pods": "10"}))
    index = known(only_cpu, none)
    assert scored(index, pod(containers=asking()), FIT) == {"a": 97, "b": 0}
    assert scored(index, pod(containers=asking()), BALANCE) == {}
    index = known(only_cpu)
    assert scored(index, pod(containers=asking(cpu="1")), BALANCE) == {"a": 75}


@pytest.mark.parametrize(
    ("version", "requests", "expected"),
    [
        pytest.param("1.37", {"cpu": "1", "memory": "2Gi"}, {"a": 75, "b": 75}, id="as balanced as before"),
        pytest.param("1.37", {"cpu": "1"}, {"a": 81, "b": 68}, id="a balances, b is tilted"),
        pytest.param("1.35", {"cpu": "2"}, {"a": 87, "b": 75}, id="before 1.36: the balance with the pod"),
        pytest.param("1.37", {}, {}, id="nothing to balance"),
        pytest.param("1.32", {}, {"a": 87, "b": 100}, id="before 1.33 nodes were scored all the same"),
    ],
)
def test_balance(version, requests, expected):
    index = known(node("a"), node("b"), version=KubernetesVersion(*map(int, version.split("."))))
    index.apply("ADDED", on("p", "a", containers=asking(cpu="1m", memory="2Gi")))
    found = scored(index, pod(containers=asking(**requests)), BALANCE)
    assert found == expected


def test_soft_taints():
    soft = (Taint(key="spot", effect="PreferNoSchedule"), Taint(key="old", effect="PreferNoSchedule"))
    nodes = [replace(node(name), spec=NodeSpec(taints=taints)) for name, taints in (("a", soft), ("b", soft[:1]))]
    index = known(*nodes, node("c"))
    assert scored(index, pod(), TAINT) == {"a": 0, "b": 150, "c": 300}
    tolerating = pod(tolerations=(Toleration(key="spot", operator="Exists"),))
    assert scored(index, tolerating, TAINT) == {"a": 0, "b": 300, "c": 300}
    status = NodeStatus(allocatable={"cpu": "4", "memory": "8Gi", "pods": "10"})
    index.apply("MODIFIED", replace(nodes[0], spec=NodeSpec(), status=status))
    assert scored(index, tolerating, TAINT) == {"a": 300, "b": 300, "c": 300}
    index.apply("DELETED", node("b"))
    assert scored(index, pod(), TAINT) == {"a": 300, "c": 300}


def test_preferred_node_affinity():
    index = known(node("a", "z1"), node("b", "z2"), node("c", "z3"))
    wanting = pod(affinity=Affinity(node_affinity=preferring((10, ZONE, "In", "z1"), (5, ZONE, "NotIn", "z3"))))
    assert scored(index, wanting, AFFINITY) == {"a": 200, "b": 66, "c": 0}
    added = SchedulerProfile(added_affinity=preferring((10, ZONE, "In", "z3")))
    assert scored(index, pod(), AFFINITY, added) == {"a": 0, "b": 0, "c": 200}
    assert scored(index, pod(), AFFINITY) == {"a": 0, "b": 0, "c": 0}
    elsewhere = replace(wanting, spec=replace(wanting.spec, node_selector={ZONE: "z2"}))
    assert scored(index, elsewhere, AFFINITY) == {"b": 200}


def test_an_invalid_preference_fails_the_pod():
    index = known(node("a", cores="4"))
    wanting = pod(affinity=Affinity(node_affinity=preferring((10, "cores", "Gt", "1.5"))))
    cycle, scoring, feasible = judged(index, wanting)
    assert feasible
    assert node_scores(scoring, cycle, feasible) is None
    assert best(index, wanting) == ""
    empty = NodeAffinity(preferred=(PreferredSchedulingTerm(weight=5),))
    assert best(index, pod(affinity=Affinity(node_affinity=empty))) == "a"


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        pytest.param(liking((10, term("app=web"))), None, {"a": 200, "b": 200, "c": 0}, id="near pods"),
        pytest.param(liking((10, term("app=web")), near=False), None, {"a": 0, "b": 0, "c": 200}, id="far from them"),
        pytest.param(liking((10, term("app=web", HOSTNAME))), None, {"a": 200, "b": 0, "c": 0}, id="on their node"),
        pytest.param(liking((10, term("app=db"))), None, {"a": 0, "b": 0, "c": 0}, id="there are none"),
        pytest.param(None, liking((10, term("app=web"))), {"a": 200, "b": 200, "c": 0}, id="they want this one near"),
        pytest.param(None, liking((10, term("app=web")), near=False), {"a": 0, "b": 0, "c": 200}, id="or far"),
        pytest.param(None, liking(required=[term("app=web")]), {"a": 200, "b": 200, "c": 0}, id="required weighs 1"),
        pytest.param(None, liking((10, term("app=db"))), {"a": 0, "b": 0, "c": 0}, id="they want others"),
        pytest.param(
            None, liking((10, term("app Near"))), {"a": 0, "b": 0, "c": 0}, id="nobody has the label that they want"
        ),
        pytest.param(
            None,
            liking((10, term("app=web", namespace_selector=selector("team=x")))),
            {"a": 0, "b": 0, "c": 0},
            id="of other namespaces",
        ),
    ],
)
def test_preferences_between_pods(mine, theirs, expected):
    index = known(node("a", "z1"), node("b", "z1"), node("c", "z2"))
    index.apply("ADDED", namespace(labelled="team=shop"))
    running = on("p", "a", affinity=theirs)
    index.apply("ADDED", running)
    assert scored(index, pod(affinity=mine), NEIGHBOURS) == expected
    index.apply("DELETED", running)
    assert set(scored(index, pod(), NEIGHBOURS).values()) == {0}


def test_terms_that_cannot_be_read_want_nobody():
    broken = PodAffinityTerm(label_selector=replace(selector("app"), match_labels={"a b": "c"}), topology_key=ZONE)
    index = known(node("a", "z1"), node("b", "z2"))
    index.apply("ADDED", on("p", "a", affinity=liking((10, term("app=web")), (5, broken))))
    assert set(scored(index, pod(), NEIGHBOURS).values()) == {0}
    cycle, scoring, _ = judged(index, pod(affinity=liking((5, broken))))
    assert scoring.term_weights == ()
    assert not cycle.verdict().feasible


def test_an_entry_without_a_term_and_nodes_without_the_key_count_nothing():
    index = known(node("a", "z1"), node("b"))
    index.apply(
        "ADDED", on("p", "a", affinity=Affinity(pod_affinity=PodAffinity(preferred=(WeightedPodAffinityTerm(),))))
    )
    index.apply("ADDED", on("q", "a"))
    index.apply("ADDED", on("gone", "nowhere"))
    assert scored(index, pod(affinity=liking((10, term("app=web")))), NEIGHBOURS) == {"a": 200, "b": 0}


def test_pods_of_nodes_that_are_gone_draw_nobody():
    index = known(node("a", "z1"))
    index.apply("ADDED", on("gone", "nowhere", affinity=liking((10, term("app=web")))))
    assert judged(index, pod())[1].term_weights == ()


def test_the_best_nodes_are_those_with_the_highest_sum():
    index = known(node("a", "z1"), node("b", "z1"), node("c", "z2"))
    soft = (constraint(when="ScheduleAnyway", select="app=web"),)
    assert best(index, pod(constraints=soft)) == "a b c"
    index.apply("ADDED", on("p", "a"))
    assert best(index, pod(constraints=soft)) == "c"
    assert scored(index, pod(constraints=soft), SPREAD) == {"a": 0, "b": 0, "c": 200}


def test_an_index_that_keeps_nothing_for_scores_answers_nothing():
    index = cluster("z1: a=0")
    problem = take(index, pod())
    assert take_scoring(index, problem) is None
    assert with_pods(index, "a", [on("p", "a")]).pods.score_facts(NAMESPACE, {}) is None


def test_pods_that_are_laid_over_an_index_count_as_if_they_ran():
    index, ran = known(node("a", "z1"), node("b", "z2")), known(node("a", "z1"), node("b", "z2"))
    running = on("p", "a", containers=asking())
    added = on("q", "a", containers=asking(), affinity=liking((10, term("app=web"))))
    for each in (index, ran):
        each.apply("ADDED", running)
    ran.apply("ADDED", added)
    over = with_pods(index, "a", [replace(added, spec=replace(added.spec, node_name=None))])
    for each in (FIT, NEIGHBOURS, BALANCE):
        assert scored(over, pod(), each) == scored(ran, pod(), each)
    alone = with_pods(known(node("a", "z1"), node("b", "z2")), "a", [added])
    assert alone.pods.score_facts(NAMESPACE, {"app": "web"}).assumed == {0: (100, 200 * 2**20)}


def test_a_pod_that_is_replaced_or_finished_counts_as_it_is_now():
    index = known(node("a"), node("b"))
    index.apply("ADDED", on("p", "a", containers=asking()))
    index.apply("MODIFIED", on("p", "a"))
    assert index.pods.score_facts(NAMESPACE, {}).assumed == {}
    index.apply("MODIFIED", on("p", "a", containers=asking()))
    index.apply("DELETED", replace(on("p", "a"), metadata=meta("other")))
    assert index.pods.score_facts(NAMESPACE, {}).assumed == {0: (100, 200 * 2**20)}


def test_of_requests_of_the_pod_as_a_whole_only_what_nobody_says_is_assumed():
    index = known(node("a"))
    whole = on("p", "a", containers=asking(memory="1Gi"))
    whole = replace(whole, spec=replace(whole.spec, resources=ResourceRequirements(requests={"memory": "2Gi"})))
    index.apply("ADDED", whole)
    assert index.pods.score_facts(NAMESPACE, {}).assumed == {0: (100, 0)}
