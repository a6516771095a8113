"""Each row is a constraint that differs from a good one in the fields given, and what kube-apiserver says of it."""

import msgspec
import pytest

from webhook.core.api.label_syntax import key_faults, value_faults
from webhook.core.api.types import LabelSelector, SpreadConstraint
from webhook.core.api.version import RECORDED, KubernetesVersion, parse_version
from webhook.core.apiserver.validation import (
    constraint_causes,
    constraint_warnings,
    merge_match_label_keys,
    validate_constraints,
)

PATH = "spec.topologySpreadConstraints"
GOOD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
SOFT = {"whenUnsatisfiable": "ScheduleAnyway"}
V1_33 = KubernetesVersion(1, 33)


def constraint(**fields):
    merged = {name: value for name, value in {**GOOD, **fields}.items() if value != "absent"}
    return msgspec.convert(merged, SpreadConstraint)


def texts(*constraints, labels=None, version=RECORDED):
    found = validate_constraints(constraints, labels, PATH, version)
    return [error.text.removeprefix(PATH) for error in found]


def selecting(*expressions, **match_labels):
    """Expressions as ``key Operator values…``."""
    split = [each.split(" ") for each in expressions]
    written = [{"key": key, "operator": operator, "values": values} for key, operator, *values in split]
    return {"matchLabels": match_labels, "matchExpressions": written}


IN_BOTH = "exists in both matchLabelKeys and labelSelector"
NO_SELECTOR = "Forbidden: must not be specified when labelSelector is not set"
BAD_NAME = key_faults("bad key")[0]
BAD_VALUE = value_faults("-v")[0]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, [], id="nothing wrong"),
        pytest.param({"maxSkew": 0}, ["[0].maxSkew: Invalid value: 0: must be greater than zero"], id="maxSkew 0"),
        pytest.param(
            {"maxSkew": "absent"}, ["[0].maxSkew: Invalid value: 0: must be greater than zero"], id="no maxSkew"
        ),
        pytest.param({"maxSkew": 2147483647}, [], id="the largest maxSkew"),
        pytest.param(
            {"topologyKey": ""}, ["[0].topologyKey: Required value: can not be empty"], id="topologyKey empty"
        ),
        pytest.param({"topologyKey": "no label name!"}, [], id="any other topologyKey is accepted"),
        pytest.param(
            {"whenUnsatisfiable": "Maybe"},
            ['[0].whenUnsatisfiable: Unsupported value: "Maybe": supported values: "DoNotSchedule", "ScheduleAnyway"'],
            id="whenUnsatisfiable unknown",
        ),
        pytest.param(
            {"whenUnsatisfiable": "absent"},
            ['[0].whenUnsatisfiable: Unsupported value: "": supported values: "DoNotSchedule", "ScheduleAnyway"'],
            id="whenUnsatisfiable absent",
        ),
        pytest.param(
            {"whenUnsatisfiable": "<\u00e9\u0085>"},
            [
                (
                    '[0].whenUnsatisfiable: Unsupported value: "\\u003c\u00e9\u0085\\u003e": '
                    'supported values: "DoNotSchedule", "ScheduleAnyway"'
                )
            ],
            id="a value of a named type is shown as JSON",
        ),
        pytest.param({"minDomains": 1}, [], id="minDomains 1"),
        pytest.param(
            {"minDomains": 0}, ["[0].minDomains: Invalid value: 0: must be greater than zero"], id="minDomains 0"
        ),
        pytest.param(
            {"minDomains": -1, **SOFT},
            [
                "[0].minDomains: Invalid value: -1: must be greater than zero",
                (
                    "[0].minDomains: Invalid value: -1: can only use minDomains if whenUnsatisfiable=DoNotSchedule, "
                    "not ScheduleAnyway"
                ),
            ],
            id="minDomains -1 with ScheduleAnyway",
        ),
        pytest.param({"nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore"}, [], id="policies"),
        pytest.param(
            {"nodeAffinityPolicy": "honor", "nodeTaintsPolicy": ""},
            [
                '[0].nodeAffinityPolicy: Unsupported value: "honor": supported values: "Honor", "Ignore"',
                '[0].nodeTaintsPolicy: Unsupported value: "": supported values: "Honor", "Ignore"',
            ],
            id="policies unknown and empty",
        ),
        pytest.param({"matchLabelKeys": []}, [], id="matchLabelKeys empty"),
        pytest.param({"matchLabelKeys": [], "labelSelector": None}, [], id="matchLabelKeys empty without a selector"),
        pytest.param(
            {"matchLabelKeys": ["bad key"], "labelSelector": None},
            [f"[0].matchLabelKeys: {NO_SELECTOR}"],
            id="matchLabelKeys without a selector: nothing else is said",
        ),
        pytest.param(
            {"matchLabelKeys": ["rev", "bad key"]},
            [f'[0].matchLabelKeys[1]: Invalid value: "bad key": {BAD_NAME}'],
            id="matchLabelKeys not a label name",
        ),
        pytest.param({"labelSelector": None}, [], id="labelSelector null"),
        pytest.param({"labelSelector": {}}, [], id="labelSelector empty"),
        pytest.param(
            {"labelSelector": {"matchLabels": {"x": "-v", "bad key": "-v", "a": "b"}}},
            [
                f'[0].labelSelector.matchLabels: Invalid value: "-v": {BAD_VALUE}',
                f'[0].labelSelector.matchLabels: Invalid value: "bad key": {BAD_NAME}',
            ],
            id="matchLabels: sorted, and a text that stands twice is said once",
        ),
        pytest.param(
            {"labelSelector": selecting("a In", "b Exists x", "c Gt 5")},
            [
                (
                    "[0].labelSelector.matchExpressions[0].values: Required value: "
                    "must be specified when `operator` is 'In' or 'NotIn'"
                ),
                (
                    "[0].labelSelector.matchExpressions[1].values: Forbidden: "
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                ),
                '[0].labelSelector.matchExpressions[2].operator: Invalid value: "Gt": not a valid selector operator',
            ],
            id="operators",
        ),
        pytest.param(
            {"labelSelector": selecting("-k NotIn good -v")},
            [
                f'[0].labelSelector.matchExpressions[0].key: Invalid value: "-k": {BAD_NAME}',
                f'[0].labelSelector.matchExpressions[0].values[1]: Invalid value: "-v": {BAD_VALUE}',
            ],
            id="a bad key and a bad value",
        ),
    ],
)
def test_the_errors_of_one_constraint(fields, expected):
    assert texts(constraint(**fields)) == expected


def test_the_errors_of_an_empty_constraint():
    assert texts(SpreadConstraint()) == [
        "[0].maxSkew: Invalid value: 0: must be greater than zero",
        "[0].topologyKey: Required value: can not be empty",
        '[0].whenUnsatisfiable: Unsupported value: "": supported values: "DoNotSchedule", "ScheduleAnyway"',
    ]


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        pytest.param("zone=hard zone=soft", [], id="same key, other action"),
        pytest.param("zone=hard rack=hard", [], id="other key"),
        pytest.param("zone=hard zone=hard", [0], id="twice: the earlier one"),
        pytest.param("zone=hard zone=hard zone=hard", [0, 1], id="three times: all but the last"),
        pytest.param("zone=hard rack=soft zone=hard rack=soft", [0, 1], id="two pairs"),
    ],
)
def test_a_pair_that_comes_again_later_is_a_duplicate(pairs, expected):
    actions = {"hard": "DoNotSchedule", "soft": "ScheduleAnyway"}
    split = [pair.split("=") for pair in pairs.split()]
    found = texts(*(constraint(topologyKey=key, whenUnsatisfiable=actions[action]) for key, action in split))
    shown = [f'"{{{key}, {actions[action]}}}"' for key, action in split]
    assert found == [f"[{i}].{{topologyKey, whenUnsatisfiable}}: Duplicate value: {shown[i]}" for i in expected]


@pytest.mark.parametrize(
    ("keys", "selector", "labels", "merged", "before_merge"),
    [
        pytest.param(["rev"], selecting(app="web"), {"rev": "7"}, [], [], id="a key of the pod"),
        pytest.param(["rev"], selecting(rev="7"), {"rev": "7"}, ["[0]"], [".matchLabelKeys[0]"], id="in matchLabels"),
        pytest.param(["rev"], selecting(rev="7"), {}, [], [".matchLabelKeys[0]"], id="in matchLabels, not on the pod"),
        pytest.param(
            ["x", "rev"], selecting("rev Exists"), {"rev": "7"}, ["[1]"], [".matchLabelKeys[1]"], id="in an expression"
        ),
        pytest.param(["rev", "rev"], selecting(app="web"), {"rev": "7"}, ["[1]"], [], id="twice: the last one"),
        pytest.param(["rev", "rev"], selecting(app="web"), {}, [], [], id="twice, not on the pod"),
        pytest.param(["rev"] * 3, selecting(app="web"), {"rev": "7"}, ["[2]"], [], id="three times: one error"),
        pytest.param(["rev"], selecting("rev Exists"), None, [], [".matchLabelKeys[0]"], id="in a template"),
        pytest.param(
            ["rev"],
            selecting("rev Exists", "rev NotIn 3"),
            None,
            ["[0]"],
            [".matchLabelKeys[0]"],
            id="in two expressions",
        ),
        pytest.param([], selecting("rev Exists", "rev NotIn 3"), None, [], [], id="two expressions of no key"),
    ],
)
def test_a_key_in_matchlabelkeys_and_the_selector(keys, selector, labels, merged, before_merge):
    written = constraint(matchLabelKeys=keys, labelSelector=selector)
    for version, places in ((RECORDED, merged), (V1_33, before_merge)):
        expected = [f'[0]{place}: Invalid value: "rev": {IN_BOTH}' for place in places]
        assert texts(written, labels=labels, version=version) == expected


def test_before_the_merge_keys_without_a_selector_are_still_checked():
    assert texts(constraint(matchLabelKeys=["bad key"], labelSelector=None), version=V1_33) == [
        f"[0].matchLabelKeys: {NO_SELECTOR}",
        f'[0].matchLabelKeys[0]: Invalid value: "bad key": {BAD_NAME.replace("bytes", "characters")}',
    ]


def test_before_1_34_values_of_named_types_are_shown_in_go_syntax():
    written = constraint(whenUnsatisfiable="<", labelSelector=selecting("a <"))
    supported = 'supported values: "DoNotSchedule", "ScheduleAnyway"'
    operator = "[0].labelSelector.matchExpressions[0].operator: Invalid value"
    assert texts(written, version=V1_33) == [
        f'[0].whenUnsatisfiable: Unsupported value: "<": {supported}',
        f'{operator}: "<": not a valid selector operator',
    ]
    assert texts(written) == [
        f'[0].whenUnsatisfiable: Unsupported value: "\\u003c": {supported}',
        f'{operator}: "\\u003c": not a valid selector operator',
    ]


def test_an_error_has_its_type_path_value_and_detail():
    found = validate_constraints([constraint(minDomains=0, labelSelector=selecting("a In"))], None, PATH, RECORDED)
    assert msgspec.to_builtins(found) == (
        {
            "type": "FieldValueInvalid",
            "field": f"{PATH}[0].minDomains",
            "badValue": 0,
            "detail": "must be greater than zero",
            "plain": True,
        },
        {
            "type": "FieldValueRequired",
            "field": f"{PATH}[0].labelSelector.matchExpressions[0].values",
            "badValue": "",
            "detail": "must be specified when `operator` is 'In' or 'NotIn'",
            "plain": True,
        },
    )


def expressions(merged):
    return [(each.key, each.operator, each.values) for each in merged[0].selector.match_expressions or ()]


@pytest.mark.parametrize(
    ("keys", "selector", "added"),
    [
        pytest.param(["rev"], selecting(app="web"), [("rev", "In", ("7",))], id="a key of the pod"),
        pytest.param(["b", "rev"], selecting(), [("b", "In", ("",)), ("rev", "In", ("7",))], id="in the keys' order"),
        pytest.param(["gone"], selecting(app="web"), [], id="a key that the pod lacks"),
        pytest.param([], selecting(app="web"), [], id="no keys"),
    ],
)
def test_the_merge_adds_the_pods_own_value_to_the_selector(keys, selector, added):
    written = constraint(matchLabelKeys=keys, labelSelector=selector)
    merged = merge_match_label_keys([written], {"rev": "7", "b": ""}, RECORDED)
    assert expressions(merged) == added
    assert merged[0].match_label_keys == tuple(keys)
    assert merged[0].selector.match_labels == selector["matchLabels"]


def test_the_merge_keeps_the_expressions_and_leaves_a_null_selector():
    both = [
        constraint(matchLabelKeys=["rev"], labelSelector=selecting("a Exists")),
        constraint(matchLabelKeys=["rev"], labelSelector=None),
    ]
    merged = merge_match_label_keys(both, {"rev": "7"}, RECORDED)
    assert expressions(merged) == [("a", "Exists", ()), ("rev", "In", ("7",))]
    assert merged[1] is both[1]


def test_the_merge_came_with_1_34():
    written = [constraint(matchLabelKeys=["rev"])]
    assert merge_match_label_keys(written, {"rev": "7"}, V1_33) is written
    assert expressions(merge_match_label_keys(written, {"rev": "7"}, KubernetesVersion(1, 34)))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, [], id="nothing to say"),
        pytest.param(
            {"topologyKey": "failure-domain.beta.kubernetes.io/zone"},
            [
                (
                    "[0].topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; "
                    'use "topology.kubernetes.io/zone" instead'
                )
            ],
            id="a deprecated key",
        ),
        pytest.param(
            {"labelSelector": None},
            ["[0].labelSelector: a null labelSelector results in matching no pod"],
            id="labelSelector null",
        ),
        pytest.param(
            {"labelSelector": "absent"},
            ["[0].labelSelector: a null labelSelector results in matching no pod"],
            id="labelSelector absent",
        ),
        pytest.param({"labelSelector": {}}, [], id="labelSelector empty"),
    ],
)
def test_the_warnings_of_a_constraint(fields, expected):
    assert constraint_warnings([constraint(**fields)], PATH) == tuple(PATH + text for text in expected)


def test_a_selector_without_anything_is_not_null():
    assert constraint(labelSelector={}).selector == LabelSelector()


@pytest.mark.parametrize(("release", "times"), [("1.33", 2), ("1.36", 2), ("1.37", 1)])
def test_causes_were_repeated(release, times):
    twice, version = constraint(labelSelector={"matchLabels": {"a": "?", "b": "?"}}), parse_version(release)
    assert len(constraint_causes((twice,), None, PATH, version)) == times
    assert len(validate_constraints((twice,), None, PATH, version)) == 1
