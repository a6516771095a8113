"""Whom a constraint counts besides the workload's own pods."""

import re
from functools import partial

import pytest
from build import declared, index, owner, running
from core.groups.grouped import written
from core.rules.shop import LABELS, deployed, shop
from hypothesis import given
from hypothesis import strategies as st
from manifest import DENY, decide, examined, findings_of, said, workload
from manifest import told as told_by
from msgspec.structs import replace

from webhook.core.api.types import NodeSpec, Taint
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.json_edits import applied
from webhook.core.policy.policy import Messages
from webhook.core.review.examination import examine
from webhook.core.review.messages import WARNING_CHARS, warnings_of

RULE = "selector-too-wide"
HARD = "zone hard 1 part=shop"
OWN = {"web": "app=web", "canary": "app=web track=canary", "cart": "app=cart", "db": "app=db"}


def asked(name, *constraints, kind="Deployment", selector=None, **more):
    meta = {"name": name, **more.pop("meta", {})}
    return workload(kind, LABELS[name], *constraints, selector=selector or OWN[name], meta=meta, **more)


told = partial(told_by, RULE)


@pytest.mark.parametrize(
    ("cluster", "constraint", "owners", "expected"),
    [
        pytest.param(
            "a: n1=cart,pay | b: n2=pay",
            "zone soft 1 part=shop",
            [deployed("pay")],
            ["audit zone[0] also counts 2 pods of pay; narrow it to app=cart"],
            id="two pods of another",
        ),
        pytest.param(
            "a: n1=cart,pay | b: n2=cart",
            "zone soft 1 part=shop",
            [deployed("pay")],
            ["audit zone[0] also counts 1 pod of pay; narrow it to app=cart"],
            id="one pod of another",
        ),
        pytest.param(
            "a: n1=cart,pay,db | b: n2=db",
            "zone soft 1 part=shop",
            [deployed("pay"), deployed("db", kind="StatefulSet")],
            ["audit zone[0] also counts 2 pods of db and 1 of pay; narrow it to app=cart"],
            id="of two others, more pods first",
        ),
        pytest.param(
            "a: n1=cart,pay,db,loose | b: n2=db,loose",
            "zone soft 1 part=shop",
            [deployed("pay"), deployed("db")],
            ["audit zone[0] also counts 2 pods of db, 1 of pay and 2 of others; narrow it to app=cart"],
            id="and some of nobody that is known",
        ),
        pytest.param(
            "a: n1=cart,pay | b: n2=pay",
            "zone soft 1 part=shop",
            [deployed("db"), deployed("pay")],
            ["audit zone[0] also counts 2 pods of pay; narrow it to app=cart"],
            id="one that has no pod is not named",
        ),
        pytest.param(
            "a: n1=cart,loose | b: n2=loose",
            "zone soft 1 part=shop",
            [],
            ["audit zone[0] also counts 2 pods of other workloads; narrow it to app=cart"],
            id="of nobody that is known",
        ),
        pytest.param("a: n1=cart | b: n2=cart", "zone soft 1 part=shop", [], [], id="nobody else is there"),
        pytest.param("a: n1=cart,pay | b: n2=pay", "zone soft 1 app=pay", [deployed("pay")], [], id="not its own pods"),
        pytest.param(
            "a: n1=cart,pay | b: n2=cart", "zone soft 1 app=cart", [deployed("pay")], [], id="it asks for its own label"
        ),
        pytest.param(
            "a: n1=cart,~pay | b: n2=cart", "zone soft 1 part=shop", [deployed("pay")], [], id="on its way out"
        ),
        pytest.param(
            "a: n1=pay | b: n2=pay",
            "zone soft 1 part=shop keys:pod-template-hash",
            [deployed("pay")],
            [],
            id="its own revision alone",
        ),
        pytest.param(
            "a: n1=pay | b: n2=pay",
            "zone soft 1 part=shop keys:app",
            [deployed("pay")],
            [],
            id="its own value of a key",
        ),
        pytest.param("a: n1=pay | b: n2=pay", "zone soft 1 null", [deployed("pay")], [], id="a null selector"),
        pytest.param("a: n1=pay | b: n2=pay", "zone soft 1 {}", [deployed("pay")], [], id="an empty selector"),
        pytest.param("a: n1=pay | b: n2=pay", "zone soft 1 part=a_", [deployed("pay")], [], id="a broken selector"),
    ],
)
def test_pods_of_other_workloads(cluster, constraint, owners, expected):
    assert told(asked("cart", constraint), shop(cluster, *owners)) == expected


def test_two_constraints_that_count_the_same_pods():
    found = shop("a: n1=cart,pay,pay | b: n2=cart", deployed("pay"), rack="r")
    assert told(asked("cart", "hostname soft 1 part=shop", HARD), found) == [
        "warn hostname[0] and zone[1] also count 2 pods of pay; narrow them to app=cart"
    ]
    three = ("hostname soft 1 part=shop", "zone soft 1 part=shop", "rack soft 1 part=shop", "zone soft 1 app=cart")
    assert told(asked("cart", *three), found) == [
        "audit hostname[0], zone[1] and rack[2] also count 2 pods of pay; narrow them to app=cart"
    ]


def test_members_of_one_spread_group_are_counted_on_purpose():
    group = written(selector={"matchLabels": {"part": "shop"}}, caps=())
    found = shop("a: n1=cart,pay,pay,loose | b: n2=cart", deployed("pay"), group)
    assert told(asked("cart", HARD), found) == []
    some = written(
        selector={"matchExpressions": [{"key": "app", "operator": "In", "values": ["cart", "pay"]}]}, caps=()
    )
    found = shop("a: n1=cart,pay,pay,db | b: n2=cart", deployed("pay"), deployed("db"), some)
    assert told(asked("cart", "zone soft 1 part=shop"), found) == [
        "audit zone[0] also counts 1 pod of db; narrow it to app=cart"
    ]


def test_pods_of_other_revisions_are_its_own():
    found = shop(
        "a: n1=old,old | b: n2=web", deployed("web"), owner("ReplicaSet/web-1", LABELS["old"], above="Deployment/web")
    )
    assert told(asked("web", "zone hard 1 app=web"), found) == []


def test_finished_pods_do_not_count():
    found = shop("a: n1=cart | b: n2=cart", deployed("pay"))
    done = running("pay-1", "n1", LABELS["pay"])
    found.apply("ADDED", replace(done, status=replace(done.status, phase="Succeeded")))
    assert told(asked("cart", "zone hard 1 part=shop"), found) == []


@pytest.mark.parametrize(
    ("cluster", "constraint", "owners", "expected"),
    [
        pytest.param(
            "a: n1=cart,pay,pay | b: n2=cart",
            HARD,
            [deployed("pay")],
            ["warn zone[0] also counts 2 pods of pay; narrow it to app=cart"],
            id="nothing keeps them even, and they close a zone",
        ),
        pytest.param(
            "a: n1=cart,pay | b: n2=cart,pay",
            HARD,
            [deployed("pay")],
            ["audit zone[0] also counts 2 pods of pay; narrow it to app=cart"],
            id="they are even at present",
        ),
        pytest.param(
            "a: n1=cart,pay,pay | b: n2=cart",
            "zone soft 1 part=shop",
            [deployed("pay")],
            ["audit zone[0] also counts 2 pods of pay; narrow it to app=cart"],
            id="a soft one closes nothing",
        ),
        pytest.param(
            "a: n1=cart,pay,pay | b: n2=cart",
            HARD,
            [deployed("pay", "hostname hard 1 app=pay")],
            ["warn zone[0] also counts 2 pods of pay; narrow it to app=cart"],
            id="their constraint is over another key",
        ),
        pytest.param(
            "a: n1=cart,pay,pay | b: n2=cart",
            HARD,
            [deployed("pay", "zone soft 1 app=pay")],
            ["audit zone[0] also counts 2 pods of pay; narrow it to app=cart unless they are one application"],
            id="they have a constraint over the key",
        ),
        pytest.param(
            "a: n1=cart,pay,pay,loose | b: n2=cart",
            HARD,
            [deployed("pay", HARD)],
            ["audit zone[0] also counts 2 pods of pay and 1 of others; narrow it to app=cart"],
            id="what others have is not known",
        ),
        pytest.param(
            "n1=cart,pay,pay n2=cart",
            HARD,
            [deployed("pay")],
            [],
            id="no node has a zone",
        ),
    ],
)
def test_it_warns_where_others_without_the_constraint_change_the_verdict(cluster, constraint, owners, expected):
    assert told(asked("cart", constraint), shop(cluster, *owners)) == expected


def test_the_second_hard_constraint_is_judged_by_its_own_counts():
    found = shop("a: n1=cart | b: n2=cart,pay,pay", deployed("pay"))
    manifest = asked("cart", "zone soft 1 app=cart", "zone hard 1 app=cart", "hostname hard 1 part=shop")
    assert told(manifest, found) == ["warn hostname[2] also counts 2 pods of pay; narrow it to app=cart"]


def test_beside_a_selector_that_cannot_be_read_no_verdict_is_reached():
    found = shop("a: n1=cart,pay,pay | b: n2=cart", deployed("pay"))
    assert told(asked("cart", HARD, "hostname hard 1 app=a_"), found) == [
        "audit zone[0] also counts 2 pods of pay; narrow it to app=cart"
    ]


def test_the_numbers_of_nodes_are_in_the_detail():
    found = shop("a: n1=cart,pay,pay n2 | b: n3=cart", deployed("pay"))
    [wide] = findings_of(RULE, asked("cart", HARD), index=found)
    assert wide.detail == (
        "this workload's own selector does not match 2 of the counted pods; the next pod fits on 1 node,"
        " but on 3 without the pods of workloads that have no zone constraint"
    )
    assert wide.fix == "labelSelector: {matchLabels: {part: shop, app: cart}}"
    assert wide.path == "spec.template.spec.topologySpreadConstraints[0].labelSelector"


@pytest.mark.parametrize(("action", "weight"), [("hard", "accepts no pod"), ("soft", "is the last choice for a pod")])
def test_what_others_weigh(action, weight):
    manifest = asked("cart", f"zone {action} 1 part=shop")
    [wide] = findings_of(RULE, manifest, index=shop("a: n1=pay | b: n2=loose"))
    assert wide.detail == (
        "this workload's own selector does not match 2 of the counted pods;"
        f" a domain full of their pods {weight} of this workload"
    )


def test_without_nodes_it_does_not_warn():
    found = shop("", deployed("pay"))
    found.apply("ADDED", running("pay-1", "n1", LABELS["pay"]))
    assert told(asked("cart", HARD), found) == ["audit zone[0] also counts 1 pod of pay; narrow it to app=cart"]


def test_a_template_that_is_not_known_may_have_the_constraint():
    found = shop("a: n1=cart,pay,pay | b: n2=cart", owner("Deployment/pay", LABELS["pay"]))
    assert told(asked("cart", HARD), found) == [
        "audit zone[0] also counts 2 pods of other workloads; narrow it to app=cart"
    ]


@pytest.mark.parametrize(
    ("kind", "cluster", "missing"),
    [
        pytest.param("Pod", "a: n1=pay", ["not evaluated: its own pods (the kind has no selector)"], id="a pod"),
        pytest.param("Pod", "a: n1=web", [], id="a pod, and nobody is counted"),
        pytest.param(
            "CronJob", "a: n1=pay", ["not evaluated: its own pods (the kind has no selector)"], id="a CronJob"
        ),
        pytest.param("ReplicationController", "a: n1=cart", [], id="its selector is its labels"),
        pytest.param(
            "ReplicationController", "a: n1=pay", ["zone[0] also counts 1 pod of other workloads"], id="its labels"
        ),
    ],
)
def test_kinds_without_a_selector(kind, cluster, missing):
    assert said(RULE, asked("cart", "zone hard 1 part=shop", kind=kind), index=shop(cluster)) == missing


def test_an_owners_selector_that_says_nothing_names_nobody():
    found = shop("a: n1=pay", replace(deployed("pay"), selector=None))
    assert told(asked("cart", HARD), found) == [
        "audit zone[0] also counts 1 pod of other workloads; narrow it to app=cart"
    ]


def test_keys_that_are_added_later_decide():
    manifest = asked("cart", "zone hard 1 part=shop keys:topology.kubernetes.io/zone")
    late = ["not evaluated: labels that controllers add to the pods"]
    assert said(RULE, manifest, index=shop("a: n1=pay")) == late


def test_what_is_missing():
    found = shop("a: n1=pay", deployed("pay"))
    found.mark_missing("pods", "403 Forbidden")
    assert said(RULE, asked("cart", HARD)) == ["not evaluated: no cluster"]
    assert said(RULE, asked("cart", HARD), index=found) == ["not evaluated: pods: 403 Forbidden"]
    assert said(RULE, asked("cart"), index=found) == []


def test_an_operators_shards_are_counted_together_on_purpose():
    operator = {"ownerReferences": [{"kind": "Redis", "name": "cache", "controller": True}]}
    found = shop("a: n1=pay,pay | b: n2=cart,loose", deployed("pay", above="Redis/cache"))
    assert told(asked("cart", HARD, meta=operator), found) == [
        "audit zone[0] also counts 1 pod of other workloads; narrow it to app=cart"
    ]
    assert told(asked("cart", HARD), found) == [
        "warn zone[0] also counts 2 pods of pay and 1 of others; narrow it to app=cart"
    ]


def test_pods_under_two_names_are_named_once():
    found = shop("a: n1=pay,pay", deployed("pay"), replace(deployed("pay", kind="Rollout")))
    assert told(asked("cart", HARD), found) == ["audit zone[0] also counts 2 pods of pay; narrow it to app=cart"]


def test_a_namesake_is_told_apart_by_its_kind():
    namesake = replace(deployed("pay", kind="StatefulSet"), meta=replace(deployed("pay").meta, name="cart"))
    assert told(asked("cart", HARD), shop("a: n1=pay", namesake)) == [
        "audit zone[0] also counts 1 pod of StatefulSet cart; narrow it to app=cart"
    ]


def test_with_minimal_detail_nobody_is_named():
    minimal = replace(DENY, messages=Messages(detail="minimal"))
    assert told(asked("cart", HARD), shop("a: n1=pay", deployed("pay")), minimal) == [
        "audit zone[0] also counts 1 pod of other workloads; narrow it to app=cart"
    ]


@pytest.mark.parametrize(
    ("detail", "summary", "detailed"),
    [
        pytest.param("minimal", "pods of other workloads", "all of the counted pods; ", id="minimal"),
        pytest.param("own-namespace", "pods of other workloads", "all of the counted pods; ", id="the default"),
        pytest.param("full", "2 pods of pay", "2 of the counted pods (1 of them on counted nodes); ", id="full"),
    ],
)
def test_who_asks_the_webhook_hears_of_others_as_the_policy_says(detail, summary, detailed):
    """Whoever may create objects need not be allowed to list pods."""
    policy = replace(DENY, messages=Messages(detail=detail))
    cluster = shop("a: n1=pay | b: n2 | n3=pay", deployed("pay"))
    decision = decide(asked("cart", HARD), policy=policy, index=cluster)
    [wide] = [each.finding for each in decision.findings if each.finding.rule == RULE]
    assert wide.summary == f"zone[0] also counts {summary}"
    assert wide.detail.startswith(f"this workload's own selector does not match {detailed}")


@pytest.mark.parametrize(("namespace", "found"), [("shop", [RULE]), ("lobby", [])])
def test_a_namespace_is_told_of_only_to_requests_from_it(namespace, found):
    """Whatever namespace the object names; kube-apiserver lets through none but the request's."""
    manifest = asked("cart", HARD, meta={"name": "cart", "namespace": "shop"})
    decision = decide(manifest, index=shop("a: n1=pay", deployed("pay")), namespace=namespace)
    assert [each.finding.rule for each in decision.findings if each.finding.rule == RULE] == found


def test_a_selector_of_expressions_is_not_spelt_out():
    expressions = [{"key": "app", "operator": "In", "values": ["cart"]}]
    manifest = asked("cart", HARD, spec={"selector": {"matchExpressions": expressions}})
    assert told(manifest, shop("a: n1=pay", deployed("pay"))) == [
        "audit zone[0] also counts 1 pod of pay; use the workload's own selector"
    ]


def test_an_own_selector_that_cannot_be_read_is_another_rules_matter():
    manifest = asked("cart", HARD, spec={"selector": {"matchExpressions": [{"key": "app", "operator": "?"}]}})
    assert said(RULE, manifest, index=shop("a: n1=pay", deployed("pay"))) == [
        "not evaluated: its own pods (the kind has no selector)"
    ]


def test_the_warning_is_one_short_line():
    found = shop("a: n1=cart,pay,pay,db | b: n2=cart", deployed("pay"), deployed("db"))
    full = replace(DENY, messages=Messages(detail="full"))
    assert decide(asked("cart", HARD), policy=full, index=found).warnings == (
        "evenspread/selector-too-wide: zone[0] also counts 2 pods of pay and 1 of db; narrow it to app=cart",
    )
    long = replace(deployed("pay"), meta=replace(deployed("pay").meta, name="p" * 63))
    [wide] = findings_of(RULE, asked("cart", HARD), index=shop("a: n1=pay", long))
    [warning] = warnings_of([wide])
    assert warning == f"evenspread/selector-too-wide: zone[0] also counts 1 pod of {'p' * 31}…; narrow it to app=cart"
    assert len(warning) <= WARNING_CHARS


@pytest.mark.parametrize(
    ("cluster", "constraints", "fields", "expected"),
    [
        pytest.param(
            "n1=pay,pay | a: n2=pay",
            ["zone soft 1 part=shop"],
            {},
            ["3 of the", "1 of them"],
            id="on a node without zone",
        ),
        pytest.param("n1=pay,pay | a: n2", ["zone hard 1 part=shop"], {}, [], id="all of them are"),
        pytest.param("n1=pay,pay | a: n2", ["hostname soft 1 part=shop"], {}, ["2 of the"], id="nodes have hostnames"),
        pytest.param(
            "n1=pay,pay | a: n2=pay",
            ["zone soft 1 app=cart", "hostname soft 1 part=shop"],
            {},
            ["3 of the", "1 of them"],
            id="a node has to have the keys of all soft constraints",
        ),
        pytest.param(
            "n1=pay,pay | a: n2=pay",
            ["zone hard 1 app=cart", "hostname soft 1 part=shop"],
            {},
            ["3 of the"],
            id="and of hard ones for those only",
        ),
        pytest.param(
            "a: n1=pay | b: n2=pay,pay",
            ["zone hard 1 part=shop"],
            {"nodeSelector": {"topology.kubernetes.io/zone": "a"}},
            ["3 of the", "1 of them"],
            id="on nodes that the pods may not use",
        ),
        pytest.param(
            "a: n1=pay | b: n2=pay,pay",
            ["zone hard 1 part=shop nodeAffinityPolicy:Ignore nodeTaintsPolicy:Honor"],
            {"nodeSelector": {"topology.kubernetes.io/zone": "a"}},
            ["3 of the"],
            id="which count nevertheless",
        ),
    ],
)
def test_pods_count_where_their_nodes_do(cluster, constraints, fields, expected):
    details = [
        each.detail
        for each in findings_of(RULE, asked("cart", *constraints, **fields), index=shop(cluster, deployed("pay")))
    ]
    assert [each for line in details for each in re.findall(r"\d of (?:them|the)", line)] == expected


def effect(manifest, found, policy=DENY):
    """What the next pod may do, of each finding."""
    judged = examined(manifest, policy, index=found).findings
    return [each.finding.detail.rpartition("; ")[2] for each in judged if each.finding.rule == RULE]


WITHOUT = "without the pods of workloads that have no zone constraint"
PER_HOST = "hostname hard 1 app=cart keys:pod-template-hash"
CURRENT = owner("ReplicaSet/cart-1", "app=cart pod-template-hash=1", above="Deployment/cart", replicas=1)


def carts(*where):
    return [running(f"cart-{name}", name, "app=cart part=shop pod-template-hash=1") for name in where]


@pytest.mark.parametrize(
    ("owners", "constraints", "expected"),
    [
        pytest.param([], [HARD], f"the next pod fits on 1 node, but on 2 {WITHOUT}", id="alone"),
        pytest.param(
            [],
            [HARD, PER_HOST],
            f"the next pod fits on 1 node, but on 2 {WITHOUT}",
            id="of a revision that has no pod yet",
        ),
        pytest.param(
            [deployed("cart"), CURRENT],
            [HARD, PER_HOST],
            f"{WITHOUT}, the next pod would fit on other nodes",
            id="a new revision has one node, and the present one none",
        ),
        pytest.param(
            [],
            [HARD, "hostname hard 1 part=shop"],
            f"the next pod fits on 1 node, but on 2 {WITHOUT}",
            id="they are taken from the other constraint too",
        ),
        pytest.param(
            [],
            [HARD, "hostname hard 1 app=cart keys:controller-revision-hash,topology.kubernetes.io/zone"],
            "a domain full of their pods accepts no pod of this workload",
            id="another counts by a label that is not known yet",
        ),
    ],
)
def test_the_next_pod_is_tried_as_its_controller_makes_it(owners, constraints, expected):
    found = shop("a: n1=pay,pay n2=pay | b: n3", deployed("pay"), *owners, *carts("n3"))
    assert effect(asked("cart", *constraints), found)[:1] == [expected]


def test_another_scheduler_may_decide_otherwise():
    found = shop("a: n1=cart,pay,pay | b: n2=cart", deployed("pay"))
    assert effect(asked("cart", HARD, schedulerName="own"), found) == [
        "a domain full of their pods accepts no pod of this workload"
    ]


CLAIMS = {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}


@pytest.mark.parametrize(
    ("fields", "numbers"),
    [
        pytest.param({"kind": "StatefulSet"}, True, id="a StatefulSet without volumes"),
        pytest.param({"kind": "StatefulSet", "spec": CLAIMS}, False, id="a volume may hold it somewhere"),
        pytest.param({"kind": "DaemonSet"}, False, id="it is made for one node"),
    ],
)
def test_what_the_controller_adds_decides_where_the_next_pod_goes(fields, numbers):
    found = shop("a: n1=cart,pay,pay | b: n2=cart", deployed("pay"))
    [said] = effect(asked("cart", HARD, **fields), found)
    assert said.startswith("the next pod fits on 1 node") == numbers


@pytest.mark.parametrize(
    ("replicas", "helps"),
    [
        pytest.param(5, True, id="all have a place without them"),
        pytest.param(6, False, id="they had lifted the emptiest host"),
    ],
)
def test_a_narrower_selector_that_takes_places_away_is_for_people(replicas, helps):
    manifest = asked("cart", "zone hard 1 app=cart", "hostname hard 1 part=shop", replicas=replicas)
    found = shop("a: n1 | b: n2 n3=pay", deployed("pay"))
    [fix] = findings_of(RULE, manifest, index=found)
    selector = "labelSelector: {matchLabels: {part: shop, app: cart}}"
    assert (fix.fix, bool(fix.edits)) == (selector if helps else f"set {selector}", helps)


def test_pods_that_two_workloads_select_are_not_named_twice():
    twins = [
        owner(f"Deployment/{name}", f"{key}=x", declared("app=x tier=x part=shop"))
        for name, key in (("one", "app"), ("two", "tier"))
    ]
    found = shop("a: n1=cart | b: n2=cart", *twins)
    for number in range(2):
        found.apply("ADDED", running(f"x-{number}", "n1", "app=x tier=x part=shop"))
    assert told(asked("cart", HARD), found) == [
        "audit zone[0] also counts 2 pods of other workloads; narrow it to app=cart"
    ]


@pytest.mark.parametrize(
    ("constraint", "own", "edits"),
    [
        pytest.param(HARD, {}, [{"matchLabels": {"part": "shop", "app": "cart"}}], id="labels"),
        pytest.param(
            HARD,
            {"selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["cart"]}]}},
            [
                {
                    "matchLabels": {"part": "shop"},
                    "matchExpressions": [{"key": "app", "operator": "In", "values": ["cart"]}],
                }
            ],
            id="expressions",
        ),
    ],
)
def test_the_narrower_selector_counts_its_own_pods_alone(constraint, own, edits):
    found = shop("a: n1=pay", deployed("pay"))
    manifest = asked("cart", constraint, "hostname soft 1 part=shop", spec=own)
    [wide] = findings_of(RULE, manifest, index=found)
    assert [each.value for each in wide.edits] == edits * 2
    assert told(applied(manifest, wide.edits), found) == []


def test_a_narrower_selector_that_leaves_pods_without_a_place_is_not_pasted():
    """The pods of pay stand in the tainted zone, and lift the minimum there."""
    manifest = asked("cart", f"{HARD} nodeTaintsPolicy:Ignore", kind="StatefulSet", replicas=4)
    found = shop("a: n1 | b: n2 | c: n3=pay,pay", deployed("pay"))
    edits = {}
    for taint in (None, (Taint(key="gpu", effect="NoSchedule"),)):
        found.apply("ADDED", replace(found.nodes.get("n3"), spec=NodeSpec(taints=taint)))
        [wide] = findings_of(RULE, manifest, index=found)
        edits[taint is not None] = len(wide.edits)
    assert edits == {False: 1, True: 0}


PAIRS = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from(["1", "2"]), max_size=3)


@pytest.mark.slow
@given(own=PAIRS.filter(bool), more=st.lists(PAIRS, max_size=6), asks=PAIRS, others=st.lists(PAIRS, max_size=3))
def test_it_never_speaks_where_all_pods_are_the_workloads_own(own, more, asks, others):
    def text(pairs):
        return " ".join(f"{key}={value}" for key, value in pairs.items())

    mine = [{**extra, **own, "pod-template-hash": str(number)} for number, extra in enumerate(more)]
    pods = [running(f"p-{number}", "n1", text(labels)) for number, labels in enumerate(mine)]
    others = [owner(f"Deployment/other-{number}", text(labels)) for number, labels in enumerate(others) if labels]
    found = shop("a: n1 | b: n2", *pods, *others)
    manifest = workload("Deployment", text(own), f"zone hard 1 {text(asks)}", selector=text(own))
    assert said(RULE, manifest, index=found) == []


@pytest.mark.parametrize(
    ("constraint", "own", "others", "expected"),
    [
        pytest.param(
            HARD,
            "app=cart",
            [deployed("pay")],
            "zone[0] also counts the pods of pay in the same file; narrow it to app=cart; "
            "this workload's own selector does not match those pods; a domain full of their pods accepts no pod of this"
            " workload",
            id="a hard constraint",
        ),
        pytest.param(
            "zone soft 1 part=shop",
            "app=cart",
            [deployed("pay", HARD), deployed("db", HARD)],
            "zone[0] also counts the pods of db and pay in the same file; narrow it to app=cart unless they are one "
            "application; this workload's own selector does not match those pods; a domain full of their pods is the "
            "last choice for a pod of this workload",
            id="a soft one, and others that have it too",
        ),
        pytest.param(
            HARD,
            LABELS["pay"],
            [deployed("pay")],
            "zone[0] also counts the pods of pay in the same file; "
            "add a distinct label to the pods of each workload; "
            "another workload has the same selector as this one; a domain full of their pods accepts no pod of this"
            " workload",
            id="the same selector",
        ),
        pytest.param(
            HARD,
            "app=cart",
            [
                replace(deployed("pay"), meta=replace(deployed("pay").meta, name="p" * 63)),
                deployed("db"),
                owner("Deployment/of-two", "run=two", declared("app=cart part=shop"), declared("run=two")),
            ],
            f"zone[0] also counts the pods of db and {'p' * 31}… in the same file; narrow it to app=cart; "
            "this workload's own selector does not match those pods; a domain full of their pods accepts no pod of this"
            " workload",
            id="a long name",
        ),
    ],
)
def test_workloads_of_the_same_file_without_a_cluster(constraint, own, others, expected):
    manifest = workload("Deployment", own if own != "app=cart" else LABELS["cart"], constraint, selector=own)
    manifest["metadata"]["namespace"] = deployed("pay").meta.namespace
    here = Context(policy=DENY, version=RECORDED, same_file=index(*others))
    [wide] = [each for each in examine(manifest, here).findings if each.finding.rule == RULE]
    found = wide.finding
    assert f"{found.summary}; {found.remedy}; {found.detail}" == expected
    assert wide.mode == "audit"
    assert bool(found.edits) != bool(found.by_hand)
    assert RULE not in {each.rule for each in examine(manifest, here).not_evaluated}
    alone = examine(manifest, replace(here, same_file=index(owner("Deployment/x", "app=x", declared("app=x")))))
    assert [each.missing for each in alone.not_evaluated if each.rule == RULE] == ["no cluster"]
