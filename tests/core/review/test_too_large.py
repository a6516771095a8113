"""An object larger than anything that people write is no way round a rule on deny; everybody else never hears of it."""

import pytest
from core.rules.shop import deployed, shop
from manifest import FIXED, RECENT, decide, template, workload
from msgspec.structs import replace

from webhook.core.api.well_known import HOSTNAME
from webhook.core.context import Context
from webhook.core.policy.matching import Exemption, Match
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.subject import Subject, placed_constraints
from webhook.core.rules.object_cost import (
    exceeded_constraint_limit,
    exceeded_template_limit,
)
from webhook.core.rules.placement.pod_fits import DO_NOT_FIT
from webhook.core.rules.rule_set import API_RULES, OFFLINE, RULES
from webhook.core.workloads.reading import read_workload

WIDE = "selector-too-wide"
WEIGHT = (
    "this workload's own selector does not match all of the counted pods;"
    " a domain full of their pods accepts no pod of this workload"
)
STRICT = replace(FIXED, ceiling=Mode.DENY, rules={WIDE: Mode.DENY})
CLUSTER = shop("a: n1=stable,stable n2 n4 n5 | b: n3=canary", deployed("canary", "zone hard 2 app=web"))
STABLE = "app=web track=stable"
ADDED = [f"rack-{number} soft 1 app=web" for number in range(16)]
COUNTED = "more than 16 constraints and required pod affinity terms"
TOO_MANY_RESOURCES = "more than 32 resources"
TOO_MANY_NODE_REQUIREMENTS = "more than 128 requirements on nodes"
TOO_MANY_TOLERATIONS = "more than 128 tolerations"
TOO_MANY_LABEL_REQUIREMENTS = "more than 256 labels in selectors"
TOO_MANY_TEMPLATES = "more than 64 pod templates"
TOO_MANY_CONSTRAINTS = "more than 128 constraints"
TOO_MANY_KEYS = "more than 1,024 labels, values and keys in constraints"
DENIAL = f"""\
Deployment shop/web: {COUNTED}: too large for {WIDE} to check; make the object smaller
  1 {WIDE}  spec.template.spec
    {COUNTED}: the rule is on deny and cannot check so many against the cluster, so the object is denied
    fix: remove what you do not need, or ask the admins of evenspread to exempt the object or set tooLarge: allow
  check before pushing: kubectl evenspread check -f FILE"""

BROKEN = f"""\
Deployment shop/web: zone[0] also counts pods of other workloads; narrow it to track=stable unless they are one \
application
  1 {WIDE}  spec.template.spec.topologySpreadConstraints[0].labelSelector
    {WEIGHT}
    fix: labelSelector: {{matchLabels: {{app: web, track: stable}}}}
  check before pushing: kubectl evenspread check -f FILE"""


def text(reason):
    return "" if reason is None else reason.text


def web(*added, kind="Deployment", **more):
    return workload(kind, STABLE, "zone hard 1 app=web", *added, selector=STABLE, **more)


def told(decision):
    return decision.allowed, [each.finding.rule for each in decision.findings if each.finding.rule == WIDE]


def test_sixteen_soft_constraints_do_not_silence_a_rule_on_deny():
    assert told(decide(web(), policy=STRICT, index=CLUSTER)) == (False, [WIDE])
    decision = decide(web(*ADDED), policy=STRICT, index=CLUSTER)
    assert (decision.allowed, decision.message) == (False, DENIAL)
    assert decision.warnings == ()


EXEMPT = Exemption(rule=WIDE, match=Match(name="web"), reason="generated")


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(replace(STRICT, too_large="allow"), id="the policy allows it"),
        pytest.param(replace(STRICT, rules={WIDE: Mode.WARN}), id="the rule warns"),
        pytest.param(replace(STRICT, rules={}), id="the rule is not configured"),
        pytest.param(replace(STRICT, ceiling=Mode.WARN), id="under a ceiling"),
        pytest.param(replace(STRICT, exemptions=(EXEMPT,)), id="the object is exempted"),
    ],
)
def test_where_nothing_is_denied_nobody_hears_of_the_size(policy):
    decision = decide(web(*ADDED), policy=policy, index=CLUSTER)
    assert told(decision) == (True, [])
    assert WIDE in {each.rule for each in decision.not_evaluated}
    assert not [line for line in decision.warnings if "too large" in line]


@pytest.mark.parametrize("given", [pytest.param({"age": 61.0}, id="stale"), pytest.param({"until": 0.0}, id="no time")])
def test_what_is_unknown_of_ordinary_objects_denies_nothing(given):
    assert told(decide(web(), policy=STRICT, index=CLUSTER, **given)) == (True, [])


def test_without_a_cluster_nothing_is_too_large():
    assert told(decide(web(*ADDED), policy=STRICT)) == (True, [])


@pytest.mark.parametrize(
    ("old", "new", "denial"),
    [
        pytest.param(web(*ADDED), web(*ADDED, replicas=8), None, id="it was too large before"),
        pytest.param(web(), web(*ADDED), DENIAL, id="it grew"),
        pytest.param(web(*ADDED), web(), BROKEN, id="it shrank, and breaks the rule"),
    ],
)
def test_updates(old, new, denial):
    decision = decide(new, old, policy=STRICT, index=CLUSTER)
    assert (None if decision.allowed else decision.message) == denial


def test_pods_are_not_denied_by_rules_about_places():
    places = replace(STRICT, rules={"zone-host-ceiling": Mode.DENY})
    spread = ("hostname hard 1 app=web", *ADDED)
    decision = decide(web(*spread), policy=places, index=CLUSTER)
    assert (decision.allowed, decision.message) == (False, DENIAL.replace(WIDE, "zone-host-ceiling"))
    assert decide(web(*spread, kind="Pod"), policy=places, index=CLUSTER).allowed


def labelled(count):
    return {"matchLabels": {f"l{number}": "x" for number in range(count)}}


def apart(count, **more):
    return {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", **more}] * count
            }
        }
    }


def on_nodes(terms, expressions):
    term = {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}] * expressions}
    required = {"nodeSelectorTerms": [term] * terms}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def fields(count):
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}] * count}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    }


def requesting(name, count):
    return {
        name: [{"name": "c", "resources": {"requests": {f"example.com/r{number}": "1" for number in range(count)}}}]
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, "", id="an ordinary one"),
        pytest.param(apart(16), "", id="16 terms"),
        pytest.param(apart(17), COUNTED, id="17 terms"),
        pytest.param(requesting("containers", 32), "", id="32 resources"),
        pytest.param(requesting("containers", 33), TOO_MANY_RESOURCES, id="33 resources"),
        pytest.param(requesting("initContainers", 33), TOO_MANY_RESOURCES, id="33 resources of an init container"),
        pytest.param(
            {"resources": {"limits": dict.fromkeys(map(str, range(33)), "1")}}, TOO_MANY_RESOURCES, id="33 of the pod"
        ),
        pytest.param({"overhead": dict.fromkeys(map(str, range(33)), "1")}, TOO_MANY_RESOURCES, id="33 of overhead"),
        pytest.param({"containers": [{"name": "c"}]}, "", id="a container without resources"),
        pytest.param(on_nodes(12, 10), "", id="12 terms of 10 expressions"),
        pytest.param(on_nodes(300, 10), TOO_MANY_NODE_REQUIREMENTS, id="300 terms of 10 expressions"),
        pytest.param(fields(129), TOO_MANY_NODE_REQUIREMENTS, id="129 names of nodes"),
        pytest.param(
            {"nodeSelector": labelled(129)["matchLabels"]}, TOO_MANY_NODE_REQUIREMENTS, id="129 labels of nodes"
        ),
        pytest.param({"affinity": {"nodeAffinity": {}}}, "", id="no requirement on nodes"),
        pytest.param({"tolerations": [{"key": "a"}] * 128}, "", id="128 tolerations"),
        pytest.param({"tolerations": [{"key": "a"}] * 129}, TOO_MANY_TOLERATIONS, id="129 tolerations"),
        pytest.param(apart(1, labelSelector=labelled(257)), TOO_MANY_LABEL_REQUIREMENTS, id="257 labels in a term"),
        pytest.param(
            apart(2, namespaces=[f"n{number}" for number in range(129)]),
            TOO_MANY_LABEL_REQUIREMENTS,
            id="258 namespaces in terms",
        ),
        pytest.param(
            apart(1, namespaceSelector=labelled(257)), TOO_MANY_LABEL_REQUIREMENTS, id="257 labels of namespaces"
        ),
        pytest.param(
            {"topologySpreadConstraints": [{"topologyKey": "zone", "labelSelector": labelled(257)}]},
            TOO_MANY_LABEL_REQUIREMENTS,
            id="257 labels in a constraint",
        ),
    ],
)
def test_object_cost(spec, expected):
    assert text(exceeded_template_limit(read_workload(workload("Deployment", "app=web", **spec)))) == expected


@pytest.mark.parametrize(("templates", "expected"), [(64, ""), (65, TOO_MANY_TEMPLATES)])
def test_many_templates(templates, expected):
    groups = [{"template": template("app=web", "zone hard 1 app=web")} for _ in range(templates)]
    ray = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "web", "namespace": "shop"}}
    assert text(exceeded_template_limit(read_workload({**ray, "spec": {"workerGroupSpecs": groups}}))) == expected


def constraints(count, **more):
    return {"topologySpreadConstraints": [{"topologyKey": "zone", **more}] * count}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(constraints(128), "", id="128 constraints"),
        pytest.param(constraints(129), TOO_MANY_CONSTRAINTS, id="129 constraints"),
        pytest.param(constraints(2, matchLabelKeys=["a"] * 512), "", id="1,024 keys"),
        pytest.param(constraints(1, matchLabelKeys=["a"] * 1025), TOO_MANY_KEYS, id="1,025 keys"),
        pytest.param(constraints(1, labelSelector=labelled(1025)), TOO_MANY_KEYS, id="1,025 labels"),
        pytest.param(
            constraints(
                1, labelSelector={"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"] * 1024}]}
            ),
            TOO_MANY_KEYS,
            id="1,024 values of one key",
        ),
        pytest.param(constraints(1, labelSelector={"matchExpressions": [{"key": "a"}]}), "", id="no value"),
    ],
)
def test_object_cost_without_a_cluster(spec, expected):
    read = read_workload(workload("Deployment", "app=web", **spec))
    assert text(exceeded_constraint_limit(read.templates[0].pod.pod_spec.constraints)) == expected


NULL = "selector-null"
IMMENSE = f"""\
Deployment shop/web: {TOO_MANY_CONSTRAINTS}: too large for {NULL} to check; make the object smaller
  1 {NULL}  spec.template.spec
    {TOO_MANY_CONSTRAINTS}: the rule is on deny and cannot check so many, so the object is denied
    fix: remove what you do not need, or ask the admins of evenspread to exempt the object or set tooLarge: allow
  check before pushing: kubectl evenspread check -f FILE"""


DENIES_NULL = {rule.id: Mode.DENY if rule.id == NULL else Mode.WARN for rule in RULES}


def test_no_rule_compares_hundreds_of_constraints():
    decision = decide(web(*ADDED * 9), policy=replace(FIXED, ceiling=Mode.DENY, rules=DENIES_NULL))
    assert (decision.allowed, decision.message) == (False, IMMENSE)
    assert {each.rule for each in decision.not_evaluated} == {rule.id for rule in RULES} - OFFLINE - API_RULES
    assert decide(web(*ADDED * 9), policy=replace(FIXED, ceiling=Mode.WARN)).warnings == ()


@pytest.mark.parametrize(("spec", "known"), [({}, True), (on_nodes(300, 10), False)], ids=["ordinary", "too large"])
def test_rules_are_not_given_the_cluster_for_it(spec, known):
    read = read_workload(web(**spec))
    here = Context(policy=STRICT, version=RECENT, index=CLUSTER)
    subject = Subject(workload=read, placed=placed_constraints(read), context=here)
    assert (subject.index is CLUSTER) == known
    assert replace(subject, context=replace(here, offline=True)).index is CLUSTER


@pytest.mark.parametrize("zeros", [0, 5000])
@pytest.mark.parametrize(("key", "allowed"), [("rack", False), ("zone", True)])
def test_a_number_with_more_zeros_than_python_reads_is_no_way_round_either(zeros, key, allowed):
    """Go reads it, so that such a condition on nodes is one like any other; a rule that fails denies nothing."""
    above = {"key": "generation", "operator": "Gt", "values": ["0" * zeros + "1"]}
    terms = [{"matchExpressions": [each]} for each in (above, {"key": HOSTNAME, "operator": "Exists"})]
    asked = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    made = workload("Deployment", STABLE, f"{key} hard 1 {STABLE}", selector=STABLE, affinity={"nodeAffinity": asked})
    decision = decide(made, policy=replace(FIXED, rules={DO_NOT_FIT.id: Mode.DENY}), index=CLUSTER)
    assert decision.allowed is allowed
    assert not [each for each in decision.not_evaluated if each.fault is not None]
