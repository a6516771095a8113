"""Caps of SpreadGroups: those that are broken, and those that pods to come can break."""

import json
from collections import Counter

import pytest
from build import ROOMY, filled, index, node, pod, running
from core.groups.grouped import written
from core.scheduler.plugins.test_volume_filters import claim, in_zone, volume
from manifest import PLAIN, RECENT, ending_after, examined, findings_of, request, said, workload
from msgspec.structs import replace

from webhook.core.api.storage import Claim
from webhook.core.api.types import ClaimSpec, NodeStatus, ObjectMeta, TypeMeta
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.budget import Budget, Missing
from webhook.core.context import Context
from webhook.core.index.readers import decode_object
from webhook.core.policy.policy import Messages, Mode
from webhook.core.review.review import review
from webhook.core.workloads.custom_kinds import EmbeddedKind

RULE = "group-cap"
HALF = {"topologyKey": ZONE, "lessThan": "1/2"}
TWO = {"topologyKey": HOSTNAME, "atMost": 2}
MASTERS = {"topologyKey": ZONE, "atMost": 1, "enforce": "observe", "selector": {"matchLabels": {"role": "master"}}}


def town(text, *groups):
    """``a: n1=0,0,1 | b: n2``: zones, nodes, and the shards of the pods on each; ``m`` is a master of shard 0."""
    values, made = [*(groups or (written(),))], Counter()
    for part in text.split("|"):
        zone, _, nodes = part.rpartition(":")
        for entry in nodes.split():
            name, _, pods = entry.partition("=")
            values.append(replace(node(name, zone.strip() or None), status=NodeStatus(allocatable=ROOMY)))
            for each in filter(None, pods.split(",")):
                shard = "0" if each == "m" else each
                labelled = f"app=redis shard={shard}{' role=master' * (each == 'm')}"
                values.append(running(f"redis-{shard}-{made[shard]}", name, labelled))
                made[shard] += 1
    return index(*values)


def redis(*constraints, shard="0", replicas=2, kind="StatefulSet", spec=None, **more):
    labelled = f"app=redis shard={shard}"
    named = {"name": f"redis-{shard}"}
    return workload(kind, labelled, *constraints, replicas=replicas, selector=labelled, meta=named, spec=spec, **more)


def can(pods, where="zone a"):
    return [f"SpreadGroup cache: {where} can get {pods} pods, but the cap is 2"]


ASTRAY = ["SpreadGroup cache: nodes without the label zone have 3 pods, and the cap of 2 counts none of them"]
TO_COME = [ASTRAY[0].replace("have 3", "can get 3")]
BROKEN = ["SpreadGroup cache: zone a has 3 pods, but the cap is 2"]


@pytest.mark.parametrize(
    ("text", "made", "expected"),
    [
        pytest.param("a: n1=0,1,2 | b: n2=0,1,2", redis(), BROKEN, id="broken"),
        pytest.param("a: n1=0,1 | b: n2=0,1", redis(), [], id="kept"),
        pytest.param("a: n1=1,1,2 | b: n2=0,0", redis(), [], id="broken by others, where none of its own is"),
        pytest.param("a: n1=1,1 n3=2 | b: n2=0,0", redis(shard="1"), BROKEN, id="on two nodes of the zone"),
        pytest.param("n1=0,1,2 | b: n2=0", redis(), ASTRAY, id="on a node without a zone"),
        pytest.param("n1=0,1 | b: n2=0", redis(), [], id="no more on a node without a zone than in one zone"),
        pytest.param("n1 | b: n2", redis(replicas=3, nodeSelector={HOSTNAME: "n1"}), TO_COME, id="may go to one"),
        pytest.param("n1 | b: n2", redis("zone hard 9 app=redis"), [], id="a constraint requires the label"),
        pytest.param("a: n1=1,2 | b: n2 | c: n3", redis(), can(4), id="both of its pods beside two"),
        pytest.param("n0 | a: n1=1,2", redis(), can(4), id="beside a node without a zone"),
        pytest.param("n0", redis(), [], id="there is no zone"),
        pytest.param("n0", redis(replicas=3), TO_COME, id="there is no zone, and more pods than may be in one"),
        pytest.param("a: n1=1 | b: n2=1", redis(), can(3), id="both of its pods beside one"),
        pytest.param("a: n1 | b: n2", redis(replicas=3), can(3), id="all three of its own"),
        pytest.param("a: n1 | b: n2", redis(), [], id="no more than may be"),
        pytest.param("a: n1=1,2", redis("zone hard 1 app=redis minDomains:9"), [], id="an exact cap of 1"),
        pytest.param("a: n1=1,2 | b: n2", redis("zone hard 1 app=redis"), [], id="a hard constraint keeps it"),
        pytest.param("a: n1=1,2 | b: n2", redis("zone soft 1 app=redis"), can(4), id="a soft one does not"),
        pytest.param("a: n1=1,2 | b: n2", redis(nodeSelector={ZONE: "b"}), [], id="its nodes are in another zone"),
        pytest.param("a: n1=1,2 | b: n2", redis(replicas=1), can(3), id="a single pod"),
        pytest.param("a: n1=1,2 | b: n2", redis(kind="Pod"), can(3), id="a pod by itself"),
        pytest.param("a: n1=1,2 | b: n2", redis(kind="Pod", nodeName="n2"), [], id="a pod with a node"),
        pytest.param("a: n1=1,2 | b: n2", redis(kind="Deployment"), can(4), id="a Deployment"),
        pytest.param("a: n1=1,2 | b: n2", redis(kind="DaemonSet"), [], id="a pod on each node"),
        pytest.param("a: n1=1,2 | b: n2", redis(schedulerName="own"), [], id="another scheduler"),
        pytest.param("a: n1=1,2 | b: n2", workload("StatefulSet", "app=web", replicas=2), [], id="not of the group"),
        pytest.param("a: n1=0,1,2 | b: n2", workload("Pod", "app=redis"), BROKEN, id="nobody knows its own pods"),
        pytest.param(
            "a: n1 | b: n2",
            redis(replicas=80),
            ["not evaluated: unknown: 80 unplaced pods are too many to place one by one"],
            id="more than are placed",
        ),
    ],
)
def test_half_of_the_pods_in_a_zone(text, made, expected):
    assert said(RULE, made, index=town(text)) == expected


def test_what_to_do_about_it():
    def findings(made, text, policy=PLAIN, of=None):
        judged = examined(made, policy, index=town(text, *((of,) if of else ()))).findings
        return [each for each in judged if each.finding.rule == RULE]

    (broken,) = findings(redis(), "a: n1=0,1,2 | b: n2=0")
    assert (str(broken.mode), str(broken.severity), broken.finding.remedy) == ("warn", "high", "move 1 of them")
    assert broken.finding.path == "spec.template.spec.topologySpreadConstraints"
    assert broken.finding.detail == (
        "the cap of SpreadGroup cache is less than 1/2 of 6 pods per zone, so 2; zone a has 3 pods, including pods of"
        " other workloads in the group"
    )
    assert broken.finding.fix == (
        "apply its plan: kubectl evenspread plan -n shop --group cache -o patch, then delete 1 of the "
        "pods there, because Kubernetes never moves a running pod"
    )
    (can_be,) = findings(redis(replicas=1), "a: n1=1,2 | b: n2")
    assert can_be.finding.remedy == "apply its plan"
    assert can_be.finding.fix == "apply its plan: kubectl evenspread plan -n shop --group cache -o patch"
    silent = replace(PLAIN, messages=Messages(detail="minimal"))
    (unnamed,) = findings(redis(replicas=1), "a: n1=1,2 | b: n2", silent)
    assert unnamed.finding.summary == "SpreadGroup cache: one zone can get 3 pods, but the cap is 2"
    on_nodes = written(caps=(TWO,))
    told = replace(PLAIN, messages=Messages(detail="full"))
    (node_cap,) = findings(redis(), "a: n1=0,1,2 | b: n2=0", told, on_nodes)
    assert node_cap.finding.summary == "SpreadGroup cache: node n1 has 3 pods, but the cap is 2"
    (unnamed,) = findings(redis(), "a: n1=0,1,2 | b: n2=0", of=on_nodes)
    assert unnamed.finding.summary == "SpreadGroup cache: one node has 3 pods, but the cap is 2"


def test_a_cap_that_is_observed_is_noted_and_no_pod_to_come_breaks_it():
    of = written(caps=(MASTERS,))
    found = examined(redis(), PLAIN, index=town("a: n1=m,m | b: n2", of)).findings
    (told,) = [each for each in found if each.finding.rule == RULE]
    assert str(told.mode) == "audit"
    assert told.finding.summary == "SpreadGroup cache: zone a has 2 pods, but the cap is 1"
    assert "zone a has 2 pods that the cap selects, including pods of" in told.finding.detail
    assert said(RULE, redis(), index=town("a: n1=m,0 | b: n2", of)) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: n1=m | b: n2", [], id="one of a master a shard, by the shards"),
        pytest.param("a: n1=m,m | b: n2", ["SpreadGroup cache: zone a has 2 pods, but the cap is 1"], id="two"),
        pytest.param("a: n1=m,m | b: n2=m,m", [], id="more than there are shards"),
    ],
)
def test_a_share_of_the_pods_that_a_cap_selects_is_of_these(text, expected):
    of = written(caps=(MASTERS | {"atMost": "1/2"},))
    found = town(text, of)
    assert said(RULE, redis(), index=found) == expected
    for name in ("w-0", "w-1"):
        waiting = pod("app=redis shard=1 role=master")
        found.apply("ADDED", replace(waiting, metadata=replace(waiting.meta, name=name)))
    assert said(RULE, redis(), index=found) == []  # those without a node count in the share


def test_each_cap_of_each_group():
    groups = written(caps=(HALF, TWO)), written("other", caps=(HALF,))
    assert said(RULE, redis(), index=town("a: n1=0,1,2 | b: n2=0", *groups)) == [
        "SpreadGroup cache: zone a has 3 pods, but the cap is 2",
        "SpreadGroup cache: one node has 3 pods, but the cap is 2",
        "SpreadGroup other: zone a has 3 pods, but the cap is 2",
    ]


@pytest.mark.parametrize(
    "of",
    [
        pytest.param(written(selector={}), id="one that selects every pod"),
        pytest.param(written(selector={"matchLabels": {"app": "a b"}}), id="a selector that is none"),
        pytest.param(written(caps=()), id="no cap"),
        pytest.param(
            written(caps=(MASTERS | {"selector": {"matchLabels": {"role": "a b"}}},)),
            id="a cap's selector that is none",
        ),
        pytest.param(replace(written(), spec=None), id="no spec"),
        pytest.param(replace(written(), metadata=replace(written().metadata, namespace="other")), id="elsewhere"),
    ],
)
def test_groups_that_cannot_be_planned_say_nothing(of):
    assert said(RULE, redis(), index=town("a: n1=0,1,2 | b: n2=0", of)) == []


def test_what_is_not_known():
    found = town("a: n1=1,2 | b: n2")
    assert said(RULE, redis()) == ["not evaluated: no cluster"]
    assert said(RULE, redis(replicas=1)) == []
    found.mark_missing("spreadgroups", "403 Forbidden")
    assert said(RULE, redis(), index=found) == ["not evaluated: spreadgroups: 403 Forbidden"]
    assert said(RULE, redis(kind="Pod"), index=found) == []


def test_where_volumes_will_be_is_not_known():
    claims = [{"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}]
    found = town("a: n1=1,2 | b: n2")
    found.apply(
        "ADDED", Claim(metadata=ObjectMeta(name="data-redis-0-0", namespace="shop"), spec=ClaimSpec(volume_name="v"))
    )
    told = said(RULE, redis(spec={"volumeClaimTemplates": claims}), index=found)
    assert told == ["not evaluated: unknown: the nodes of the pods' future volumes"]


def test_in_a_review_a_game_of_many_nodes_is_left_to_those_who_have_time():
    of = [written(expected={"shards": 200, "podsPerShard": 5})]
    for number in range(210):
        of.append(replace(node(f"n{number}", "a"), status=NodeStatus(allocatable=ROOMY)))
        # The least of them may rise while the pods are placed, so that it matters what each node has.
        if number:
            of.append(running(f"redis-1-{number}", f"n{number}", "app=redis shard=1"))
    made = redis("hostname hard 1 app=redis")
    here = Context(policy=PLAIN, index=index(*of), version=RECENT, budget=Budget(may_search=False))
    assert review(request(made), here).costly
    assert not review(request(made), replace(here, budget=Budget())).costly


def declared(*constraints, shard="1", claims=(), **more):
    """A workload of the group that is in the cluster, with the pods that run or without."""
    templates = [{"metadata": {"name": each}, "spec": {"storageClassName": "fast"}} for each in claims]
    made = redis(*constraints, shard=shard, spec={"volumeClaimTemplates": templates} if claims else None, **more)
    return decode_object(json.dumps(made).encode(), TypeMeta(api_version=made["apiVersion"], kind=made["kind"]))


def beside(text, *others):
    return filled(town(text), others)


ONE = redis(replicas=1)
LATER = "a: n1=1 | b: n2"  # one of the two pods of the other shard runs


@pytest.mark.parametrize(
    ("text", "made", "others", "expected"),
    [
        pytest.param(LATER, ONE, [declared()], can(3), id="the other pod comes first"),
        pytest.param(LATER, ONE, [declared(replicas=1)], [], id="no other comes"),
        pytest.param(LATER, ONE, [declared(replicas=1), declared(shard="2", replicas=1)], can(3), id="of a third"),
        pytest.param(LATER, ONE, [declared(kind="Deployment")], can(3), id="of a Deployment"),
        pytest.param(
            "a: n1 | b: n2", redis(), [declared()], can(4), id="two of each, where either alone is what may be"
        ),
        pytest.param("a: n1 | b: n2", ONE, [declared(replicas=1)], [], id="both together are what may be"),
        pytest.param(
            LATER, redis("zone hard 2 app=redis minDomains:9", replicas=1), [declared()], [], id="it has an exact cap"
        ),
        pytest.param(LATER, ONE, [declared("zone hard 1 app=redis minDomains:9")], [], id="the other has one"),
        pytest.param(LATER, ONE, [declared(nodeSelector={ZONE: "b"})], [], id="the other goes to another zone"),
        pytest.param(LATER, redis(replicas=1, nodeSelector={ZONE: "b"}), [declared()], [], id="it goes to another"),
        pytest.param(LATER, ONE, [declared(shard="0", replicas=9)], [], id="it is itself, as it was"),
        pytest.param(LATER, redis(kind="Pod"), [declared()], [], id="for a pod nothing is said"),
        pytest.param(
            LATER,
            ONE,
            [declared(schedulerName="own")],
            ["not evaluated: unknown: another scheduler places pods of the group"],
            id="another scheduler",
        ),
        pytest.param(
            LATER, redis(replicas=2), [declared(schedulerName="own")], can(3), id="it breaks the cap by itself"
        ),
        pytest.param(
            "a: n1 | b: n2", ONE, [declared(schedulerName="own", replicas=1)], [], id="unknown, and too few to decide"
        ),
        pytest.param(
            LATER,
            redis(replicas=1, nodeSelector={ZONE: "c"}),
            [declared(schedulerName="own")],
            [],
            id="unknown, and nothing to it",
        ),
        pytest.param(
            "a: n1=1 | b: n2=2",
            ONE,
            [declared(schedulerName="own", replicas=2), declared(shard="2", nodeSelector={ZONE: "b"}, replicas=2)],
            can(3, "zone b"),
            id="unknown in one zone, and known in another",
        ),
        pytest.param(
            "a: n1 | b: n2",
            ONE,
            [declared(shard=str(shard), replicas=1, nodeSelector={ZONE: "c"}) for shard in range(1, 18)],
            ["not evaluated: unknown: more than 16 workloads of the group lack pods"],
            id="more workloads than are looked at",
        ),
    ],
)
def test_pods_that_other_workloads_lack(text, made, others, expected):
    assert said(RULE, made, index=beside(text, *others)) == expected


@pytest.mark.parametrize(
    ("text", "lacked"),
    [
        pytest.param(LATER, " and 1 unplaced pod of other workloads", id="one"),
        pytest.param("a: n1 | b: n2", " and 2 unplaced pods of other workloads", id="two"),
        pytest.param("a: n1=2,2 | b: n2", "", id="none before its own"),
    ],
)
def test_how_many_of_the_pods_other_workloads_still_lack_is_told(text, lacked):
    (told,) = findings_of(RULE, ONE, PLAIN, index=beside(text, declared()))
    held = "zone a can get 3 pods, including pods of other workloads in the group"
    assert told.detail.partition("; ")[2] == f"{held}{lacked or ''}"
    too = ", also to redis-1" if lacked else ""
    assert told.fix == f"apply its plan{too}: kubectl evenspread plan -n shop --group cache -o patch"


def test_volumes_of_other_workloads():
    """Where they are known, pods go there, in the order of their numbers; else it is not known where they go."""
    other = declared(claims=["data"])
    found = beside("a: n1=2 | b: n2", other)
    unbound = ["not evaluated: unknown: for another workload of the group, the nodes of the pods' future volumes"]
    for number, zone in enumerate("ab"):
        made = claim(f"data-redis-1-{number}", f"v{number}")
        found.apply("ADDED", made)
        assert said(RULE, ONE, index=found) == unbound
        found.apply("ADDED", volume(f"v{number}", affinity=in_zone(zone)))
    assert said(RULE, ONE, index=found) == can(3)
    for number, zone in enumerate("bb"):
        found.apply("ADDED", volume(f"v{number}", affinity=in_zone(zone)))
    assert said(RULE, ONE, index=found) == can(3, "zone b")


def test_which_workloads_there_are_is_not_known():
    found = town(LATER)
    found.mark_missing("statefulsets", "403 Forbidden")
    assert said(RULE, ONE, index=found) == ["not evaluated: statefulsets: 403 Forbidden"]
    assert said(RULE, redis(), index=found) == can(3)
    assert said(RULE, redis("zone hard 1 app=redis minDomains:9", nodeSelector={ZONE: "b"}), index=found) == [
        "not evaluated: statefulsets: 403 Forbidden"
    ]


@pytest.mark.parametrize(
    ("most", "lack", "told"),
    [
        pytest.param(70, [100], 70, id="as many as may be are too many"),
        pytest.param(100, [70, 25], 95, id="all that they lack are too many"),
    ],
)
def test_more_pods_of_others_than_are_placed(most, lack, told):
    found = town("a: n1 | b: n2", written(caps=({"topologyKey": ZONE, "atMost": most},)))
    for shard, pods in enumerate(lack, start=1):
        found.apply("ADDED", declared(shard=str(shard), replicas=pods))
    why = f"unknown: {told} unplaced pods of other workloads are too many to place one by one"
    assert said(RULE, redis(replicas=10), index=found) == [f"not evaluated: {why}"]


@pytest.mark.parametrize(
    ("most", "own", "lack"),
    [
        pytest.param(70, 10, 64, id="just as many as are placed"),
        pytest.param(100, 64, 40, id="they lack fewer than may be"),
    ],
)
def test_as_many_pods_of_others_as_are_placed(most, own, lack):
    found = town("a: n1 | b: n2", written(caps=({"topologyKey": ZONE, "atMost": most},)))
    found.apply("ADDED", declared(replicas=lack))
    told = f"SpreadGroup cache: zone a can get {own + lack} pods, but the cap is {most}"
    assert said(RULE, redis(replicas=own), index=found) == [told]


def test_what_an_operator_has_is_no_workload_with_pods_of_its_own():
    found = town(LATER)
    template = {"metadata": {"labels": {"app": "redis"}}, "spec": {"containers": [{"name": "c"}]}}
    kind = EmbeddedKind(api_version="db.example.com/v1", kind="Redis", template_path="spec.template")
    made = {"metadata": {"name": "r", "namespace": "shop"}, "spec": {"template": template}}
    of = TypeMeta(api_version=kind.api_version, kind=kind.kind)
    found.apply("ADDED", decode_object(json.dumps(made).encode(), of, (kind,)))
    assert said(RULE, ONE, index=found) == []


def test_in_a_review_a_game_of_many_nodes_is_left_for_other_workloads_too():
    of = [
        written(caps=({"topologyKey": ZONE, "atMost": 215},)),
        declared("hostname hard 1 app=redis", kind="Deployment", replicas=400),
    ]
    for number in range(210):
        of.append(replace(node(f"n{number}", "a"), status=NodeStatus(allocatable=ROOMY)))
        if number:
            of.append(running(f"redis-1-{number}", f"n{number}", "app=redis shard=1"))
    here = Context(policy=PLAIN, index=index(*of), version=RECENT, budget=Budget(may_search=False))
    assert review(request(ONE), here).costly


def planned(**changed):
    """The group with a stored plan: the pods of shard 0 in zones a and b."""
    entry = {"kind": "StatefulSet", "name": "redis-0", "shard": "0", "zones": ["a", "b"]}
    return written(generation=3, status={"observedGeneration": 3, "workloads": [entry]} | changed)


def with_plan(*domains, **more):
    """A workload of shard 0 whose pods share no zone, with a pin to these."""
    apart = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "redis", "shard": "0"}}}
    wanted = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [*domains]}]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    pin = {"nodeAffinity": {required: {"nodeSelectorTerms": [wanted]}}}
    return redis(affinity={"podAntiAffinity": {required: [apart]}} | pin, **more)


@pytest.mark.parametrize(
    ("of", "made", "expected"),
    [
        pytest.param(planned(), with_plan("a", "b"), [], id="it has the fields of its plan"),
        pytest.param(planned(), with_plan("a", "c"), can(3), id="it has other zones"),
        pytest.param(planned(), redis(replicas=1), can(3), id="it has none"),
        pytest.param(planned(observedGeneration=2), with_plan("a", "b"), can(3), id="the plan is an older one"),
        pytest.param(planned(workloads=[]), with_plan("a", "b"), can(3), id="the plan has no such shard"),
        pytest.param(written(), with_plan("a", "b"), can(3), id="there is none"),
        pytest.param(
            planned(),
            redis(replicas=1, template={"metadata": {"labels": {"app": "redis"}}}),
            can(3),
            id="it has no shard",
        ),
    ],
)
def test_what_others_lack_is_not_for_a_workload_that_has_the_plan(of, made, expected):
    found = town("a: n1=1 | b: n2 | c: n3", of)
    found.apply("ADDED", declared())
    assert said(RULE, made, index=found) == expected


def test_workloads_without_the_plan_are_named():
    def fix(made, text, of, *others):
        found = town(text, of)
        for each in others:
            found.apply("ADDED", each)
        (told,) = findings_of(RULE, made, PLAIN, index=found)
        return told.remedy, told.fix.partition(":")[0]

    here = "a: n1 | b: n2 | c: n3"
    others = declared(), declared(shard="2")
    take = "apply its plan"
    assert fix(with_plan("a", "b"), here, written(), *others) == (take, f"{take}, also to redis-1, redis-2")
    has_plan = decode_object(
        json.dumps(with_plan("a", "b")).encode(), TypeMeta(api_version="apps/v1", kind="StatefulSet")
    )
    assert fix(redis(shard="1"), here, planned(), has_plan, others[1]) == (take, f"{take}, also to redis-2")
    theirs = "apply the plan to the other workloads"
    assert fix(with_plan("a", "b"), "a: n1=1,2 | b: n2 | c: n3", planned(), *others) == (theirs, theirs)


STRICT = replace(PLAIN, ceiling=Mode.DENY, rules={RULE: Mode.DENY})
MANY = [{"topologyKey": key, "atMost": each} for each in range(2, 6) for key in (ZONE, HOSTNAME)]


@pytest.mark.parametrize(
    ("groups", "pods", "costly"),
    [
        pytest.param([written(caps=(HALF, TWO))], 20, False, id="two caps over three zones and three nodes"),
        pytest.param([written(caps=(HALF, TWO))], 60, True, id="of many pods"),
        pytest.param([written(caps=MANY)], 10, True, id="eight caps"),
        pytest.param([written(f"cache-{each}", caps=(HALF, TWO)) for each in range(9)], 2, True, id="nine groups"),
        pytest.param([written(caps=MANY, selector={"matchLabels": {"app": "other"}})], 60, False, id="of other pods"),
    ],
)
def test_many_caps_are_left_to_those_who_have_time(groups, pods, costly):
    """Whoever may create groups makes many, and each review of a workload that they select places its pods for each."""
    here = Context(
        policy=PLAIN, index=town("a: n1 | b: n2 | c: n3", *groups), version=RECENT, budget=Budget(may_search=False)
    )
    assert review(request(redis(replicas=pods)), here).costly is costly
    assert not review(request(redis(replicas=pods)), replace(here, budget=Budget())).costly
    # To keep everybody busy is no way round a rule on deny.
    busy = replace(here, policy=STRICT, budget=Budget(unjudged=Missing.BUSY))
    assert (Missing.BUSY.value in review(request(redis(replicas=pods)), busy).message) is costly


ABOVE = {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["1"]}]}
ANYWHERE = {"matchExpressions": [{"key": "size", "operator": "DoesNotExist"}]}
MANY_NODES = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [ANYWHERE, *[ABOVE] * 100]}}
COSTLY = redis(affinity={"nodeAffinity": MANY_NODES})
NODES = " ".join(f"m{each}" for each in range(60))


@pytest.mark.parametrize(
    ("made", "group", "costly"),
    [
        pytest.param(COSTLY, written(), True, id="selected by a group"),
        pytest.param(COSTLY, written(selector={"matchLabels": {"app": "other"}}), False, id="by none"),
        pytest.param(redis(), written(), False, id="an ordinary one"),
    ],
)
def test_what_a_template_without_constraints_costs_is_known_before(made, group, costly):
    found = town(f"a: n1=1,2 {NODES} | b: n2 | c: n3", group)
    here = Context(policy=STRICT, index=found, version=RECENT, budget=Budget(may_search=False))
    assert review(request(made), here).costly is costly
    busy = review(request(made), replace(here, budget=Budget(unjudged=Missing.BUSY)))
    assert (Missing.BUSY.value in busy.message) is costly


def test_time_that_runs_out_is_told():
    found, told = town("a: n1=1,2 | b: n2 | c: n3"), set()
    for looks in range(1, 60):
        here = Context(policy=STRICT, index=found, version=RECENT, budget=Budget(until=1.0, clock=ending_after(looks)))
        decision = review(request(redis()), here)
        missing = {each.missing for each in decision.not_evaluated if each.rule == RULE}
        told.add(
            "found"
            if not decision.allowed
            else Missing.NO_TIME.value
            if missing == {Missing.NO_TIME.value}
            else "nothing"
        )
    assert told == {"found", Missing.NO_TIME.value}


@pytest.mark.parametrize("caps", [(HALF,), (MASTERS,)])
def test_pods_that_wait_are_not_handed_out_to_be_counted(caps, monkeypatch):
    """A namespace has thousands, and a process that judges a costly object would get them all."""
    found = town("a: n1=m,m,1 | b: n2=1", written(caps=caps))
    found.apply("ADDED", replace(pod("app=redis role=master"), metadata=replace(pod().metadata, name="waits")))
    expected = said(RULE, redis(), index=found)
    monkeypatch.setattr(type(found.pods), "waiting", lambda *_: 1 / 0)
    assert said(RULE, redis(), index=found) == expected
    assert not [each for each in expected if each.startswith("not evaluated")]
