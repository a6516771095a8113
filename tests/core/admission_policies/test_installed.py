"""The policies of an installed chart, from its bindings."""

import json

import pytest
from core.admission_policies.test_policies import TODAY, policy, rules_of

from webhook.core.admission_policies.installed import (
    binding_names,
    installed_policies,
    read_binding,
    warned_by_policies,
)
from webhook.core.api.version import RECORDED

WHOLE = {"selector-empty", "match-label-key-absent", "match-label-key-wrong-kind"}
PART = {"pods-refused", "selector-not-self", "topology-key-typo"}
REQUIRED = {"rules": {"spread-required": "deny"}}
ZONE = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
INJECT = {"mode": "inject", "defaultConstraints": [ZONE]}


def stored(mode="warn", action="Warn", annotations=None, **settings):
    """A binding of the chart as the API server has it."""
    given = {"evenspread.io/admission-policies": json.dumps(settings)} if annotations is None else annotations
    metadata = {"name": f"even-{mode}", "uid": "u-1", "annotations": given, "labels": {"a": "b"}}
    spec = {"policyName": f"even-{mode}", "validationActions": [action], "matchResources": {"objectSelector": {}}}
    return {"kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata, "spec": spec}


def installed(binding, **fields):
    (made,) = installed_policies(policy(**fields), RECORDED, TODAY, [read_binding(binding)])
    return made


def rules(made):
    return {each.removeprefix("evenspread/") for each in rules_of([made]).get(made["metadata"]["name"], ())}


@pytest.mark.parametrize(
    ("binding", "fields", "expected"),
    [
        pytest.param(stored(static="policies"), {}, WHOLE, id="the webhook warns of rules compiled in part"),
        pytest.param(stored(static="both"), {}, WHOLE | PART, id="both warn"),
        pytest.param(stored("audit", "Audit", static="policies"), {}, WHOLE, id="audits"),
        pytest.param(
            stored("deny", "Deny", static="policies"),
            {"rules": dict.fromkeys(WHOLE | PART, "deny"), "tooLarge": "allow"},
            WHOLE | PART,
            id="policies deny all of them",
        ),
        pytest.param(
            stored("deny", "Deny", static="policies"),
            REQUIRED | {"tooLarge": "allow"},
            {"pods-refused", "spread-required"},
            id="no injected constraints",
        ),
        pytest.param(
            stored("deny", "Deny", static="both"),
            REQUIRED | {"tooLarge": "allow", "defaults": INJECT},
            {"pods-refused"},
            id="injected constraints, which a policy does not see",
        ),
        pytest.param(stored(static="policies"), {"ceiling": "off"}, set(), id="off"),
    ],
)
def test_the_rules_of_a_policy(binding, fields, expected):
    assert rules(installed(binding, **fields)) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, WHOLE, id="defaults"),
        pytest.param(REQUIRED, WHOLE | {"spread-required"}, id="a configured rule"),
        pytest.param(REQUIRED | {"defaults": INJECT}, WHOLE, id="injected constraints"),
        pytest.param({"rules": {"selector-empty": "off"}}, WHOLE - {"selector-empty"}, id="a rule that is off"),
    ],
)
def test_what_the_webhook_leaves_to_the_policies(fields, expected):
    assert warned_by_policies(policy(**fields), RECORDED) == expected


def test_a_binding_owns_its_policy():
    made = installed(stored(static="policies"))
    owner = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding"}
    assert made["metadata"] == {
        "name": "even-warn",
        "labels": {"app.kubernetes.io/name": "evenspread", "app.kubernetes.io/component": "admission-policies"},
        "ownerReferences": [owner | {"name": "even-warn", "uid": "u-1"}],
    }


@pytest.mark.parametrize(
    ("settings", "failing", "last"),
    [
        pytest.param({"failurePolicy": "Ignore"}, "Fail", "new-or-changed", id="no further condition"),
        pytest.param(
            {"failurePolicy": "Ignore", "matchConditions": [{"name": "mine", "expression": "request.name != 'a'"}]},
            "Ignore",
            "mine",
            id="a condition fails as in the webhook",
        ),
        pytest.param(
            {"failurePolicy": "Fail", "matchConditions": [{"name": "mine", "expression": "true"}]},
            "Fail",
            "mine",
            id="a closed webhook",
        ),
    ],
)
def test_the_conditions_of_the_webhook(settings, failing, last):
    spec = installed(stored(static="both", **settings))["spec"]
    assert (spec["failurePolicy"], spec["matchConditions"][-1]["name"]) == (failing, last)


def test_names_of_the_bindings():
    assert binding_names("even") == ("even-deny", "even-warn", "even-audit")


@pytest.mark.parametrize(
    ("binding", "fault"),
    [
        pytest.param(stored(annotations={}), None, id="not of the chart"),
        pytest.param(stored(static="all"), "Invalid enum value 'all' - at `$.static`", id="a wrong setting"),
        pytest.param(stored(action="Log", static="both"), "'Log'", id="an action of ours in none of the modes"),
        pytest.param({"metadata": {}}, "Object missing required field `name` - at `$.metadata`", id="no binding"),
    ],
)
def test_other_bindings(binding, fault):
    if fault is None:
        assert read_binding(binding) is None
        return
    with pytest.raises(ValueError, match="of the chart is invalid") as raised:
        read_binding(binding)
    assert str(raised.value) == f"a ValidatingAdmissionPolicyBinding of the chart is invalid: {fault}"
