"""Fixes that are tried on the whole object before anybody applies them."""

import pytest
from msgspec.structs import replace

from webhook.core.apiserver.decoding import DecodeError
from webhook.core.budget import Missing
from webhook.core.json_edits import Edit
from webhook.core.rules.frame.rule import Finding, NotEvaluated
from webhook.core.rules.frame.trials import tried_as_a_whole

FOUND = Finding(rule="one", path="a", summary="a is 1", fix="a: 2", edits=(Edit("a", 2),), key="a")
SAME = Finding(rule="one", path="b", summary="b is 1", key="b")
NOTE = Finding(rule="note", path="c", summary="c is odd", key="c")
LOUD = Finding(rule="loud", path="d", summary="d is wrong", key="d", warns=True)


BOOM = RuntimeError("broken on purpose")


def warns(finding):
    return finding.warns is True


def raising(_):
    raise BOOM


@pytest.mark.parametrize(
    ("left", "fix", "kept"),
    [
        pytest.param([], "a: 2", True, id="it goes"),
        pytest.param([NOTE], "a: 2", True, id="a note that it had hidden"),
        pytest.param([FOUND], "set a: 2", False, id="it stays"),
        pytest.param([SAME], "set a: 2; then one: b is 1", False, id="the same rule at another place"),
        pytest.param([NOTE, LOUD], "set a: 2; then loud: d is wrong", False, id="another rule warns"),
    ],
)
def test_what_warns_afterwards_speaks_against_a_fix(left, fix, kept):
    changed = []

    def again(value):
        changed.append(value)
        return left

    ((told,), _) = tried_as_a_whole([FOUND], {"one"}, {"a": 1}, again, warns)
    assert (told.fix, bool(told.edits), changed) == (fix, kept, [{"a": 2}])


def unreadable(_):
    raise DecodeError(path="a", text="a is odd", message="a is odd")


THROUGH = replace(FOUND, edits=(Edit("a.b", 2),))


@pytest.mark.parametrize(
    ("found", "again"),
    [
        pytest.param(THROUGH, raising, id="an edit that cannot be made"),
        pytest.param(FOUND, unreadable, id="what it makes cannot be read"),
    ],
)
def test_what_cannot_be_tried_is_for_people_and_no_fault(found, again):
    ((told,), faults) = tried_as_a_whole([found], {"one"}, {"a": 1}, again, warns)
    assert (told.edits, faults) == ((), ())


OTHER_FAILS = NotEvaluated("note", Missing.RULE_FAILED.reason, BOOM)


def missing_a_place(_):
    raise LookupError("not of an edit")


@pytest.mark.parametrize(
    ("again", "rule"),
    [
        pytest.param(raising, "one", id="asking raises"),
        pytest.param(missing_a_place, "one", id="as an edit would that cannot be made"),
        pytest.param(lambda _: [OTHER_FAILS], "note", id="another rule raises"),
    ],
)
def test_what_is_raised_meanwhile_is_a_fault_of_the_rule(again, rule):
    ((told,), faults) = tried_as_a_whole([FOUND], {"one"}, {"a": 1}, again, warns)
    assert (told.fix, told.edits) == ("set a: 2", ())
    assert [(each.rule, each.missing, each.fault is not None) for each in faults] == [
        (rule, Missing.RULE_FAILED.value, True)
    ]


def test_a_rule_that_raises_anyway_does_not_speak_against_the_fixes_of_others():
    ((told,), faults) = tried_as_a_whole([FOUND, OTHER_FAILS], {"one"}, {"a": 1}, lambda _: [OTHER_FAILS], warns)
    assert (told, faults) == (FOUND, ())


def test_a_rule_whose_fixes_raise_is_told_of_once():
    second = replace(FOUND, key="second")
    _, faults = tried_as_a_whole([FOUND, second], {"one"}, {"a": 1}, raising, warns)
    assert faults == (NotEvaluated("one", Missing.RULE_FAILED.reason, BOOM),)


def test_other_rules_are_not_tried():
    assert tried_as_a_whole([FOUND], {"other"}, {"a": 1}, raising, warns) == ((FOUND,), ())


def test_findings_beyond_the_sixteenth_have_no_edits():
    many = [Finding(rule="one", path="a", summary=str(n), edits=(Edit("a", n),), key=str(n)) for n in range(2, 20)]
    told, _ = tried_as_a_whole(many, {"one"}, {"a": 1}, lambda _: (), warns)
    assert [bool(each.edits) for each in told] == [True] * 16 + [False] * 2
