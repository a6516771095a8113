"""Which nodes exist: those with the topology key, and the domains that they make."""

import pytest
from build import cluster, index, node
from manifest import DENY, FIXED, GROWING, PLAIN, decide, examined, findings_of, said, told, web, workload
from msgspec.structs import replace

from webhook.core.api.types import NodeSpec, Taint
from webhook.core.index.key_suggestions import closest_node_key
from webhook.core.policy.policy import Mode
from webhook.core.review.messages import WARNING_CHARS

UNKNOWN, PARTIAL = "topology-key-unknown", "topology-key-partial"
ZONE = "topology.kubernetes.io/zone"
EVERYWHERE = [{"operator": "Exists"}]
IN_A = {ZONE: "a"}


def tainted(name, key, zone=None, *, cordoned=False):
    return replace(
        node(name, zone), spec=NodeSpec(taints=(Taint(key=key, effect="NoSchedule"),), unschedulable=cordoned)
    )


@pytest.mark.parametrize(
    ("nodes", "constraints", "expected"),
    [
        pytest.param("a: n1 | b: n2", ["zone hard 1 app=web"], [], id="all nodes have it"),
        pytest.param("n1 | b: n2", ["zone hard 1 app=web"], [], id="one node has it"),
        pytest.param(
            "a: n1 | b: n2",
            ["example.com/zone hard 1 app=web"],
            ["warn pods stay Pending: no node has example.com/zone; use topology.kubernetes.io/zone"],
            id="a hard one, and nodes have one of that name",
        ),
        pytest.param(
            "a: n1 | b: n2",
            ["rack hard 1 app=web"],
            ["warn pods stay Pending: no node has rack; label the nodes"],
            id="a hard one, and nodes have nothing like it",
        ),
        pytest.param(
            "a: n1 | b: n2",
            ["rack soft 1 app=web"],
            ["warn rack[0] has no effect: no node has rack; label the nodes"],
            id="a soft one alone",
        ),
        pytest.param(
            "a: n1 | b: n2",
            ["hostname soft 1 app=web", "rack soft 1 app=web"],
            ["warn no ScheduleAnyway constraint has an effect: no node has rack; label the nodes"],
            id="a soft one takes the others with it",
        ),
        pytest.param(
            "n1 n2",
            ["zone hard 1 app=web"],
            ["warn pods stay Pending: no node has topology.kubernetes.io/zone; label the nodes"],
            id="a hard one over zones where there are none",
        ),
        pytest.param(
            "n1 n2",
            ["zone soft 1 app=web"],
            ["audit zone[0] has no effect: no node has topology.kubernetes.io/zone; label the nodes"],
            id="a soft one over zones, as charts have it for larger clusters",
        ),
        pytest.param(
            "n1 n2",
            ["zone soft 1 app=web", "hostname soft 1 app=web"],
            [
                (
                    "warn no ScheduleAnyway constraint has an effect: no node has topology.kubernetes.io/zone;"
                    " label the nodes"
                )
            ],
            id="it takes the hosts with it",
        ),
        pytest.param(
            "a: n1 | b: n2",
            ["failure-domain.beta.kubernetes.io/zone hard 1 app=web"],
            ["warn pods stay Pending: no node has failure-domain.beta.kubernetes.io/zone; use " + ZONE],
            id="a former name",
        ),
        pytest.param("a: n1 | b: n2", ["topology.kubernetes.io/hostname hard 1 app=web"], [], id="a typo is said so"),
    ],
)
def test_a_key_that_no_node_has(nodes, constraints, expected):
    assert told(UNKNOWN, web(*constraints), cluster(nodes)) == expected


@pytest.mark.parametrize(
    ("key", "policy", "labels", "modes"),
    [
        pytest.param("rack", DENY, "", ["warn"], id="nobody adds nodes"),
        pytest.param("rack", DENY, "agentpool=blue", ["audit"], id="a pool"),
        pytest.param("rack", FIXED, "agentpool=blue", ["warn"], id="a pool that stays as it is"),
        pytest.param("rack", GROWING, "", ["audit"], id="nodes are added"),
        pytest.param(
            "failure-domain.beta.kubernetes.io/zone", GROWING, "", ["warn"], id="no new node has a former name"
        ),
        pytest.param("rack", replace(DENY, domains={"rack": ("r1",)}), "", [], id="the configuration knows it"),
        pytest.param("rack", replace(DENY, rules={UNKNOWN: Mode.DENY}), "", ["deny"], id="the mode is configured"),
    ],
)
def test_where_nodes_can_be_added_one_with_the_key_may_come(key, policy, labels, modes):
    found = told(UNKNOWN, web(f"{key} hard 1 app=web"), cluster("a: n1 | b: n2", labelled=labels), policy)
    assert [line.split()[0] for line in found] == modes


def test_a_former_name_is_called_deprecated_as_long_as_a_node_has_it():
    key = "failure-domain.beta.kubernetes.io/zone"
    manifest = web(f"{key} soft 1 app=web")
    has, lacks = cluster("a: n1", labelled=f"{key}=a"), cluster("a: n1")
    assert [len(told("topology-key-deprecated", manifest, each)) for each in (has, lacks)] == [1, 0]
    assert [len(told(UNKNOWN, manifest, each)) for each in (has, lacks)] == [0, 1]


def test_a_typo_of_a_key_whose_domains_are_configured_is_none():
    manifest = web("topology.kubernetes.io/zones hard 1 app=web")
    policy = replace(DENY, domains={"topology.kubernetes.io/zones": ("a",)})
    assert [len(told("topology-key-typo", manifest, cluster("a: n1"), each)) for each in (DENY, policy)] == [1, 0]


@pytest.mark.parametrize(
    ("key", "keys", "meant"),
    [
        ("rack", "racks", "racks"),
        ("example.com/rack", "example.com/rck", None),
        ("example.com/rack", "example.com/rac", None),
        ("example.com/racks", "example.com/rack", "example.com/rack"),
        ("example.com/rakcs", "example.com/racks", "example.com/racks"),
        ("example.com/pool", "example.com/rack", None),
        ("example.com/rack", "example.org/racks", None),
        ("example.com/rack", "example.org/rack", "example.org/rack"),
        ("example.com/Zone", "example.org/zone", ZONE),
        ("a.example/rack", "c.example/rack b.example/rack", "b.example/rack"),
        ("rackrow", "rackrov rackraw", "rackraw"),
        ("failure-domain.beta.kubernetes.io/zone", "", ZONE),
    ],
)
def test_the_key_of_nodes_that_was_meant(key, keys, meant):
    view = cluster("a: n1", labelled=" ".join(f"{each}=x" for each in keys.split())).nodes.view()
    assert closest_node_key(key, view) == meant


def test_a_former_name_is_answered_by_what_nodes_have():
    key = "failure-domain.beta.kubernetes.io/zone"
    assert closest_node_key(key, cluster("n1").nodes.view()) is None
    assert closest_node_key(key, cluster("n1", labelled="example.com/zone=a").nodes.view()) == "example.com/zone"


@pytest.mark.parametrize(
    ("nodes", "constraint", "more", "expected"),
    [
        pytest.param("a: n1 | b: n2", "zone hard 1 app=web", {}, [], id="all nodes have it"),
        pytest.param(
            "n0 | a: n1 n2 | b: n3",
            "zone hard 1 app=web",
            {},
            ["warn 1 of 4 usable nodes lacks the label, so zone[0] excludes it; add the label"],
            id="one has not",
        ),
        pytest.param(
            "n0 | a: n1 n2 | b: n3",
            "zone soft 1 app=web",
            {},
            ["audit 1 of 4 usable nodes lacks the label, so zone[0] puts it last; add the label"],
            id="a soft one",
        ),
        pytest.param("~n0 | a: n1 | b: n2", "zone hard 1 app=web", {}, [], id="pods do not tolerate it"),
        pytest.param(
            "~n0 | a: n1 | b: n2",
            "zone hard 1 app=web",
            {"tolerations": EVERYWHERE},
            ["warn 1 of 3 usable nodes lacks the label, so zone[0] excludes it; add the label"],
            id="pods tolerate it",
        ),
        pytest.param("n0 | a: n1", "zone hard 1 app=web", {"nodeSelector": IN_A}, [], id="pods choose others"),
        pytest.param(
            "n0 n1 n2 | a: n3",
            "zone hard 1 app=web",
            {},
            ["warn 3 of 4 usable nodes lack the label, so zone[0] excludes them; add the label"],
            id="most lack a key that every node should have",
        ),
    ],
)
def test_a_key_that_some_nodes_lack(nodes, constraint, more, expected):
    assert told(PARTIAL, web(constraint, **more), cluster(nodes)) == expected


@pytest.mark.parametrize(
    ("racked", "plain", "mode"), [(3, 1, "warn"), (2, 2, "warn"), (1, 3, "audit")], ids=["few", "half", "most"]
)
def test_a_key_that_most_nodes_lack_may_choose_a_pool(racked, plain, mode):
    found = index(*(node(f"r{n}", rack="x") for n in range(racked)), *(node(f"p{n}") for n in range(plain)))
    lack = (
        "1 of 4 usable nodes lacks the label, so rack[0] excludes it"
        if plain == 1
        else (f"{plain} of 4 usable nodes lack the label, so rack[0] excludes them")
    )
    said = f"{lack}; add the label"
    assert told(PARTIAL, web("rack hard 1 app=web"), found) == [f"{mode} {said}"]


@pytest.mark.parametrize(
    ("constraint", "policy", "expected"),
    [
        pytest.param(
            "zone hard 1 app=web", DENY, "warn pods stay Pending: no usable node has {}; add the label", id="hard"
        ),
        pytest.param(
            "zone hard 1 app=web", GROWING, "audit pods stay Pending: no usable node has {}; add the label", id="grows"
        ),
        pytest.param(
            "zone soft 1 app=web", DENY, "audit zone[0] has no effect: no usable node has {}; add the label", id="soft"
        ),
    ],
)
def test_a_key_that_only_nodes_of_others_have(constraint, policy, expected):
    found = index(node("n1", "a", pool="x"), node("n2", pool="y"))
    manifest = web(constraint, nodeSelector={"pool": "y"})
    assert told(PARTIAL, manifest, found, policy) == [expected.format(ZONE)]


@pytest.mark.parametrize(("labelled", "mode"), [(18, "warn"), (19, "warn"), (20, "audit")])
def test_one_node_in_twenty_is_missed(labelled, mode):
    found = index(node("n"), *(node(f"n{number}", "a") for number in range(labelled)))
    (line,) = told(PARTIAL, web("zone hard 1 app=web"), found)
    assert line.startswith(f"{mode} 1 of {labelled + 1} usable nodes lacks the label")


def test_a_node_with_the_key_that_is_being_upgraded_comes_back():
    away = tainted("n1", "node.kubernetes.io/unschedulable", "a", cordoned=True)
    anywhere, elsewhere = (web("zone hard 1 app=web", **more) for more in ({"tolerations": EVERYWHERE}, {}))
    assert told(PARTIAL, anywhere, index(away, node("n2"))) == []
    assert len(told(PARTIAL, elsewhere, index(away, node("n2")))) == 1


def test_a_pool_without_nodes_says_nothing():
    found = index(node("n1", "a", pool="x"), node("n2", pool="x"))
    assert told(PARTIAL, web("zone hard 1 app=web", nodeSelector={"pool": "y"}), found) == []


@pytest.mark.parametrize(
    "passing",
    [
        pytest.param(replace(node("n0"), spec=NodeSpec(unschedulable=True)), id="cordoned"),
        pytest.param(
            tainted("n0", "node.kubernetes.io/unschedulable", cordoned=True), id="cordoned, and tainted for it"
        ),
        pytest.param(tainted("n0", "node.kubernetes.io/not-ready"), id="not ready"),
        pytest.param(tainted("n0", "node.cloudprovider.kubernetes.io/uninitialized"), id="starting"),
        pytest.param(tainted("n0", "karpenter.sh/disrupted"), id="being replaced"),
    ],
)
def test_nodes_on_their_way_in_or_out_do_not_count_even_where_everything_is_tolerated(passing):
    manifest = web("zone hard 1 app=web", tolerations=EVERYWHERE)
    assert told(PARTIAL, manifest, index(node("n1", "a"), node("n2", "b"), passing)) == []
    assert len(told(PARTIAL, manifest, index(node("n1", "a"), tainted("n0", "dedicated")))) == 1


def test_each_constraint_and_each_template_is_asked_by_itself():
    found = index(node("n1", "a", rack="r"), node("n2", rack="r"), node("n3", "b"), node("n4", "b", rack="r"))
    assert told(PARTIAL, web("zone hard 1 app=web", "rack hard 1 app=web"), found) == [
        "warn 1 of 4 usable nodes lacks the label, so zone[0] excludes it; add the label",
        "warn 1 of 4 usable nodes lacks the label, so rack[1] excludes it; add the label",
    ]


@pytest.mark.parametrize(("where", "expected"), [({}, [1, 1]), ({"nodeName": "n1"}, [0, 0])], ids=["waits", "runs"])
def test_a_pod_that_has_its_node_waits_for_nothing(where, expected):
    found = cluster("n1 | a: n2")
    for kind in ("Pod", "Deployment"):
        pod = workload(kind, "app=web", "rack hard 1 app=web", "zone hard 1 app=web", **where)
        assert [len(told(UNKNOWN, pod, found)), len(told(PARTIAL, pod, found))] == expected


def test_a_constraint_without_a_key_is_for_kube_apiserver_to_refuse():
    manifest = web("zone hard 1 app=web")
    del manifest["spec"]["template"]["spec"]["topologySpreadConstraints"][0]["topologyKey"]
    found = {each.finding.rule for each in examined(manifest, index=cluster("a: n1")).findings}
    assert "topology-key" in found
    assert not found & {UNKNOWN, PARTIAL}


@pytest.mark.parametrize(
    ("rule", "constraint", "asks"),
    [
        (UNKNOWN, "rack soft 1 app=web", True),
        (PARTIAL, "rack soft 1 app=web", True),
    ],
)
def test_without_nodes_they_say_what_is_missing(rule, constraint, asks):
    hidden = index()
    hidden.mark_missing("nodes", "403 Forbidden")
    clusters = {"no cluster": None, "no nodes known": index(), "nodes: 403 Forbidden": hidden}
    for missing, known in clusters.items():
        expected = [f"not evaluated: {missing}"] if asks else []
        assert said(rule, web(constraint), index=known) == expected
        assert said(rule, workload("Deployment", "app=web"), index=known) == []


@pytest.mark.parametrize(
    "constraint",
    [
        "hardware-inventory.datacentre.example.com/rack-row-position hard 1 app=web",
        f"{'x' * 60}.example.com/{'y' * 60} soft 1 app=web",
    ],
)
def test_warnings_are_one_short_line(constraint):
    policy = replace(PLAIN, rules={PARTIAL: Mode.WARN})
    key = constraint.split()[0]
    labelled = f"{key.replace('datacentre', 'datacenter')}=x" if "/" in key and len(key) < 100 else ""
    manifest = web(constraint, replicas=40)
    found = decide(manifest, policy=policy, index=cluster("a: n1 | b: n2", labelled=labelled)).warnings
    assert found
    assert all(len(line) <= WARNING_CHARS and line.isprintable() for line in found)


def test_a_key_with_an_odd_end_stands_in_quotes():
    manifest = web("zone hard 1 app=web")
    manifest["spec"]["template"]["spec"]["topologySpreadConstraints"][0]["topologyKey"] = "zone "
    found = told(UNKNOWN, manifest, cluster("a: n1"))
    assert [each.partition(";")[0] for each in found] == ['warn pods stay Pending: no node has "zone "']


ODD = "rack.example/zone soft 1 app=web"


@pytest.mark.parametrize(
    ("constraints", "nodes", "fix", "edited"),
    [
        pytest.param(
            [ODD],
            "a b",
            "topologyKey: topology.kubernetes.io/zone",
            True,
            id="all have it",
        ),
        pytest.param(
            [ODD],
            "a -",
            "use topology.kubernetes.io/zone, and label the nodes that lack it",
            False,
            id="one lacks it",
        ),
        pytest.param(
            ["zone soft 1 app=web", ODD],
            "a b",
            "remove the constraint",
            True,
            id="it is there already",
        ),
    ],
)
def test_another_key_instead_of_an_unknown_one(constraints, nodes, fix, edited):
    found = index(*(node(f"n{place}", None if zone == "-" else zone) for place, zone in enumerate(nodes.split())))
    [unknown] = findings_of("topology-key-unknown", workload("Deployment", "app=web", *constraints), index=found)
    assert (unknown.fix, bool(unknown.edits)) == (fix, edited)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param("DaemonSet", [], id="a DaemonSet's pods go to a cordoned node"),
        pytest.param(
            "Deployment",
            ["warn pods stay Pending: no usable node has topology.kubernetes.io/zone; add the label"],
            id="others do not",
        ),
    ],
)
def test_the_only_node_with_the_key_is_cordoned(kind, expected):
    found = index(node("n1"), tainted("n2", "node.kubernetes.io/unschedulable", "a", cordoned=True))
    manifest = workload(kind, "app=web", "zone hard 1 app=web")
    assert told(PARTIAL, manifest, found, FIXED) == expected
