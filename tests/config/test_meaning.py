import textwrap

import pytest

from webhook.config import ConfigError, parse_policy
from webhook.core.api.label_syntax import key_faults, value_faults

HEAD = "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\n"
SOFT = "maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway"
HARD = "maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule"
FIRST = "defaults.defaultConstraints[0]"
EXPRESSION = "matchExpressions[0]"
SELECTOR = "Forbidden: constraint must not define a selector, as they deduced for each pod"
ACTIONS = 'supported values: "DoNotSchedule", "ScheduleAnyway"'
MIN_DOMAINS = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
VALUES = "must be specified when `operator` is 'In' or 'NotIn'"
NO_VALUES = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
OPERATORS = 'must be one of In, NotIn, Exists, DoesNotExist, is "in"; did you mean "In"?'


def lines_of(body):
    """The faults, else the warnings, of a file whose first two lines are right."""
    try:
        loaded = parse_policy(HEAD + textwrap.dedent(body), file="p", today="2026-11-21")
    except ConfigError as error:
        return [line.removeprefix("p:") for line in error.render().split("\n")]
    return [line.removeprefix("warning: p:") for line in loaded.rendered_warnings()]


def defaults(*constraints, before=""):
    rows = "".join(f"  - {{{constraint}}}\n" for constraint in constraints)
    return f"defaults:\n{before}  defaultConstraints:\n{rows}"


@pytest.mark.parametrize(
    ("constraints", "lines"),
    [
        pytest.param([SOFT], [], id="a default as it should be"),
        pytest.param(
            [SOFT + ", labelSelector: {}"],
            [f"5:87: {FIRST}.labelSelector: {SELECTOR}"],
            id="an empty selector",
        ),
        pytest.param(
            [SOFT + ", labelSelector: {matchLabels: {app: web}}"],
            [f"5:87: {FIRST}.labelSelector: {SELECTOR}"],
            id="a selector",
        ),
        pytest.param([SOFT + ", labelSelector: null"], [], id="a null selector is none"),
        pytest.param(
            [SOFT + ", labelSelector: all"],
            ['5:87: defaults.defaultConstraints[0].labelSelector: must be a mapping, is "all"'],
            id="a selector that is text",
        ),
        pytest.param(
            ["maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule"],
            ["5:15: defaults.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)"],
            id="no skew at all",
        ),
        pytest.param(
            ["nodeTaintsPolicy: Honor"],
            [
                "5:5: defaults.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
                "5:5: defaults.defaultConstraints[0].topologyKey: Required value: can not be empty",
                "5:5: defaults.defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty",
            ],
            id="the three fields that every constraint needs",
        ),
        pytest.param(
            ["maxSkew: 1, topologyKey: zone, whenUnsatisfiable: Maybe"],
            [
                f'5:56: {FIRST}.whenUnsatisfiable: Unsupported value: "Maybe": {ACTIONS}',
            ],
            id="another action",
        ),
        pytest.param(
            [SOFT, SOFT],
            ['6:5: defaults.defaultConstraints[1]: Duplicate value: "{zone, ScheduleAnyway}"'],
            id="one constraint twice",
        ),
        pytest.param([SOFT, HARD], [], id="hard and soft for one key"),
        pytest.param(
            [SOFT + ", minDomains: 3"],
            [f"5:84: {FIRST}.minDomains: Invalid value: 3: {MIN_DOMAINS}"],
            id="minDomains of a soft default, which only kube-apiserver refuses",
        ),
        pytest.param([HARD + ", minDomains: 3"], [], id="minDomains of a hard default"),
        pytest.param(
            [SOFT + ", minDomains: 3, hardWhenDomains: 3"], [], id="minDomains of a default that is hard when it counts"
        ),
        pytest.param(
            [HARD + ", nodeTaintsPolicy: honor"],
            [f'5:89: {FIRST}.nodeTaintsPolicy: Unsupported value: "honor": supported values: "Honor", "Ignore"'],
            id="a policy in lower case, which only kube-apiserver refuses",
        ),
        pytest.param([SOFT + ", matchLabelKeys: [app]"], [], id="a key whose value joins the selector"),
        pytest.param(
            [SOFT, "maxSkew: 2, topologyKey: [], whenUnsatisfiable: ScheduleAnyway"],
            ["6:31: defaults.defaultConstraints[1].topologyKey: must be a string, is a list"],
            id="a mistake of shape is said once",
        ),
        pytest.param(
            [SOFT + ", minDomains: 3", "maxSkew: x"],
            [
                f"5:84: {FIRST}.minDomains: Invalid value: 3: {MIN_DOMAINS}",
                '6:15: defaults.defaultConstraints[1].maxSkew: must be a whole number, is "x"',
            ],
            id="a mistake of shape hides nothing in another entry",
        ),
    ],
)
def test_a_default_must_pass_with_scheduler_and_api_server(constraints, lines):
    assert lines_of(defaults(*constraints)) == lines


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        pytest.param(
            defaults(SOFT, before="  defaultingType: System\n"),
            ['4:19: defaults.defaultingType: Invalid value: "System": when .defaultConstraints are not empty'],
            id="System with constraints",
        ),
        pytest.param("defaults: {defaultingType: System}", [], id="System alone"),
        pytest.param(
            "defaults: {defaultingType: list}",
            ['3:28: defaults.defaultingType: Unsupported value: "list": supported values: "System", "List"'],
            id="another type",
        ),
        pytest.param(
            f"defaults: {{overrides: [{{name: a, defaultConstraints: [{{{SOFT}, labelSelector: {{}}}}]}}]}}",
            [f"3:137: defaults.overrides[0].defaultConstraints[0].labelSelector: {SELECTOR}"],
            id="an override is checked likewise",
        ),
        pytest.param(
            f"defaults: {{defaultingType: System, overrides: [{{name: a, defaultConstraints: [{{{SOFT}}}]}}]}}",
            [],
            id="an override is a list whatever the rest is",
        ),
        pytest.param(
            defaults(SOFT + ", matchLabelKeys: [app]", before="  matchLabelKeys: off\n"),
            ["6:88: defaults.defaultConstraints[0].matchLabelKeys: has no effect: defaults.matchLabelKeys is off"],
            id="keys that are switched off",
        ),
        pytest.param(
            "domains: {a/b/c: [x], zone: [ok, 'not ok']}",
            [
                f"3:11: domains[a/b/c]: is not a valid label key: {key_faults('a/b/c')[0]}",
                f"3:34: domains.zone[1]: is not a valid label value: {value_faults('not ok')[0]}",
            ],
            id="domains that no node can be in",
        ),
        pytest.param(
            "namespaces: [{match: {namespaceSelector: {matchExpressions: [{key: a, operator: In}]}}, ceiling: deny}]",
            [f"3:62: namespaces[0].match.namespaceSelector.{EXPRESSION}.values: Required value: {VALUES}"],
            id="a requirement without values",
        ),
        pytest.param(
            "namespaces: [{match: {namespaceSelector: {matchExpressions: [{key: a, operator: in}]}}, ceiling: deny}]",
            [f"3:81: namespaces[0].match.namespaceSelector.{EXPRESSION}.operator: {OPERATORS}"],
            id="an operator in lower case",
        ),
        pytest.param(
            "exemptions: [{rule: selector-null, reason: x, match: {selector: {matchExpressions: [{key: a,"
            " operator: Exists, values: [b]}]}}}]",
            [f"3:120: exemptions[0].match.selector.{EXPRESSION}.values: Forbidden: {NO_VALUES}"],
            id="values that mean nothing",
        ),
    ],
)
def test_what_kubernetes_would_refuse(body, lines):
    assert lines_of(body) == lines
