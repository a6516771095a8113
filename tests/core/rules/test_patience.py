"""What a cluster is not asked at admission: for lack of time, of news, or because a manifest asks for too much."""

import pytest
from core.rules.pages import NEED_CLUSTER
from core.rules.shop import deployed, shop
from manifest import FIXED, RECENT, TODAY, decide, ending_after, examined, headline, request, template, workload
from msgspec.structs import replace

from webhook.core.budget import Budget, Missing
from webhook.core.context import Context
from webhook.core.policy.policy import Mode
from webhook.core.review.review import review
from webhook.core.rules.object_cost import _MAX_COUNTED_TERMS, _MAX_RESOURCES
from webhook.core.rules.rule_set import RULES

TOO_MANY_COUNTED = "more than 16 constraints and required pod affinity terms"
TOO_MANY_RESOURCES = "more than 32 resources"
EVERYTHING = replace(FIXED, rules={rule.id: Mode.DENY for rule in RULES})
OTHERS = (deployed("canary", "zone hard 2 app=web"),)
# Canaries are counted too, under other terms; no node has a rack; the host of zone b fills up first; one node has all.
CLUSTER = shop("a: n1=stable,stable n2 n4 n5 | b: n3=canary", *OTHERS)
STABLE = "app=web track=stable"
SPREAD = ("zone hard 1 app=web", "hostname hard 1 app=web", "rack soft 1 app=web")
WEB = workload("Deployment", STABLE, *SPREAD, selector=STABLE, replicas=9)
WIDE = "selector-too-wide"


def reviewed(manifest, old=None, *, clock, until=1.0):
    asked = request(manifest, old)
    here = Context(policy=EVERYTHING, index=CLUSTER, version=RECENT, now=TODAY, budget=Budget(clock=clock, until=until))
    return review(asked, here)


def of_the_cluster(decision):
    """The rules that found something in the cluster, and those that could not look, with the reason."""
    found = {each.finding.rule for each in decision.findings if each.finding.rule in NEED_CLUSTER}
    return found, {each.rule: each.missing for each in decision.not_evaluated}


FOUND, _ = of_the_cluster(decide(WEB, policy=EVERYTHING, index=CLUSTER))


def test_there_is_enough_to_be_said():
    assert {WIDE, "topology-key-unknown", "zone-host-ceiling", "constraints-differ-in-group"} < FOUND


def test_a_cluster_that_was_not_heard_of_denies_nothing():
    decision = decide(WEB, policy=EVERYTHING, index=CLUSTER, age=61.0)
    found, missing = of_the_cluster(decision)
    assert found == set()
    assert {missing.get(rule) for rule in FOUND} == {Missing.STALE.value}
    assert not of_the_cluster(decide(WEB, policy=EVERYTHING, index=CLUSTER, age=60.0))[0] ^ FOUND


@pytest.mark.slow
def test_what_there_is_no_time_for_is_not_evaluated():
    stopped = set()
    for looks in range(2, 120):
        found, missing = of_the_cluster(reviewed(WEB, clock=ending_after(looks)))
        late = {rule for rule, why in missing.items() if why == Missing.NO_TIME.value}
        assert found | late >= FOUND, looks
        # Where there was no time for the rule that says why, this one says that.
        assert found <= FOUND | {"replicas-do-not-fit"}, looks
        stopped.add(frozenset(late))
    assert found == FOUND, "the last clock is good for all"
    assert len(stopped) > 5, "on the way as well as between the rules"


@pytest.mark.parametrize(("seconds", "late"), [(0.4, False), (0.6, True)])
def test_a_request_gets_a_part_of_the_time_there_is(seconds, late):
    began = iter([0.0])
    _, missing = of_the_cluster(reviewed(WEB, clock=lambda: next(began, seconds), until=9.0))
    assert (missing.get(WIDE) == Missing.NO_TIME.value) is late


@pytest.mark.slow
def test_what_nobody_had_time_to_see_in_the_old_object_denies_nothing():
    """An update that changes nothing of it may not fail because the machine was busy in between."""
    before, after = WEB, {**WEB, "spec": {**WEB["spec"], "replicas": 8}}
    assert headline(reviewed(after, clock=lambda: 0.0)) == (
        "Deployment shop/web: zone[0], hostname[1] and rack[2] also count pods of other workloads; "
        "narrow them to track=stable (1 of 7 problems)"
    )
    outcomes = set()
    for looks in range(2, 240):
        decision = reviewed(after, before, clock=ending_after(looks))
        assert decision.allowed, looks
        outcomes |= {each.waived for each in decision.findings}
    assert outcomes == {
        "the object had this finding before the update",
        "the object before the update could not be checked",
    }


NOTED = {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}
SKIPPED = {"annotations": {"evenspread.io/skip": "true"}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "looked_at_again"),
    [
        pytest.param({}, False, id="nothing changed"),
        pytest.param(NOTED, False, id="what kubectl notes"),
        pytest.param({"resourceVersion": "2"}, False, id="the version"),
        pytest.param({"labels": {"tier": "front"}}, True, id="a label"),
        pytest.param(SKIPPED, True, id="an annotation that counts"),
    ],
)
def test_an_old_object_that_rules_cannot_tell_from_the_new_one_takes_no_time(changed, looked_at_again):
    after = {**WEB, "metadata": {**WEB["metadata"], **changed}}
    outcomes = set()
    for looks in range(2, 240):
        decision = reviewed(after, WEB, clock=ending_after(looks))
        assert decision.allowed, looks
        outcomes |= {each.waived for each in decision.findings}
    assert ("the object before the update could not be checked" in outcomes) is looked_at_again
    assert "the object had this finding before the update" in outcomes


RACKS = {f"rack-{number}": "r" for number in range(_MAX_COUNTED_TERMS + 1)}
RACKED = shop("a: n1=stable,stable n2 n4 n5 | b: n3=canary", *OTHERS, **RACKS)


def wide(constraints, terms=0):
    """So many constraints over as many keys, and terms of anti-affinity."""
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "rack"}] * terms}
    written = [f"rack-{number} hard 1 app=web" for number in range(constraints)]
    return workload("Deployment", STABLE, *written, selector=STABLE, affinity={"podAntiAffinity": affinity})


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        pytest.param(wide(_MAX_COUNTED_TERMS), None, id="as many as there may be"),
        pytest.param(wide(_MAX_COUNTED_TERMS + 1), TOO_MANY_COUNTED, id="one too many"),
        pytest.param(wide(10, 6), None, id="with terms, as many as there may be"),
        pytest.param(wide(10, 7), TOO_MANY_COUNTED, id="with terms, one too many"),
    ],
)
def test_a_template_with_more_than_anybody_writes(manifest, reason):
    decision = decide(manifest, policy=replace(EVERYTHING, too_large="allow"), index=RACKED)
    found, missing = of_the_cluster(decision)
    assert missing.get(WIDE) == reason
    assert (WIDE in found) is (reason is None)
    # A command may take its time.
    assert WIDE in {each.finding.rule for each in examined(manifest, EVERYTHING, index=RACKED).findings}


def requesting(resources, amount="1"):
    asked = [
        {"name": "c", "resources": {"requests": {f"example.com/r{number}": amount for number in range(resources)}}}
    ]
    return workload("Deployment", STABLE, *SPREAD, selector=STABLE, containers=asked)


@pytest.mark.parametrize(("resources", "reason"), [(_MAX_RESOURCES, None), (_MAX_RESOURCES + 1, TOO_MANY_RESOURCES)])
def test_a_template_that_asks_for_more_resources_than_anybody_has(resources, reason):
    assert of_the_cluster(decide(requesting(resources), policy=EVERYTHING, index=CLUSTER))[1].get(WIDE) == reason


@pytest.mark.parametrize("amount", ["1", "-1"])
def test_a_request_for_what_nobody_has_leaves_nothing_behind(amount):
    before = set(CLUSTER.nodes.free), set(CLUSTER.nodes.view()._columns)
    decision = decide(requesting(3, amount), policy=EVERYTHING, index=CLUSTER)
    assert "zone-host-ceiling" not in {each.rule for each in decision.not_evaluated}
    assert before[0] == set(CLUSTER.nodes.free)
    assert set(CLUSTER.nodes.view()._columns) <= CLUSTER.nodes.view().keys


def test_many_templates_of_a_few_constraints_each():
    groups = [{"template": template("app=web", "zone hard 1 app=web")} for _ in range(_MAX_COUNTED_TERMS + 1)]
    ray = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "web", "namespace": "shop"}}
    ray["spec"] = {"workerGroupSpecs": groups}
    assert TOO_MANY_COUNTED not in of_the_cluster(decide(ray, policy=EVERYTHING, index=CLUSTER))[1].values()
