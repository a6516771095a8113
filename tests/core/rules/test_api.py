"""kube-apiserver's own words, each under the id of a rule."""

import pytest
from manifest import constraint, examined, findings, workload

ROOT = "spec.template.spec.topologySpreadConstraints[0]"


def broken(**fields):
    return {**constraint("zone hard 1 app=web"), **fields}


@pytest.mark.parametrize(
    ("fields", "rule", "text"),
    [
        ({"maxSkew": 0}, "max-skew", ".maxSkew: Invalid value: 0: must be greater than zero"),
        ({"topologyKey": ""}, "topology-key", ".topologyKey: Required value: can not be empty"),
        (
            {"whenUnsatisfiable": "Never"},
            "when-unsatisfiable",
            '.whenUnsatisfiable: Unsupported value: "Never": supported values: "DoNotSchedule", "ScheduleAnyway"',
        ),
        ({"minDomains": 0}, "min-domains", ".minDomains: Invalid value: 0: must be greater than zero"),
        (
            {"nodeAffinityPolicy": "Maybe"},
            "node-affinity-policy",
            '.nodeAffinityPolicy: Unsupported value: "Maybe": supported values: "Honor", "Ignore"',
        ),
        (
            {"nodeTaintsPolicy": "Maybe"},
            "node-taints-policy",
            '.nodeTaintsPolicy: Unsupported value: "Maybe": supported values: "Honor", "Ignore"',
        ),
        (
            {"labelSelector": None, "matchLabelKeys": ["app"]},
            "match-label-keys",
            ".matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
        ),
        (
            {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In"}]}},
            "label-selector",
            (
                ".labelSelector.matchExpressions[0].values: Required value:"
                " must be specified when `operator` is 'In' or 'NotIn'"
            ),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_errors_of_the_field(fields, rule, text):
    found = findings(workload("Rollout", "app=web", broken(**fields)))
    assert [(name, mode, said) for name, mode, said, _ in found if mode == "deny"] == [(rule, "deny", ROOT + text)]


def test_two_constraints_of_one_key_and_action():
    found = findings(workload("Rollout", "app=web", "zone hard 1 app=web", "zone hard 2 app=web"))
    text = '.{topologyKey, whenUnsatisfiable}: Duplicate value: "{topology.kubernetes.io/zone, DoNotSchedule}"'
    assert ("duplicate-constraint", "deny", ROOT + text, "") in found


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            "Deployment",
            (
                'Deployment in version "v1" cannot be handled as a Deployment:'
                " json: cannot unmarshal string into Go struct"
                " field TopologySpreadConstraint.spec.template.spec.topologySpreadConstraints.maxSkew of type int32"
            ),
        ),
        (
            "Rollout",
            (
                "json: cannot unmarshal string into Go struct"
                " field TopologySpreadConstraint.spec.template.spec.topologySpreadConstraints.maxSkew of type int32"
            ),
        ),
    ],
)
def test_a_value_of_the_wrong_type(kind, message):
    found = examined(workload(kind, "app=web", broken(maxSkew="1")))
    assert [(each.finding.rule, each.finding.summary) for each in found.findings] == [("wrong-type", message)]
    assert found.decode_error is not None
    assert found.findings[0].finding.path == f"{ROOT}.maxSkew"
    assert found.workload is None


def test_a_null_entry_is_an_empty_constraint():
    found = findings(workload("Rollout", "app=web", None))
    assert [rule for rule, mode, _, _ in found if mode == "deny"] == ["max-skew", "topology-key", "when-unsatisfiable"]


def test_a_custom_resource_may_mean_something_else_by_other_fields():
    manifest = workload("Rollout", "app=web", broken(maxSkew=0), tolerations="any")
    assert [rule for rule, mode, _, _ in findings(manifest) if mode == "deny"] == ["max-skew"]


@pytest.mark.parametrize(
    ("meta", "rules"),
    [
        pytest.param({}, ["match-label-keys"], id="a manifest: the key will be merged into the selector that has it"),
        pytest.param({"uid": "u", "creationTimestamp": "2026-11-21T00:00:00Z"}, [], id="as stored: it has been merged"),
    ],
)
def test_a_stored_pod_has_its_keys_merged(meta, rules):
    manifest = workload("Pod", "app=web", broken(matchLabelKeys=["app"]), meta=meta)
    assert [rule for rule, mode, _, _ in findings(manifest) if mode == "deny"] == rules
