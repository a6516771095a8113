"""Whether all pods of a workload find a place in every order."""

import pytest
from build import cluster, running
from manifest import labels, pods_term, template
from msgspec import convert
from msgspec.structs import replace

from webhook.core.api.selectors import selector_from_labels
from webhook.core.api.types import ObjectMeta, Pod
from webhook.core.api.version import RECORDED
from webhook.core.apiserver.admission_plugins import as_created
from webhook.core.placement.proofs.every_order import fits, start_states
from webhook.core.placement.proofs.pinned_claims import PodsToPlace
from webhook.core.placement.proofs.workload_problem import candidate_nodes, take_workload_problem

ZONE, HOST = "zone hard 1 app=web", "hostname hard 1 app=web"
SMALL = {"cpu": "2", "pods": "110"}
ONE_CPU = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}


@pytest.fixture(autouse=True, params=[50, 0], ids=["a few nodes one by one", "equal nodes at once"])
def a_few(request, monkeypatch):
    """Both ways to count the room of nodes have to agree."""
    monkeypatch.setattr("webhook.core.placement.proofs.every_order._A_FEW", request.param)


def places(nodes, *constraints, own="app=web", resources=None, **spec):
    """Where pods of ``app=web`` may go, of which those with the labels ``own`` are the workload's."""
    pod = convert(template("app=web", *constraints, **spec), Pod)
    pod = replace(pod, metadata=ObjectMeta(name="web", namespace="shop", labels=labels("app=web")))
    index = cluster(nodes, resources=resources)
    return take_workload_problem(
        index, as_created(pod, RECORDED), selector_from_labels(labels(own)), 99, now="", late={}
    )


def most(found, **lost):
    """The most pods, up to 20, that all fit if they are made anew."""
    *_, start = start_states(found, candidate_nodes(found))
    fitting = [number for number in range(1, 21) if fits(start, found.hard, PodsToPlace({}, number), **lost)]
    assert fitting == list(range(1, len(fitting) + 1))
    return len(fitting)


@pytest.mark.parametrize(
    ("nodes", "constraints", "fields", "expected"),
    [
        pytest.param("a: n1 | b: n2", [], {}, 20, id="no constraint"),
        pytest.param("a: n1 | b: n2", [], {"resources": SMALL, **ONE_CPU}, 4, id="processors"),
        pytest.param("a: n1 | b: n2", [], {"resources": {"cpu": "9", "pods": "3"}}, 6, id="pods on a node"),
        pytest.param("a: n1=1 | b: n2=2", [], {"resources": {"cpu": "9", "pods": "3"}}, 6, id="its own pods go"),
        pytest.param(
            "a: n1=1 | b: n2=2", [], {"resources": {"cpu": "9", "pods": "3"}, "own": "team=new"}, 3, id="others stay"
        ),
        pytest.param("a: n1 n2 | b: n3", [ZONE], {"resources": SMALL, **ONE_CPU}, 5, id="a zone with less room"),
        pytest.param("a: n1 | b: n2 | c: ~n3", [ZONE], {}, 2, id="a zone that is closed"),
        pytest.param("a: n1 | b: n2 | c: ~n3", [f"{ZONE} minDomains:4"], {}, 2, id="too few zones"),
        pytest.param(
            "a: n1 | b: n2 | c: ~n3=1", [ZONE], {"own": "team=new"}, 4, id="a closed zone with pods of others"
        ),
        pytest.param("a: n1 n2 n3 | b: n4 n5", [HOST], {"resources": SMALL, **ONE_CPU}, 10, id="hosts"),
        pytest.param("a: n1 n2 n3 | b: ~n5", [HOST], {}, 3, id="a closed host"),
        pytest.param("a: n1 n2 n3 n4 | b: n5 n6 n7 n8", [ZONE, HOST], {}, 7, id="fewer pods than hosts"),
        pytest.param("a: n1 | b: n2 n3 n4 n5", [ZONE, HOST], {}, 3, id="hosts of unequal zones"),
        pytest.param("a: n1 n2 n3 | b: n4 n5 n6 | c: ~n7", [ZONE, HOST], {}, 2, id="two that cannot move"),
        pytest.param("a: n1 n2 | b: n3 n4", [ZONE, "hostname hard 9 app=web"], {}, 9, id="one that never binds"),
        pytest.param("a: n1 n2 | b: n3 n4", [], pods_term("podAntiAffinity", "hostname"), 4, id="one a host"),
        pytest.param("a: n1=1 n2 | b: n3 n4", [], pods_term("podAntiAffinity", "hostname"), 4, id="its own one goes"),
        pytest.param("a: n1 | b: n2", [], pods_term("podAntiAffinity", "zone"), 2, id="one node a zone"),
        pytest.param("a: n1 n2 | b: n3", [], pods_term("podAntiAffinity", "zone"), 0, id="one a zone of several nodes"),
        pytest.param(
            "a: n1 n2 | b: n3",
            [],
            {"resources": SMALL, **ONE_CPU, **pods_term("podAffinity", "zone")},
            2,
            id="all in one zone, which may be the smallest",
        ),
        pytest.param("a: n1=1 | b: n2", [], pods_term("podAffinity", "zone"), 0, id="near pods of its own"),
        pytest.param(
            " | ".join(f"z{n}: n{n}" for n in range(65)), [], pods_term("podAffinity", "zone"), 0, id="65 homes"
        ),
        pytest.param(
            "a: n1 | b: n2",
            [],
            {"hostNetwork": True, "containers": [{"name": "c", "ports": [{"containerPort": 80}]}]},
            2,
            id="a port of the host",
        ),
        pytest.param("a: n1 | b: n2", ["zone hard 1 app=other"], {}, 0, id="pods that do not count themselves"),
        pytest.param(
            "a: n1 | b: n2", [], {"volumes": [{"persistentVolumeClaim": {"claimName": "x"}}]}, 0, id="a claim"
        ),
        pytest.param("a: n1 | b: n2", [], {"volumes": [{"rbd": {"image": "x"}}]}, 0, id="a disk"),
        pytest.param("a: n1 | b: n2", [], {"volumes": [{"name": "scratch"}]}, 20, id="a volume of no account"),
    ],
)
def test_how_many_fit(nodes, constraints, fields, expected):
    assert most(places(nodes, *constraints, **fields)) == expected


def test_pods_that_want_to_be_near_others_when_nodes_are_lost():
    """The others may be lost too."""
    found = places("a: n1=1 | b: n2=1", own="team=new", **pods_term("podAffinity", "zone"))
    assert most(found) == 20
    assert most(found, lost=1) == 0


def test_terms_that_may_keep_the_pods_apart():
    """Labels that the pods get later may take them out of such a term, or not."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchExpressions": [NOT_NEW]}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert most(places("a: n1 | b: n2", affinity=affinity)) == 0


NOT_NEW = {"key": "team", "operator": "NotIn", "values": ["new"]}


def test_a_node_where_a_pod_of_others_keeps_away_too():
    """Anew, the pod of its own is gone, and the other one is still there."""
    apart = pods_term("podAntiAffinity", "hostname")
    assert most(places("a: n1=1 n2 | b: n3", own="app=web", **apart)) == 3
    pod = convert(template("app=web team=new", **apart), Pod)
    pod = replace(pod, metadata=ObjectMeta(name="web", namespace="shop", labels=labels("app=web team=new")))
    index = cluster("a: n1=1 n2 | b: n3")
    index.apply("ADDED", running("mine", "n1", "app=web team=new"))
    found = take_workload_problem(
        index, as_created(pod, RECORDED), selector_from_labels(labels("team=new")), 99, now="", late={}
    )
    assert most(found) == 2


def held(text, found):
    """``a:2 n3:1 -:1``: pods whose volumes are in that zone or on that node, and pods without."""
    view, pinned, free = found.problem.nodes, {}, 0
    for part in text.split():
        where, _, pods = part.partition(":")
        if where == "-":
            free = int(pods)
        else:
            key = "kubernetes.io/hostname" if where.startswith("n") else "topology.kubernetes.io/zone"
            pinned[view.column(key).with_value(where)] = int(pods)
    return PodsToPlace(pinned, free)


@pytest.mark.parametrize(
    ("nodes", "constraints", "pods", "fields", "expected"),
    [
        pytest.param("a: n1 | b: n2", [], "a:9 b:1 -:9", {}, True, id="room for all"),
        pytest.param("a: n1 | b: n2", [], "a:2 b:1", {"resources": SMALL, **ONE_CPU}, True, id="room for each"),
        pytest.param(
            "a: n1 | b: n2", [], "a:2 -:1", {"resources": SMALL, **ONE_CPU}, False, id="a free pod may take the room"
        ),
        pytest.param("a: n1 | b: n2", [], "a:3", {"resources": SMALL, **ONE_CPU}, False, id="no room for one"),
        pytest.param("a: ~n1 | b: n2", [], "a:1", {}, False, id="volumes on nodes that are closed"),
        pytest.param("a: n1 | b: n2", [ZONE], "a:1 b:1", {}, True, id="one for each zone"),
        pytest.param("a: n1 | b: n2", [ZONE], "a:2", {}, False, id="two for one zone, none for the other"),
        pytest.param("a: n1 | b: n2", [ZONE], "a:2 b:1", {}, True, id="as many as maxSkew more"),
        pytest.param("a: n1 | b: n2", [ZONE], "a:2 b:1 -:1", {}, False, id="a free pod may go where others have to"),
        pytest.param("a: n1 | b: n2", ["zone hard 2 app=web"], "a:2 b:1 -:1", {}, True, id="which maxSkew 2 allows"),
        pytest.param("a: n1 | b: n2 | c: ~n3", [ZONE], "a:1 b:1", {}, True, id="one beside a closed zone"),
        pytest.param("a: n1 | b: n2 | c: ~n3", [ZONE], "a:2 b:1", {}, False, id="two beside a closed zone"),
        pytest.param("a: n1 | b: n2 | c: ~n3", [ZONE], "-:3", {}, False, id="free pods beside a closed zone"),
        pytest.param("a: n1 | b: n2", [f"{ZONE} minDomains:3"], "a:1 b:1", {}, True, id="maxSkew as a cap"),
        pytest.param("a: n1 | b: n2", [f"{ZONE} minDomains:3"], "a:1 -:2", {}, False, id="and too many for it"),
        pytest.param("a: n1 n2 | b: n3", [ZONE], "n1:1 n3:1", {}, True, id="volumes of single nodes"),
        pytest.param("a: n1 n2 | b: n3", [ZONE], "n1:3 n3:3", {"resources": SMALL, **ONE_CPU}, False, id="full nodes"),
        pytest.param("a: n1 n2 n3 n4", [ZONE], "n1:3 -:4", {}, True, id="a single zone is never ahead"),
        pytest.param("a: n1 | b: n2", [], "a:1", pods_term("podAffinity", "zone"), False, id="pods that stay together"),
    ],
)
def test_pods_that_volumes_hold(nodes, constraints, pods, fields, expected):
    found = places(nodes, *constraints, **fields)
    (start,) = start_states(found, candidate_nodes(found))
    assert fits(start, found.hard, held(pods, found)) is expected


FULL = " ".join(f"full{n}=2" for n in range(60))  # of nodes that take two pods


@pytest.mark.parametrize(
    ("nodes", "own", "joining", "anew"),
    [
        pytest.param(f"a: {FULL} | b: n1 n2=1", "team=new", 3, 3, id="room behind many full nodes"),
        pytest.param(f"a: {FULL} | b: n1=2", "team=new", 0, 0, id="no room at all"),
        pytest.param(f"a: {FULL} | b: n1 n2=1", "app=web", 3, 20, id="its own pods fill them, and go"),
    ],
)
def test_full_nodes(nodes, own, joining, anew):
    found = places(nodes, own=own, resources={"cpu": "9", "pods": "2"})
    now = next(start_states(found, candidate_nodes(found)))
    assert [number for number in range(1, 21) if fits(now, (), PodsToPlace({}, number))] == [*range(1, joining + 1)]
    assert most(found) == anew


def test_full_nodes_that_its_own_pods_leave():
    found = places(f"a: {FULL} | b: n1 n2=1", resources={"cpu": "9", "pods": "2"})
    *_, anew = start_states(found, candidate_nodes(found))
    assert [fits(anew, (), PodsToPlace({}, pods)) for pods in (124, 125)] == [True, False]


def test_room_for_volumes():
    found = places("a: n1 | b: n2")
    (start,) = start_states(found, candidate_nodes(found))
    for limit, expected in ((2, True), (1, False)):
        assert fits(start, (), PodsToPlace({}, 4), limits={0: 2, 1: limit}) is expected


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        pytest.param(ZONE, 2, id="Ignore: the lost zone holds the others at maxSkew"),
        pytest.param(f"{ZONE} nodeTaintsPolicy:Honor", 20, id="Honor: it does not count"),
    ],
)
def test_lost_nodes(constraint, expected):
    found = places("a: n1=1 | b: n2=1 | c: n3=1", constraint)
    view = found.problem.nodes
    assert most(found, lost=1 << view.slots["n3"]) == expected
