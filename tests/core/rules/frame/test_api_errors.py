"""Every error that kube-apiserver may raise of a constraint: the rule whose title covers it, and a fix that mends it.

The errors are read from the code of `validation`, so that one which a release adds is missed here.
"""

import ast
import inspect

import pytest
from manifest import DENY, RECENT, constraint, examined, expression, workload

from webhook.core.api.version import KubernetesVersion
from webhook.core.apiserver import field_errors, validation
from webhook.core.apiserver.field_errors import ErrorType, FieldError
from webhook.core.context import Context
from webhook.core.json_edits import applied
from webhook.core.rules.frame.api_errors import broken_at, fix_of
from webhook.core.rules.frame.fixes import Fix
from webhook.core.rules.frame.subject import Subject, placed_constraints
from webhook.core.rules.rule_set import API_RULES, BY_ID

V1_33 = KubernetesVersion(1, 33)
LIST = "spec.template.spec.topologySpreadConstraints"
ROOT = f"{LIST}[0]"


def functions_of(module):
    return [each for each in ast.parse(inspect.getsource(module)).body if isinstance(each, ast.FunctionDef)]


def raising():
    """Where `validation` makes an error, as ``function: call``."""
    makers = {each.name for each in functions_of(field_errors) if ast.unparse(each.returns) == "FieldError"}
    for function in functions_of(validation):
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {*makers, "FieldError"}:
                yield f"{function.name}: {ast.unparse(node)}"


TWICE = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "app", "operator": "Exists"}]}
SOFT = {"whenUnsatisfiable": "ScheduleAnyway"}
BAD = "a b"
FORBIDS_VALUES = (
    "_requirement_errors: forbidden(f'{path}.values', "
    "\"may not be specified when `operator` is 'Exists' or 'DoesNotExist'\")"
)
NO_OPERATOR = (
    "_requirement_errors: invalid(f'{path}.operator', requirement.operator, "
    "'not a valid selector operator', named_in=version)"
)
# Where it is made, fields of a constraint, the path of the error, what the rule's title says of it, and the release.
MENDED = [
    (
        "_required_field_errors: invalid(f'{at}.maxSkew', max_skew, _POSITIVE)",
        {"maxSkew": 0},
        ".maxSkew",
        "positive",
    ),
    (
        "_required_field_errors: invalid(f'{at}.maxSkew', max_skew, _POSITIVE)",
        {"maxSkew": None},
        ".maxSkew",
        "must be set",
    ),
    (
        "_required_field_errors: not_supported(f'{at}.whenUnsatisfiable', action, _ACTIONS, version)",
        {"whenUnsatisfiable": "schedule-anyway"},
        ".whenUnsatisfiable",
        "must be DoNotSchedule or ScheduleAnyway",
    ),
    ("_min_domains: invalid(path, min_domains, _POSITIVE)", {"minDomains": 0}, ".minDomains", "must be positive"),
    (
        "_min_domains: invalid(path, min_domains, detail)",
        {"minDomains": 2, **SOFT},
        ".minDomains",
        "needs whenUnsatisfiable: DoNotSchedule",
    ),
    (
        "_errors: not_supported(f'{at}.{name}', policy, _POLICIES, version)",
        {"nodeAffinityPolicy": "honour"},
        ".nodeAffinityPolicy",
        "must be Honor or Ignore",
    ),
    (
        "_errors: not_supported(f'{at}.{name}', policy, _POLICIES, version)",
        {"nodeTaintsPolicy": "Ignored"},
        ".nodeTaintsPolicy",
        "must be Honor or Ignore",
    ),
    (
        "_match_label_keys: forbidden(f'{path}.matchLabelKeys', _NO_SELECTOR)",
        {"labelSelector": None, "matchLabelKeys": ["v"]},
        ".matchLabelKeys",
        "needs a labelSelector",
    ),
    (
        "_match_label_keys: invalid(f'{path}.matchLabelKeys[{index}]', key, fault)",
        {"matchLabelKeys": ["v", BAD]},
        ".matchLabelKeys[1]",
        "label keys",
    ),
    (
        "keys_in_both: invalid(f'{path}[{last[key]}]', key, _IN_BOTH)",
        {"labelSelector": TWICE, "matchLabelKeys": ["v", "app"]},
        "[1]",
        "the labelSelector does not use",
    ),
    (
        "_match_label_keys_before_merge: forbidden(f'{path}.matchLabelKeys', _NO_SELECTOR)",
        {"labelSelector": None, "matchLabelKeys": ["v"]},
        ".matchLabelKeys",
        "needs a labelSelector",
        V1_33,
    ),
    (
        "_match_label_keys_before_merge: invalid(at, key, fault)",
        {"matchLabelKeys": ["v", BAD]},
        ".matchLabelKeys[1]",
        "label keys",
        V1_33,
    ),
    (
        "_match_label_keys_before_merge: invalid(at, key, _IN_BOTH)",
        {"matchLabelKeys": ["v", "app"]},
        ".matchLabelKeys[1]",
        "the labelSelector does not use",
        V1_33,
    ),
    (
        "_pair_errors: invalid(path, bad, fault)",
        {"labelSelector": {"matchLabels": {BAD: "web"}}},
        ".labelSelector.matchLabels",
        "not a valid selector",
    ),
    (
        "_pair_errors: invalid(path, bad, fault)",
        {"labelSelector": {"matchLabels": {"app": BAD}}},
        ".labelSelector.matchLabels",
        "not a valid selector",
    ),
    (
        "_requirement_errors: required(f'{path}.values', \"must be specified when `operator` is 'In' or 'NotIn'\")",
        expression(operator="In"),
        ".labelSelector.matchExpressions[0].values",
        "not a valid selector",
    ),
    (
        FORBIDS_VALUES,
        expression(operator="Exists", values=["a"]),
        ".labelSelector.matchExpressions[0].values",
        "not a valid selector",
    ),
    (
        NO_OPERATOR,
        expression(operator="exists"),
        ".labelSelector.matchExpressions[0].operator",
        "not a valid selector",
    ),
    (
        "_requirement_errors: invalid(f'{path}.key', requirement.key, fault)",
        expression(key=BAD, operator="Exists"),
        ".labelSelector.matchExpressions[0].key",
        "not a valid selector",
    ),
    (
        "_requirement_errors: invalid(f'{path}.values[{index}]', value, fault)",
        expression(operator="In", values=["a", BAD]),
        ".labelSelector.matchExpressions[0].values[1]",
        "not a valid selector",
    ),
]
# What was meant is not known: the fix is words for people.
IN_WORDS = [
    (
        "_required_field_errors: required(f'{at}.topologyKey', 'can not be empty')",
        {"topologyKey": ""},
        ".topologyKey",
        "is missing",
    ),
    (
        "_required_field_errors: not_supported(f'{at}.whenUnsatisfiable', action, _ACTIONS, version)",
        {"whenUnsatisfiable": None},
        ".whenUnsatisfiable",
        "must be DoNotSchedule",
    ),
]
DUPLICATES = "_errors: duplicate(f'{at}.{{topologyKey, whenUnsatisfiable}}', f'{{{pair[0]}, {pair[1]}}}')"


def written(fields):
    return workload("Rollout", "app=web tier=front v=1", {**constraint("zone hard 1 app=web"), **fields})


def refused(manifest, version):
    """The findings of kube-apiserver's rules."""
    found = examined(manifest, version=version).findings
    return [each.finding for each in found if each.finding.rule in API_RULES]


def check(manifest, where, titled, version, *, mended):
    found = refused(manifest, version)
    # A key or value may be refused for several reasons; they have one fix.
    assert {(each.path, each.fix) for each in found} == {(f"{ROOT}{where}", found[0].fix)}
    assert titled in BY_ID[found[0].rule].title
    assert found[0].fix
    assert bool(found[0].edits) is mended
    if mended:
        assert refused(applied(manifest, found[0].edits), version) == []


@pytest.mark.parametrize("row", MENDED, ids=lambda row: f"{row[0].partition(':')[0]} {row[1]}")
def test_an_error_has_a_rule_that_is_called_so_and_a_fix_that_mends_it(row):
    _, fields, where, titled, version = (*row, RECENT)[:5]
    check(written(fields), where, titled, version, mended=True)


@pytest.mark.parametrize("row", IN_WORDS, ids=lambda row: row[2])
def test_an_error_that_nobody_can_mend_but_who_wrote_it(row):
    _, fields, where, titled = row
    check(written(fields), where, titled, RECENT, mended=False)


def test_duplicates():
    manifest = workload("Rollout", "app=web", "zone hard 1 app=web", "zone hard 1 app=web")
    check(manifest, ".{topologyKey, whenUnsatisfiable}", "two constraints have the same", RECENT, mended=True)


def test_no_error_is_missing_above():
    sites = sorted(raising())
    assert sites == sorted({*sites}), "tell them apart, so that each has a row"
    assert {*sites} == {row[0] for row in (*MENDED, *IN_WORDS)} | {DUPLICATES}, "a row, a fix and a title for each"


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        pytest.param(ErrorType.REQUIRED, "matchLabelKeys", id="a limit, of a field with another error"),
        pytest.param(ErrorType.INVALID, "matchLabelKeys", id="another kind of error"),
        pytest.param(ErrorType.FORBIDDEN, "matchLabelKeys[0]", id="of one item"),
        pytest.param(ErrorType.DUPLICATE, "labelSelector", id="of a whole selector"),
        pytest.param(ErrorType.FORBIDDEN, "newField", id="a new field"),
    ],
)
def test_an_unknown_error_has_no_fix(kind, field):
    known = examined(written({"matchLabelKeys": ["v"]})).workload
    subject = Subject(workload=known, placed=placed_constraints(known), context=Context(policy=DENY, version=RECENT))
    error = FieldError(type=kind, field=f"{ROOT}.{field}")
    assert fix_of(broken_at(error, LIST, subject.placed, subject)) == Fix()
