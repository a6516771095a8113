import msgspec
import pytest

from webhook.core.api.selector_text import pairs_text, requirement_in_words, short_text
from webhook.core.api.selectors import compile_selector
from webhook.core.api.types import LabelSelector
from webhook.core.api.written_selector import (
    has_conditions,
    is_refused,
    requirements,
    selected_keys,
    selector_as_json,
    without_key,
)


def selector(pairs="", *expressions):
    """``app=web``, and expressions as ``key Operator values…``."""
    split = [each.split(" ") for each in expressions]
    written = [{"key": key, "operator": operator, "values": values} for key, operator, *values in split]
    labels = dict(pair.split("=") for pair in pairs.split())
    return msgspec.convert({"matchLabels": labels, "matchExpressions": written}, LabelSelector)


def only(expression):
    (found,) = requirements(selector("", expression))
    return found


@pytest.mark.parametrize(
    ("expression", "labels", "holds"),
    [
        pytest.param("app In web", {"app": "web"}, True, id="one of the values"),
        pytest.param("app In web", {}, False, id="none"),
        pytest.param("app NotIn web", {}, True, id="not one of the values"),
        pytest.param("app Exists", {"app": ""}, True, id="there"),
        pytest.param("app DoesNotExist", {"app": ""}, False, id="there, and should not be"),
        pytest.param("app In", {"app": "web"}, False, id="In without values: refused"),
        pytest.param("app Gt", {"app": "1"}, False, id="an operator that labels do not have, without its value"),
        pytest.param("app Like web", {"app": "web"}, False, id="an operator that nobody knows"),
        pytest.param("app Like 1", {"app": "1"}, False, id="an operator that nobody knows, with a number"),
    ],
)
def test_a_requirement_as_written_is_met(expression, labels, holds):
    assert only(expression).matches(labels) is holds


@pytest.mark.parametrize(
    ("expression", "refused"),
    [("app In web", False), ("app In", True), ("app NotIn", False), ("app Exists", False), ("app Gt 1", True)],
)
def test_no_label_meets_what_is_refused(expression, refused):
    assert is_refused(only(expression)) is refused


def test_null_and_empty_ask_for_nothing():
    assert requirements(None) == requirements(LabelSelector()) == ()
    assert selected_keys(None) == selected_keys(LabelSelector()) == frozenset()
    assert not has_conditions(None)
    assert not has_conditions(LabelSelector(match_labels={}))
    assert selector_as_json(selector()) == {}


def test_the_keys_of_a_selector_and_what_is_left_without_one():
    written = selector("app=web tier=a", "app In web db", "x Exists")
    assert has_conditions(written)
    assert selected_keys(written) == {"app", "tier", "x"}
    assert selector_as_json(without_key(written, "app")) == {
        "matchLabels": {"tier": "a"},
        "matchExpressions": [{"key": "x", "operator": "Exists"}],
    }
    assert without_key(selector("app=web"), "app") == LabelSelector()


@pytest.mark.parametrize(
    ("written", "short", "words"),
    [
        pytest.param(selector("app=web"), "app=web", "app=web", id="a pair"),
        pytest.param(selector("", "app In web"), "app=web", "app=web", id="In with one value"),
        pytest.param(selector("", "app In web db"), "app in (web,db)", "app in (web, db)", id="In"),
        pytest.param(selector("", "app NotIn web"), "app notin (web)", "app other than web", id="NotIn with one value"),
        pytest.param(selector("", "app NotIn a b"), "app notin (a,b)", "app not in (a, b)", id="NotIn"),
        pytest.param(selector("", "app Exists"), "app", "a label app", id="Exists"),
        pytest.param(selector("", "app DoesNotExist"), "!app", "no label app", id="DoesNotExist"),
    ],
)
def test_a_condition_in_warnings_and_in_sentences(written, short, words):
    assert [short_text(each) for each in requirements(written)] == [short]
    assert [requirement_in_words(each) for each in compile_selector(written).requirements] == [words]


def test_odd_names_are_quoted_in_a_warning():
    assert pairs_text({"app": "", "a b": "c"}) == 'app="","a b"=c'
