"""Which admission policies a policy becomes. What their expressions mean, the end-to-end tests ask the API server."""

import json

import pytest

from webhook.config import parse_policy
from webhook.core.admission_policies.coverage import Share, coverage
from webhook.core.admission_policies.mutating_policies import mutating_policies
from webhook.core.admission_policies.policies import admission_policies
from webhook.core.admission_policies.policy_objects import STATIC_SUFFIX
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.policy.policy import Mode
from webhook.core.rules.rule_set import BY_ID

TODAY = "2026-11-28"
OLD = KubernetesVersion(1, 33, 0)
DEFAULT = {
    "mode": "inject",
    "defaultConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
}


def policy(**fields):
    written = {"apiVersion": "config.evenspread.io/v1alpha1", "kind": "SpreadPolicy", **fields}
    return parse_policy(json.dumps(written), file="p", today=TODAY).policy


def compiled(version=RECORDED, **fields):
    return [*admission_policies(policy(**fields), version, TODAY)]


def labelled(**selector):
    return {"namespaceSelector": selector}


def rules_of(objects):
    """The rules of each admission policy, by its name."""
    return {
        each["metadata"]["name"]: [rule["message"].split(": ")[0] for rule in each["spec"]["validations"]]
        for each in objects
        if each["kind"] == "ValidatingAdmissionPolicy" and each["spec"]["validations"] != [{"expression": "true"}]
    }


def text_of(objects, name, rule):
    (made,) = (each for each in objects if each["metadata"]["name"] == name and "validations" in each["spec"])
    return next(each["expression"] for each in made["spec"]["validations"] if rule in each["message"])


NAMED = {"match": {"names": ["a"]}}
TOO_LARGE = "the topologySpreadConstraints are too large to be checked"
REFUSED, TYPO = "evenspread/pods-refused", "evenspread/topology-key-typo"
WARNED = [
    *(REFUSED, "evenspread/selector-empty", "evenspread/selector-not-self", "evenspread/match-label-key-absent"),
    *("evenspread/match-label-key-wrong-kind", TYPO),
]


@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        pytest.param(
            {},
            {"evenspread-deny": [TOO_LARGE, REFUSED], "evenspread-warn": WARNED, "evenspread-audit": WARNED},
            id="defaults: the label of a namespace may deny",
        ),
        pytest.param(
            {"namespaceLabel": "none"},
            {"evenspread-warn": WARNED, "evenspread-audit": WARNED},
            id="no namespace may deny",
        ),
        pytest.param(
            {"namespaceLabel": "none", "ceiling": "audit", "namespaces": [NAMED | {"ceiling": "warn"}]},
            {"evenspread-warn": WARNED, "evenspread-audit": WARNED},
            id="one namespace warns",
        ),
        pytest.param({"namespaceLabel": "none", "ceiling": "audit"}, {"evenspread-audit": WARNED}, id="audit"),
        pytest.param({"ceiling": "off", "namespaces": [NAMED | {"ceiling": "deny"}]}, {}, id="off"),
        pytest.param(
            {
                "ceiling": "deny",
                "namespaceLabel": "none",
                "tooLarge": "allow",
                "rules": {"pods-refused": "off", "topology-key-typo": "off"}
                | {"selector-empty": "deny", "spread-required": "deny"},
            },
            {
                "evenspread-deny": ["evenspread/selector-empty", "evenspread/spread-required"],
                "evenspread-warn": [*WARNED[1:-1], "evenspread/spread-required"],
                "evenspread-audit": [*WARNED[1:-1], "evenspread/spread-required"],
            },
            id="modes of rules",
        ),
        pytest.param(
            {"rules": {"spread-required": "warn"}, "namespaceLabel": "none", "ceiling": "audit", "defaults": DEFAULT},
            {"evenspread-audit": [*WARNED, "evenspread/spread-required"]},
            id="no policy injects constraints",
        ),
    ],
)
def test_rules_by_mode(fields, rules):
    assert rules_of(compiled(**fields)) == rules


def test_a_mode_without_rules_replaces_an_older_policy():
    objects = compiled(ceiling="off")
    assert [each["metadata"]["name"] for each in objects[::2]] == [
        *("evenspread-deny", "evenspread-warn", "evenspread-audit"),
    ]
    assert {json.dumps(each["spec"]["matchConditions"]) for each in objects[::2]} == {
        '[{"name": "no-rule-has-this-mode", "expression": "false"}]'
    }


def test_each_policy_has_a_binding_with_its_action():
    bindings = [each for each in compiled() if each["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert [(each["metadata"]["name"], each["spec"]) for each in bindings] == [
        ("evenspread-deny", {"policyName": "evenspread-deny", "validationActions": ["Deny"]}),
        ("evenspread-warn", {"policyName": "evenspread-warn", "validationActions": ["Warn"]}),
        ("evenspread-audit", {"policyName": "evenspread-audit", "validationActions": ["Audit"]}),
    ]


def test_a_policy_has_only_the_variables_of_its_rules():
    (denying, *_) = compiled(rules={"topology-key-typo": "off"})
    names = {each["name"] for each in denying["spec"]["variables"]}
    assert ("refusedAt" in names, "emptyAt" in names) == (True, False)


def test_names_in_a_directory_of_the_api_server():
    audited = policy(namespaceLabel="none", ceiling="audit")
    *_, made, binding = admission_policies(audited, RECORDED, TODAY, suffix=STATIC_SUFFIX)
    assert [each["metadata"]["name"] for each in (made, binding)] == ["evenspread-audit.static.k8s.io"] * 2
    assert binding["spec"]["policyName"] == "evenspread-audit.static.k8s.io"


def test_before_1_34_pods_are_not_refused_for_their_keys():
    assert REFUSED not in rules_of(compiled(OLD))["evenspread-warn"]


@pytest.mark.parametrize(
    ("fields", "namespaces", "ceiling"),
    [
        pytest.param({}, [], "[(variables.label >= 0 ? variables.label : 2)][[0]", id="a label replaces the ceiling"),
        pytest.param(
            {"ceiling": "deny"}, [], "[(variables.label > 3 ? variables.label : 3)][[0]", id="a label raises deny"
        ),
        pytest.param({"namespaceLabel": "raise"}, [], "[(variables.label > 2 ? variables.label : 2)][[0]", id="raise"),
        pytest.param({"namespaceLabel": "none"}, [], "[2][[0]", id="no label"),
        pytest.param(
            {
                "namespaceLabel": "none",
                "namespaces": [
                    {"match": {"names": ["a", "b"], **labelled(matchLabels={"tier": "x"})}, "ceiling": "deny"},
                    {"match": labelled(matchExpressions=[{"key": "t", "operator": "DoesNotExist"}])},
                    {"match": labelled(matchExpressions=[{"key": "t", "operator": "NotIn", "values": ["y"]}])},
                    {"match": labelled(matchExpressions=[{"key": "t", "operator": "Exists"}]), "ceiling": "off"},
                ],
            },
            [
                (
                    'request.namespace in ["a", "b"] && ("tier" in variables.namespaceLabels &&'
                    ' variables.namespaceLabels["tier"] in ["x"])'
                ),
                '!("t" in variables.namespaceLabels)',
                '!("t" in variables.namespaceLabels && variables.namespaceLabels["t"] in ["y"])',
                '("t" in variables.namespaceLabels)',
            ],
            "[3, 2, 0][[0, 1, 1, 2, 1]",
            id="the first matching entry",
        ),
    ],
)
def test_ceilings(fields, namespaces, ceiling):
    made = {each["name"]: each["expression"] for each in compiled(**fields)[2]["spec"]["variables"]}
    assert made["namespaceAt"] == f"[{', '.join([*namespaces, 'true'])}].indexOf(true)"
    assert made["ceiling"] == f"{ceiling}[variables.namespaceAt]]"


# Source: kubernetes pkg/apis/admissionregistration/validation validation.go celReserved.
RESERVED = {
    *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"),
    *("let", "loop", "package", "namespace", "return", "var", "void", "while"),
}


def test_no_variable_has_a_reserved_name():
    """`make policies` compiles the expressions only: the API server checks these names before it."""
    objects = [*compiled(), *mutating_policies(policy(defaults=DEFAULT), RECORDED)]
    names = {each["name"] for made in objects for each in made["spec"].get("variables", ())}
    assert ({"namespaceAt", "chosen"} <= names, names & RESERVED) == (True, set())


JOB = {"namespace": "shop", "kind": "Job", "name": "web"}
EXEMPTION = {"rule": "selector-empty", "reason": "old"}


@pytest.mark.parametrize(
    ("fields", "exempt"),
    [
        pytest.param({"annotations": {"exempt": "none"}}, "false", id="no exemption"),
        pytest.param(
            {},
            '((variables.ceiling < 2 ? variables.ceiling : 2) < 3 && "selector-empty" in variables.exempted)',
            id="authors may silence warnings",
        ),
        pytest.param(
            {"annotations": {"exempt": "denials"}}, '("selector-empty" in variables.exempted)', id="and denials"
        ),
        pytest.param(
            {"annotations": {"exempt": "none"}, "exemptions": [EXEMPTION | {"match": JOB}]},
            "(variables.exempt_selector_empty)",
            id="an exemption of the policy",
        ),
        pytest.param(
            {
                "annotations": {"exempt": "none"},
                "exemptions": [{"rule": "selector-not-self", "reason": "old", "match": JOB}],
            },
            "false",
            id="another rule",
        ),
    ],
)
def test_exemptions(fields, exempt):
    capped = "(variables.ceiling < 2 ? variables.ceiling : 2)"
    expression = text_of(compiled(**fields), "evenspread-warn", "selector-empty")
    assert expression == f"!(({capped} == 2 && !({exempt})) && variables.emptyAt.size() > 0)"


@pytest.mark.parametrize(
    ("exemptions", "condition"),
    [
        pytest.param(
            [EXEMPTION | {"match": JOB, "expires": TODAY}],
            '(request.namespace == "shop" && variables.kind == "Job" && variables.object.metadata.name == "web")',
            id="its last day",
        ),
        pytest.param([EXEMPTION | {"match": JOB, "expires": "2026-11-27"}], "false", id="expired"),
        pytest.param([EXEMPTION | {"match": labelled()}], "(true)", id="every object"),
        pytest.param(
            [EXEMPTION | {"match": {"kind": "Job"}}, EXEMPTION | {"match": {"name": "web"}}],
            '(variables.kind == "Job") || (variables.object.metadata.name == "web")',
            id="two exemptions",
        ),
    ],
)
def test_exempted_objects(exemptions, condition):
    made = compiled(exemptions=exemptions)[2]
    found = next(each for each in made["spec"]["variables"] if each["name"] == "exempt_selector_empty")
    assert found["expression"] == condition


def test_an_update_is_evaluated_if_its_exemption_may_change():
    plain, annotated, labelled_ones = (
        next(each["expression"] for each in made["spec"]["matchConditions"] if each["name"] == "new-or-changed")
        for made in (
            compiled()[0],
            compiled(annotations={"exempt": "denials"})[0],
            compiled(exemptions=[EXEMPTION | {"match": JOB}])[0],
        )
    )
    assert ("evenspread.io/exempt" in plain, "dyn(object).metadata.labels" in plain) == (False, False)
    assert "evenspread.io/exempt" in annotated
    assert "dyn(object).metadata.labels" in labelled_ones


@pytest.mark.parametrize(
    ("rules", "is_bare"),
    [
        pytest.param({}, False, id="only audited, so left out"),
        pytest.param({"topology-key-typo": "warn"}, True, id="configured"),
    ],
)
def test_bare_names(rules, is_bare):
    *_, made, _ = compiled(rules=rules, namespaceLabel="none", ceiling="audit")
    bare = next(each for each in made["spec"]["variables"] if each["name"] == "bare")
    assert ('"az"' in bare["expression"]) is is_bare


def test_an_exempted_finding_is_audited():
    expression = text_of(compiled(annotations={"exempt": "denials"}), "evenspread-audit", "selector-empty")
    capped = "(variables.ceiling < 2 ? variables.ceiling : 2)"
    assert expression == (
        f"!(({capped} == 1 || {capped} > 1 &&"
        ' (("selector-empty" in variables.exempted))) && variables.emptyAt.size() > 0)'
    )


def test_deny_from_raises_the_mode():
    denied = rules_of(compiled(denyFrom="high"))["evenspread-deny"]
    assert denied == [TOO_LARGE, REFUSED, *WARNED[1:3], TYPO]


def test_no_compiled_rule_has_a_lower_mode_on_pods():
    rules = [BY_ID[each.name] for each in coverage(policy(), RECORDED) if each.share is not Share.NONE]
    assert {each.highest_on_pods for each in rules} == {Mode.DENY}


@pytest.mark.parametrize(
    ("rule", "share", "why"),
    [
        pytest.param("selector-empty", "all", "", id="whole"),
        pytest.param(
            "topology-key-typo",
            "part",
            "one wrong letter or a wrong prefix; the labels of your nodes are unknown",
            id="in part",
        ),
        pytest.param("spread-required", "none", "off in the policy", id="off"),
        pytest.param("selector-too-wide", "none", "reads the cluster", id="the cluster"),
        pytest.param("selector-null", "none", "kube-apiserver warns itself", id="Kubernetes' own warning"),
        pytest.param("unknown-field", "none", "only in files: kube-apiserver drops the field", id="files"),
        pytest.param(
            "max-skew",
            "none",
            "kube-apiserver refuses it in built-in kinds; other kinds are not compiled",
            id="Kubernetes' own error",
        ),
    ],
)
def test_coverage(rule, share, why):
    found = {each.name: each for each in coverage(policy(), RECORDED)}
    assert found[rule] == (rule, share, why)


def test_the_kill_switch_is_a_reason():
    found = {each.name: each.why for each in coverage(policy(ceiling="off"), RECORDED)}
    assert found["selector-empty"] == "off in the policy"


def test_coverage_has_every_rule():
    assert [each.name for each in coverage(policy(), RECORDED)] == [*BY_ID]


def test_every_rule_of_the_newest_release_is_compiled_or_has_a_reason():
    assert "not in this release of Kubernetes" not in {each.why for each in coverage(policy(), RECORDED)}


def test_coverage_of_an_old_release():
    found = {each.name: each.why for each in coverage(policy(), OLD)}
    assert found["pods-refused"] == "not in this release of Kubernetes"
