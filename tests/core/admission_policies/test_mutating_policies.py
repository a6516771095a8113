"""Which defaults become a mutating policy. The end-to-end tests compare its pods with those of the webhook."""

import json

import pytest

from webhook.config import parse_policy
from webhook.core.admission_policies.coverage import defaults_coverage
from webhook.core.admission_policies.default_sets import default_sets
from webhook.core.admission_policies.mutating_policies import mutating_policies
from webhook.core.admission_policies.policy_objects import STATIC_SUFFIX
from webhook.core.api.version import RECORDED, parse_version
from webhook.core.policy.defaults import Defaults

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
ZONES = {"domains": {ZONE: ["a", "b", "c"]}}
SOFT = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
HARD = SOFT | {"whenUnsatisfiable": "DoNotSchedule"}
WHEN_3 = HARD | {"hardWhenDomains": 3}
SELECTS_NODES = "hardWhenDomains: pods with a node selector or node affinity are left alone"
NO_NODES = f"hardWhenDomains: nodes are unknown, so list 3 values of {ZONE} in domains"
TOO_MANY = "more than 64 constraints and matchLabelKeys: kube-apiserver limits the cost"
NO_KARPENTER = f"{HOST}: nodes of Karpenter are unknown, so set acceptNodeGrowth: true"


def policy(*constraints, fields=None, **defaults):
    written = {"mode": "inject", "defaultConstraints": [*constraints], **defaults}
    made = {"apiVersion": "config.evenspread.io/v1alpha1", "kind": "SpreadPolicy", "defaults": written}
    return parse_policy(json.dumps(made | (fields or {})), file="p", today="2026-11-28").policy


def override(name, *constraints, **fields):
    return {"name": name, "defaultConstraints": [*constraints], **fields}


def compiled(*arguments, version=RECORDED, suffix="", **defaults):
    return [*mutating_policies(policy(*arguments, **defaults), version, suffix=suffix)]


def variables(*arguments, **defaults):
    (made, _) = compiled(*arguments, **defaults)
    return {each["name"]: each["expression"] for each in made["spec"]["variables"]}


@pytest.mark.parametrize(
    ("written", "covered"),
    [
        pytest.param(policy(SOFT), [("defaultConstraints", "all", "")], id="a soft zone constraint"),
        pytest.param(policy(HARD), [("defaultConstraints", "all", "")], id="a hard one"),
        pytest.param(
            policy(SOFT, mode="observe"), [("defaultConstraints", "none", "defaults.mode is observe")], id="mode"
        ),
        pytest.param(policy(WHEN_3), [("defaultConstraints", "none", NO_NODES)], id="unknown domains"),
        pytest.param(
            policy(WHEN_3, fields={"domains": {ZONE: ["a", "b", "b"]}}),
            [("defaultConstraints", "none", NO_NODES)],
            id="too few domains",
        ),
        pytest.param(
            policy(WHEN_3, fields=ZONES), [("defaultConstraints", "part", SELECTS_NODES)], id="enough domains"
        ),
        pytest.param(
            policy(WHEN_3 | {"nodeAffinityPolicy": "Ignore"}, fields=ZONES),
            [("defaultConstraints", "all", "")],
            id="enough domains, for pods that select nodes too",
        ),
        pytest.param(
            policy(SOFT, SOFT | {"topologyKey": HOST}),
            [("defaultConstraints", "none", NO_KARPENTER)],
            id="Karpenter could add a node for each pod",
        ),
        pytest.param(
            policy(WHEN_3, SOFT | {"topologyKey": HOST}),
            [("defaultConstraints", "none", f"{NO_NODES}; {NO_KARPENTER}")],
            id="every reason",
        ),
        pytest.param(
            policy(SOFT, SOFT | {"topologyKey": HOST}, acceptNodeGrowth=True),
            [("defaultConstraints", "all", "")],
            id="nodes may grow",
        ),
        pytest.param(
            policy(SOFT | {"matchLabelKeys": [f"k{number}" for number in range(63)]}),
            [("defaultConstraints", "all", "")],
            id="the most matchLabelKeys",
        ),
        pytest.param(
            policy(SOFT | {"matchLabelKeys": [f"k{number}" for number in range(63)]}, HARD),
            [("defaultConstraints", "none", TOO_MANY)],
            id="too many constraints and matchLabelKeys",
        ),
        pytest.param(
            policy(defaultingType="System"), [("defaultConstraints", "none", NO_KARPENTER)], id="the scheduler's own"
        ),
        pytest.param(
            policy(SOFT, overrides=[override("none"), override("many", HARD, minReplicas=3), override("when", WHEN_3)]),
            [
                ("overrides: none", "all", ""),
                ("overrides: many", "none", "minReplicas: replicas and autoscalers are unknown"),
                ("overrides: when", "none", NO_NODES),
                ("defaultConstraints", "all", ""),
            ],
            id="overrides",
        ),
    ],
)
def test_what_is_compiled(written, covered):
    assert [*defaults_coverage(written)][: len(covered)] == covered


@pytest.mark.parametrize(
    ("defaults", "rows"),
    [
        pytest.param({}, ["owners", "one-replica", "evenspread.io/skip", "fallback"], id="defaults"),
        pytest.param(
            {"fallback": "off", "fillNullSelector": True},
            ["owners", "one-replica", "evenspread.io/skip", "fillNullSelector"],
            id="other settings",
        ),
    ],
)
def test_the_other_settings_have_a_row(defaults, rows):
    assert [each.name for each in defaults_coverage(policy(SOFT, **defaults))][1:] == rows


def test_each_field_of_defaults_is_compiled_or_has_a_row():
    compiled_fields = {"mode", "defaulting_type", "default_constraints", "overrides", "match_label_keys"}
    with_a_row = {"fill_null_selector", "owners", "fallback", "accept_node_growth"}
    assert {*Defaults.__struct_fields__} == compiled_fields | with_a_row


def test_a_constraint_with_enough_domains_is_hard():
    (given,) = default_sets(policy(WHEN_3 | {"minDomains": 2}, fields=ZONES))
    assert [(each.when_unsatisfiable, each.min_domains) for each in given.constraints] == [("DoNotSchedule", 2)]


@pytest.mark.parametrize(
    ("version", "api"),
    [
        pytest.param("1.34", "v1beta1", id="the first release"),
        pytest.param("1.35", "v1beta1", id="the last with beta only"),
        pytest.param("1.36", "v1", id="the first stable release"),
    ],
)
def test_the_version_of_the_objects(version, api):
    objects = compiled(SOFT, version=parse_version(version))
    assert {each["apiVersion"] for each in objects} == {f"admissionregistration.k8s.io/{api}"}


def test_names_in_a_directory_of_the_api_server():
    made, binding = compiled(SOFT, suffix=STATIC_SUFFIX)
    assert [each["metadata"]["name"] for each in (made, binding)] == ["evenspread-defaults.static.k8s.io"] * 2
    assert binding["spec"] == {"policyName": "evenspread-defaults.static.k8s.io"}


def test_a_failure_admits_the_pod_without_defaults():
    made, _ = compiled(SOFT)
    assert (made["spec"]["failurePolicy"], made["spec"]["reinvocationPolicy"]) == ("Ignore", "Never")


def test_conditions():
    made, _ = compiled(SOFT)
    assert len(made["spec"]["matchConditions"]) == 8


def test_nothing_is_compiled():
    """The object replaces an older policy, so it has the fields that the API requires, and no others."""
    (made, _), (full, _) = compiled(WHEN_3), compiled(SOFT)
    assert made["spec"]["matchConditions"] == [{"name": "no-default-is-compiled", "expression": "false"}]
    assert made["spec"].keys() == full["spec"].keys() - {"variables"}
    assert "variables." not in json.dumps(made["spec"])


def test_the_first_matching_set_is_chosen():
    calm = {"namespaceSelector": {"matchLabels": {"calm": "yes"}}, "podSelector": {"matchLabels": {"app": "web"}}}
    namespaced = '("calm" in variables.namespaceLabels && variables.namespaceLabels["calm"] in ["yes"])'
    labelled = '("app" in variables.labels && variables.labels["app"] in ["web"])'
    chosen = variables(SOFT, overrides=[override("calm", **calm)])["chosen"]
    assert chosen == f"[{namespaced} && {labelled}, true].indexOf(true)"


@pytest.mark.parametrize(
    ("defaults", "keys"),
    [
        pytest.param({}, '["a"] + [variables.revision].filter(k, !(k in ["a"]))', id="auto: the revision too"),
        pytest.param({"matchLabelKeys": "off"}, "[]", id="off"),
    ],
)
def test_match_label_keys(defaults, keys):
    own = SOFT if defaults else SOFT | {"matchLabelKeys": ["a"]}
    assert variables(own, **defaults)["keys0"] == keys


def test_sets_share_the_variables_of_their_selectors():
    names = variables(SOFT, SOFT | {"topologyKey": "rack"}, overrides=[override("b", HARD | {"matchLabelKeys": ["b"]})])
    assert [name for name in names if name.startswith("selector")] == ["selector0", "selector1"]
    assert [name for name in names if name.startswith("constraints")] == ["constraints0", "constraints1", "constraints"]


def test_an_override_without_constraints_needs_no_variable():
    given = variables(SOFT, overrides=[override("none")])
    second = "variables.number == 1 ? dyn(variables.constraints1) : dyn([])"
    assert ("constraints0" in given, given["constraints"]) == (False, f"[dyn([]), {second}][variables.number]")


def test_overrides_with_equal_constraints_share_their_variables():
    given = variables(SOFT, overrides=[override("a", HARD), override("b", SOFT), override("c", HARD)])
    assert (given["number"], "constraints2" in given) == ("[0, 1, 0, 1][variables.chosen]", False)
    assert [f'"override":"{name}"' in given["start"].replace("\\", "") for name in "abc"] == [True] * 3
    assert given["record0"].startswith("[variables.start, ")
