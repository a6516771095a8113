"""Objects that cost much beside the cluster: judged elsewhere if they can be, else by everything but the cluster."""

import time

import pytest
from build import cluster
from core.rules.shop import deployed, shop
from manifest import FIXED, RECENT, TODAY, ending_after, request, workload
from msgspec.structs import replace

from webhook.core.budget import Budget, Missing
from webhook.core.context import Context
from webhook.core.policy.policy import Mode
from webhook.core.review.review import review

BUSY, CROWDED, TOO_COSTLY = Missing.BUSY.value, Missing.CROWDED.value, Missing.TOO_COSTLY.value
SEARCH = Missing.NEEDS_SEARCH.value
WIDE, EMPTY = "selector-too-wide", "selector-empty"
STRICT = replace(FIXED, ceiling=Mode.DENY, rules={WIDE: Mode.DENY, EMPTY: Mode.DENY})
MORE = " ".join(f"m{number}" for number in range(60))
CLUSTER = shop(f"a: n1=stable,stable n2 n4 n5 {MORE} | b: n3=canary", deployed("canary", "zone hard 2 app=web"))
STABLE = "app=web track=stable"
REQUIREMENT = {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["1"]}]}
ANY = {"matchExpressions": [{"key": "size", "operator": "DoesNotExist"}]}
LARGE = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [ANY, *[REQUIREMENT] * 120]}
        }
    }
}


def web(*added, **more):
    return workload("Deployment", STABLE, "zone hard 1 app=web", *added, selector=STABLE, **more)


WEB, COSTLY = web(), web(**LARGE)
RIGHT = workload("Deployment", STABLE, "zone hard 1 track=stable", selector=STABLE)
RIGHT_COSTLY = workload("Deployment", STABLE, "zone hard 1 track=stable", selector=STABLE, **LARGE)


def reviewed(new, old=None, *, policy=STRICT, cluster=CLUSTER, unjudged=None, skipped_rules=frozenset(), **given):
    budget = Budget(unjudged=Missing(unjudged) if unjudged else None, **given)
    here = Context(policy=policy, version=RECENT, now=TODAY, index=cluster, budget=budget, skipped_rules=skipped_rules)
    return review(request(new, old), here)


def told(decision):
    """Whether it is allowed, which of the rules on deny spoke, and what the one about the cluster lacked."""
    missing = {each.rule: each.missing for each in decision.not_evaluated}
    return decision.allowed, {each.finding.rule for each in decision.findings} & {WIDE, EMPTY}, missing.get(WIDE, "")


@pytest.mark.parametrize(
    ("new", "old", "costly"),
    [
        pytest.param(COSTLY, None, True, id="a costly object"),
        pytest.param(WEB, None, False, id="an ordinary one"),
        pytest.param(WEB, COSTLY, True, id="it was costly before"),
        pytest.param(web("zone soft 1 app=web", **LARGE), None, True, id="two constraints"),
        pytest.param(workload("Deployment", STABLE, selector=STABLE, **LARGE), None, False, id="no constraint"),
        pytest.param(
            web(*[f"r-{n} soft 1 app=web" for n in range(16)], **LARGE), None, False, id="not looked at anyway"
        ),
    ],
)
def test_who_can_have_it_judged_elsewhere_is_told(new, old, costly):
    decision = reviewed(new, old, may_search=False)
    assert decision.costly == costly
    assert not reviewed(new, old).costly
    assert not reviewed(new, old, may_search=False, cluster=None).costly


def test_elsewhere_the_answer_is_the_same():
    assert told(reviewed(COSTLY)) == told(reviewed(WEB)) == (False, {WIDE}, "")


@pytest.mark.parametrize("reason", [BUSY, TOO_COSTLY])
def test_where_nobody_looks_a_rule_on_deny_says_so(reason):
    decision = reviewed(COSTLY, unjudged=reason)
    assert told(decision) == (False, {WIDE}, reason)
    assert decision.message.splitlines() == [
        f"Deployment shop/web: {reason}; make the object smaller, or try again",
        f"  1 {WIDE}  spec.template.spec",
        f"    {reason}: the rule is on deny and cannot check an object of this size now, so the object is denied",
        "    fix: remove constraints, terms or requirements you do not need, or try again later",
        "  check before pushing: kubectl evenspread check -f FILE",
    ]


def test_rules_that_need_no_cluster_answer():
    decision = reviewed(web("hostname hard 1 {}", **LARGE), policy=replace(STRICT, too_large="allow"), unjudged=BUSY)
    assert told(decision) == (False, {EMPTY}, BUSY)


def test_where_the_policy_allows_it_nothing_is_denied():
    assert told(reviewed(COSTLY, policy=replace(STRICT, too_large="allow"), unjudged=BUSY)) == (True, set(), BUSY)


@pytest.mark.parametrize(
    ("new", "old", "allowed"),
    [
        pytest.param(COSTLY, None, False, id="a costly object with a fault"),
        pytest.param(RIGHT_COSTLY, None, True, id="one without"),
        pytest.param(web("hostname hard 1 {}", **LARGE), None, False, id="a rule that needs no cluster denies it"),
        pytest.param(WEB, None, False, id="an ordinary one is looked at"),
        pytest.param(WEB, COSTLY, True, id="the costly one before had it too"),
        pytest.param(COSTLY, RIGHT_COSTLY, False, id="the costly one before had no fault"),
        pytest.param(RIGHT_COSTLY, COSTLY, True, id="the fault is mended"),
    ],
)
def test_where_others_took_the_time_rules_look_at_the_cluster_without_a_search(new, old, allowed):
    decision = reviewed(new, old, unjudged=CROWDED)
    assert decision.allowed is allowed
    unsought = allowed and any(each.missing.endswith(SEARCH) for each in decision.not_evaluated)
    assert (f"evenspread: the object was not fully checked: {CROWDED}" in decision.warnings) is unsought


def test_an_object_that_takes_too_long_then_is_denied_all_the_same():
    assert told(reviewed(COSTLY, until=0.0, unjudged=CROWDED)) == (False, {WIDE}, TOO_COSTLY)


SCALED = {**COSTLY, "spec": {**COSTLY["spec"], "replicas": 9}}
COSTLY_TOO = web("hostname soft 1 track=stable", **LARGE)


@pytest.mark.parametrize("reason", [BUSY, TOO_COSTLY])
@pytest.mark.parametrize(
    ("new", "old", "allowed"),
    [
        pytest.param(COSTLY, COSTLY, True, id="nothing of it has changed"),
        pytest.param(SCALED, COSTLY, True, id="more pods"),
        pytest.param(COSTLY, RIGHT, False, id="an ordinary one before"),
        pytest.param(WEB, COSTLY, False, id="an ordinary one now"),
        pytest.param(COSTLY, COSTLY_TOO, False, id="another one that is costly"),
    ],
)
def test_an_old_object_that_nobody_looked_at_may_have_had_only_what_it_said_itself(new, old, allowed, reason):
    """Else an author keeps the processes busy, and replaces a costly object without a fault."""
    assert told(reviewed(new, old, unjudged=reason))[0] is allowed
    assert told(reviewed(new, old, unjudged=reason, policy=replace(STRICT, too_large="allow")))[0]


@pytest.mark.slow
def test_time_that_the_new_object_took_is_no_way_round_either():
    """It is looked at first; the old one is ordinary, and no time is left for it."""
    worse = web("hostname hard 1 app=web", **LARGE)
    denied = set()
    for looks in range(2, 160):
        denied.add(told(reviewed(worse, RIGHT, until=1.0, clock=ending_after(looks)))[0])
    assert denied == {False}


def test_what_is_ordinary_is_looked_at_whoever_is_busy():
    assert told(reviewed(WEB, unjudged=BUSY)) == (False, {WIDE}, "")


def test_time_that_ran_out_is_no_way_round_a_rule_on_deny():
    assert told(reviewed(COSTLY, until=0.0)) == (False, {WIDE}, TOO_COSTLY)
    assert told(reviewed(WEB, until=0.0)) == (True, set(), "no time left")


@pytest.mark.parametrize("written", ["1e999999999", "9" * 900 + "e2147483647", "1E99999999999"])
def test_a_number_that_no_computer_can_write_out_takes_no_time(written):
    """Of a custom resource nobody has checked it; the API server stalls on a pod that has it."""
    container = {"name": "c", "resources": {"requests": {"cpu": written}, "limits": {"memory": written}}}
    began = time.process_time()
    assert reviewed(workload("Rollout", STABLE, "zone hard 1 track=stable", containers=[container])).allowed
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(("replicas", "found"), [(4_000, ["audit"]), (6, [])])
@pytest.mark.parametrize("of_hosts", [1, 2])
def test_replicas_without_end_take_no_time(of_hosts, replicas, found):
    """What is in their way is asked by placing them where nothing else limits them, one after the other."""
    constraints = "zone hard 1 app=web", f"hostname hard {of_hosts} app=web"
    made = workload("Deployment", "app=web", *constraints, selector="app=web", replicas=replicas)
    began = time.process_time()
    decision = reviewed(made, cluster=cluster("a: a0 a1 | b: b0 b1"), may_search=False)
    assert time.process_time() - began < 0.5
    assert not decision.costly
    assert [str(each.mode) for each in decision.findings if each.finding.rule == "replicas-do-not-fit"] == found


MANY_LABELS = " ".join(f"l{number}=x" for number in range(1000))


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(web(volumes=[{"name": f"v{each}", "emptyDir": {}} for each in range(1000)]), id="volumes"),
        pytest.param(
            workload("Deployment", f"{STABLE} {MANY_LABELS}", "zone hard 1 app=web", selector=STABLE), id="labels"
        ),
        pytest.param(
            web(
                affinity={
                    "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": {}}] * 1500}
                }
            ),
            id="preferred terms",
        ),
    ],
)
def test_what_costs_as_much_beside_few_nodes_is_costly_there(made):
    """So that time which runs out is no way round a rule on deny: tens of thousands take half a second."""
    assert reviewed(made, may_search=False).costly
    assert told(reviewed(made, unjudged=TOO_COSTLY)) == (False, {WIDE}, TOO_COSTLY)
    assert told(reviewed(made)) == (False, {WIDE}, "")


@pytest.mark.parametrize(("templates", "costly"), [(64, False), (1000, True)])
def test_thousands_of_templates_without_constraints_are_costly(templates, costly):
    spec = {"workerGroupSpecs": [{"template": {"spec": {"containers": []}}} for _ in range(templates)]}
    made = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "ray"}, "spec": spec}
    assert reviewed(made, may_search=False).costly is costly
    assert reviewed(made).allowed
