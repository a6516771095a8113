"""A rule that raises takes no other rule's answer with it."""

import pytest
from core.rules.shop import deployed, shop
from faults import Raising, unfixable
from manifest import DENY, constraint, decide, examined, headline, workload
from msgspec.structs import replace

from webhook.core.api.version import RECORDED
from webhook.core.budget import Missing
from webhook.core.context import Context
from webhook.core.policy.policy import Mode
from webhook.core.rules import rule_evaluation
from webhook.core.rules.frame.rule import Finding, NotEvaluated, Rule, Severity, guarded
from webhook.core.rules.frame.subject import Subject, placed_constraints
from webhook.core.rules.rule_evaluation import _FAMILIES, _families, evaluate, noted
from webhook.core.rules.rule_set import OFFLINE, RULES

ONE, OTHER = (
    Rule(id=id_, title="", severity=Severity.LOW, mode=Mode.WARN, why="") for id_ in ("selector-null", "selector-empty")
)
BOOM = ValueError("boom")
FIRST = Finding(rule="selector-null", path="spec", summary="first")


def fine(*_):
    yield FIRST


def raising(*_):
    yield FIRST
    raise BOOM


def at_once(*_):
    raise BOOM


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        pytest.param(fine, [FIRST], id="one that answers"),
        pytest.param(
            raising, [FIRST, NotEvaluated(ONE.id, Missing.RULE_FAILED.reason, BOOM)], id="what it said before stays"
        ),
        pytest.param(
            at_once,
            [NotEvaluated(ONE.id, Missing.RULE_FAILED.reason, BOOM)],
            id="one that raises before its first answer",
        ),
    ],
)
def test_what_a_rule_raises_is_that_it_was_not_evaluated(ask, expected):
    assert guarded((ONE,), ask) == expected


def test_other_families_answer(monkeypatch):
    found = workload("Deployment", "app=web", {"maxSkew": 0, "topologyKey": "x", "whenUnsatisfiable": "DoNotSchedule"})
    subject = subject_of(found)
    whole = evaluate(subject)
    families = (*_families((replace(OTHER, evaluate=at_once),)), *_FAMILIES)
    monkeypatch.setattr(rule_evaluation, "_families_without", lambda _skipped: (families, families))
    broken = evaluate(subject)
    assert broken.findings == whole.findings
    assert broken.missing == (NotEvaluated(OTHER.id, Missing.RULE_FAILED.reason, BOOM), *whole.missing)


def subject_of(manifest):
    known = examined(manifest).workload
    return Subject(workload=known, placed=placed_constraints(known), context=Context(policy=DENY, version=RECORDED))


# The selector counts another workload's pods, and the second constraint is refused.
SHOP = shop("a: n1=cart,pay | b: n2=pay", deployed("pay"))
DENIED = ("zone soft 1 part=shop", "hostname hard 0 app=cart")
CART = workload("Deployment", "app=cart part=shop", *DENIED, selector="app=cart", meta={"name": "cart"})
ZERO = (
    "Deployment shop/web: "
    "spec.template.spec.topologySpreadConstraints[1].maxSkew: Invalid value: 0: must be greater than zero"
)
WRONG = replace(DENY, messages=Raising())


def failed(found):
    return {each.rule for each in found.not_evaluated if each.fault is not None}


def test_a_denial_stays_a_denial():
    assert {"selector-too-wide"} <= {each.finding.rule for each in examined(CART, index=SHOP).findings}
    decision = decide(CART, policy=WRONG, index=SHOP)
    assert headline(decision) == ZERO
    assert failed(decision) == {"selector-too-wide"}


def test_a_fault_on_the_old_object_excuses_nothing_in_the_new_one():
    cart = workload("Deployment", "app=cart part=shop", DENIED[0], selector="app=cart", meta={"name": "cart"})
    denying = replace(DENY, rules={"selector-too-wide": Mode.DENY})

    def waived(policy, old):
        decision = decide(cart, old, policy=policy, index=SHOP)
        return decision.allowed, [each.waived for each in decision.findings if each.finding.rule == "selector-too-wide"]

    narrow = workload("Deployment", "app=cart part=shop", "zone soft 1 app=cart", selector="app=cart")
    assert waived(denying, narrow) == (False, [""])
    more = {**cart, "spec": {**cart["spec"], "replicas": 9}}
    assert waived(denying, more) == (True, ["the object had this finding before the update"])

    def once():
        """The policy for the new object, which is looked at first, and for no other."""
        return replace(denying, messages=Raising(readable=1))

    assert waived(once(), more) == (False, [""]), "its author may have made the rule fail"
    assert waived(once(), cart) == (True, ["the object had this finding before the update"]), (
        "rules cannot tell them apart"
    )


ASKED = [rule for rule in RULES if rule.id not in OFFLINE]
FAULTY, FAULTLESS = {"labels": {"boom": "x"}}, {"labels": {"boom": "no"}}
OLD, NEW = ("zone soft 1 app=cart", "hostname soft 1 app=cart"), ("zone soft 2 app=cart", "hostname soft 1 app=cart")


def rollout(meta, constraints=NEW, kind="Rollout"):
    """kube-apiserver looks at no Rollout: every rule counts."""
    return workload(kind, "app=cart", *constraints, selector="app=cart", meta={"name": "cart", **meta})


def raise_for(monkeypatch, rule):
    """From now on this rule, and those that are asked with it, raise for objects with the label."""
    families = _families(RULES)

    def failing(ask):
        def asked(subject):
            if (subject.workload.meta.labels or {}).get("boom") == "x":
                raise BOOM
            return ask(subject)

        return asked

    wrapped = tuple(each._replace(evaluate=failing(each.evaluate)) if rule in each.rules else each for each in families)
    monkeypatch.setattr(rule_evaluation, "_families_without", lambda _skipped: (wrapped, wrapped))


@pytest.mark.parametrize("rule", ASKED, ids=lambda rule: rule.id)
@pytest.mark.parametrize(
    ("new", "old", "policy", "denied"),
    [
        pytest.param(rollout(FAULTY), None, {}, True, id="created"),
        pytest.param(rollout(FAULTLESS), None, {}, False, id="created without"),
        pytest.param(rollout(FAULTY), rollout(FAULTLESS, OLD), {}, True, id="the new one"),
        pytest.param(rollout(FAULTLESS), rollout(FAULTY, OLD), {}, False, id="the old one, and nothing is wrong"),
        pytest.param(rollout(FAULTY), rollout(FAULTY, OLD), {}, True, id="both, and it is changed"),
        pytest.param(rollout(FAULTY), rollout(FAULTY), {}, False, id="both, and nothing is changed"),
        pytest.param(rollout(FAULTY), None, {"too_large": "allow"}, False, id="the policy allows it"),
        pytest.param(rollout(FAULTY), None, {"ceiling": Mode.WARN}, False, id="under a ceiling"),
        pytest.param(rollout(FAULTY, kind="Pod"), None, {}, None, id="a pod"),
    ],
)
def test_each_rule_on_deny_that_fails(  # noqa: PLR0917 a table
    monkeypatch, rule, new, old, policy, denied
):
    raise_for(monkeypatch, rule)
    policy = replace(DENY, rules={each.id: Mode.DENY if each is rule else Mode.AUDIT for each in RULES}, **policy)
    decision = decide(new, old, policy=policy, index=SHOP)
    if denied is None:  # its places are no fault of a pod, and its types are kube-apiserver's
        denied = rule.highest_on_pods is Mode.DENY and not rule.of_api
    assert decision.allowed is not denied
    assert rule.id in failed(decision) or new["metadata"].get("labels", {}).get("boom") == "no"
    assert decision.warnings == ()
    if denied:
        assert headline(decision) == (
            f"{new['kind']} shop/web: {rule.id} failed on this object because of a bug in evenspread; report the bug"
        )


SKEW = "spec.template.spec.topologySpreadConstraints[1].maxSkew"
DENIALS = {
    "max-skew": f"Deployment shop/web: {SKEW}: Invalid value: 0: must be greater than zero",
    "selector-too-wide": "Deployment shop/web: zone[0] also counts pods of other workloads; narrow it to app=cart",
}


def test_each_rule_that_fails_on_the_old_object_alone(monkeypatch):
    """Whatever is found in the new object is denied, also where only the label and the replicas are new."""
    cart = {**CART, "metadata": {**CART["metadata"], **FAULTLESS}}
    found = {each.finding.rule for each in examined(cart, index=SHOP).findings}
    assert {"max-skew", "selector-too-wide"} <= found
    for rule in ASKED:
        if rule.id not in found:
            continue
        policy = replace(DENY, rules={each.id: Mode.DENY if each is rule else Mode.AUDIT for each in RULES})
        same = {**cart, "metadata": {**CART["metadata"], "labels": {"boom": "y"}}}
        assert decide(cart, same, policy=policy, index=SHOP).allowed, "the old object had it"
        old = {**cart, "metadata": {**CART["metadata"], **FAULTY}, "spec": {**cart["spec"], "replicas": 9}}
        with monkeypatch.context() as patched:
            raise_for(patched, rule)
            assert headline(decide(cart, old, policy=policy, index=SHOP)) == DENIALS[rule.id]


WARNING = replace(DENY, rules={rule.id: Mode.WARN for rule in RULES})
REVIEWER = "system:serviceaccount:kube-system:replicaset-controller"


@pytest.mark.parametrize("broken", ["_evaluated", "read_within_limit", "why_unexamined", "judge_old"])
@pytest.mark.parametrize(
    ("new", "old", "more", "denied"),
    [
        pytest.param(rollout({}), None, {}, True, id="created"),
        pytest.param(rollout({}), rollout({}, OLD), {}, True, id="changed"),
        pytest.param(rollout({}), rollout(FAULTY), {}, False, id="its metadata changed"),
        pytest.param(rollout({}), None, {"user": REVIEWER}, False, id="made by a controller"),
        pytest.param(rollout({}), None, {"policy": replace(DENY, too_large="allow")}, False, id="the policy allows it"),
        pytest.param(rollout({}), None, {"policy": replace(DENY, ceiling=Mode.WARN)}, False, id="under a ceiling"),
        pytest.param(rollout({}), None, {"policy": WARNING}, False, id="no rule is on deny"),
    ],
)
def test_a_review_that_raises_outside_its_rules(  # noqa: PLR0917 a table
    monkeypatch, broken, new, old, more, denied
):
    if broken != "judge_old":
        monkeypatch.setattr(f"webhook.core.review.review.{broken}", at_once)
    elif old is None:
        return
    else:
        new = {**new, "spec": CART["spec"]} if denied else new
        monkeypatch.setattr("webhook.core.review.review._old_object", at_once)
    decision = decide(new, old, index=SHOP, **{"policy": DENY, **more})
    assert decision.allowed is not denied
    if broken != "judge_old" or denied:
        assert decision.fault is BOOM


def test_a_dry_run_that_raises_is_a_rule_that_raises():
    pod = workload("Pod", "app=cart part=shop", "zone hard 1 part=shop", meta={"name": "cart-x"})
    crowded = shop("a: n1=cart,pay | ~b: ~n2", deployed("pay"))
    assert "replicas-do-not-fit" in {each.finding.rule for each in examined(pod, index=crowded).findings}
    assert "replicas-do-not-fit" in failed(examined(pod, WRONG, index=crowded))


def test_a_fix_that_raises_is_a_fault_of_its_rule_and_the_denial_stays(monkeypatch):
    whole = decide(CART, policy=DENY, index=SHOP)
    unfixable(monkeypatch)
    broken = decide(CART, policy=DENY, index=SHOP)
    assert (headline(whole), headline(broken)) == (ZERO, ZERO)
    assert [each.finding.summary for each in broken.findings] == [each.finding.summary for each in whole.findings]
    assert (failed(whole), failed(broken)) == (set(), {"max-skew"})
    # Fixes of what only warns are not tried at admission, where nobody sees them.
    edited = {each.finding.rule: each.mode for each in whole.findings if each.finding.edits}
    assert {rule for rule, mode in edited.items() if mode is Mode.DENY} == failed(broken)
    assert not any(each.finding.edits for each in broken.findings if each.mode is Mode.DENY)


def test_a_fix_of_the_old_object_that_would_raise_waives_nothing(monkeypatch):
    unfixable(monkeypatch)
    old = workload("Deployment", "app=cart part=shop", "zone hard 0 part=shop", selector="app=cart")
    new = workload("Deployment", "app=cart part=shop", "zone hard 0 part=shop", "hostname hard 0 app=cart")
    decision = decide(new, old, policy=DENY)
    assert headline(decision) == ZERO
    assert {"", "the object had this finding before the update"} == {
        each.waived for each in decision.findings if each.finding.rule == "max-skew"
    }


def test_what_a_rule_raised_outweighs_what_it_lacked():
    lacking, raised = (
        NotEvaluated(ONE.id, Missing.NO_CLUSTER.reason),
        NotEvaluated(ONE.id, Missing.RULE_FAILED.reason, BOOM),
    )
    other = NotEvaluated(OTHER.id, Missing.NO_CLUSTER.reason)
    assert noted((lacking, other, raised, lacking)) == (raised, other)
    assert noted((raised, NotEvaluated(ONE.id, Missing.RULE_FAILED.reason, BOOM))) == (raised,)


def test_unknown_fields_that_cannot_be_looked_at_are_a_rule_that_raises(monkeypatch):
    manifest = workload("Deployment", "app=web", {**constraint("zone hard 0 app=web"), "maxskew": 1})
    assert "unknown-field" in {each.finding.rule for each in examined(manifest).findings}
    monkeypatch.setattr("webhook.core.rules.constraint.unknown_fields.intended_field", at_once)
    found = examined(manifest)
    assert "max-skew" in {each.finding.rule for each in found.findings}
    assert failed(found) == {"unknown-field"}
