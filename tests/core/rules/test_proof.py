"""Fixes that are tried on the whole object before anybody applies them."""

import pytest

from webhook.core.rules.finding import Edit, Finding
from webhook.core.rules.proof import only_helpful

FOUND = Finding(rule="one", path="a", summary="a is 1", fix="a: 2", edits=(Edit("a", 2),), key="a")
SAME = Finding(rule="one", path="b", summary="b is 1", key="b")
NOTE = Finding(rule="note", path="c", summary="c is odd", key="c")
LOUD = Finding(rule="loud", path="d", summary="d is wrong", key="d", warns=True)


def raising(_):
    raise RuntimeError("broken on purpose")


@pytest.mark.parametrize(
    ("left", "fix", "kept"),
    [
        pytest.param([], "a: 2", True, id="it goes"),
        pytest.param([NOTE], "a: 2", True, id="a note that it had hidden"),
        pytest.param([FOUND], "set a: 2", False, id="it stays"),
        pytest.param([SAME], "set a: 2; after that, one: b is 1", False, id="the same rule at another place"),
        pytest.param([NOTE, LOUD], "set a: 2; after that, loud: d is wrong", False, id="another rule warns"),
    ],
)
def test_beside_a_cluster(left, fix, kept):
    changed = []

    def again(value):
        changed.append(value)
        return left

    (told,) = only_helpful([FOUND], {"one"}, {"a": 1}, again, warns=lambda each: each.warns is True)
    assert (told.fix, bool(told.edits), changed) == (fix, kept, [{"a": 2}])


@pytest.mark.parametrize(
    ("left", "kept"), [pytest.param([], True, id="it goes"), pytest.param([NOTE], False, id="any other finding")]
)
def test_without_a_cluster_nothing_new_may_come(left, kept):
    (told,) = only_helpful([FOUND], {"one"}, {"a": 1}, lambda _: left)
    assert (told.fix, bool(told.edits)) == ("a: 2", kept)


def test_what_cannot_be_tried_is_for_people():
    (told,) = only_helpful([FOUND], {"one"}, {"a": 1}, raising)
    assert told.edits == ()


def test_other_rules_are_not_tried():
    assert only_helpful([FOUND], {"other"}, {"a": 1}, raising) == (FOUND,)


def test_of_very_many_the_rest_is_for_people():
    many = [Finding(rule="one", path="a", summary=str(n), edits=(Edit("a", n),), key=str(n)) for n in range(2, 12)]
    told = only_helpful(many, {"one"}, {"a": 1}, lambda _: ())
    assert [bool(each.edits) for each in told] == [True] * 8 + [False] * 2
