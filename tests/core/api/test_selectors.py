import msgspec
import pytest
from build import labels

from webhook.core.api.label_syntax import key_faults, value_faults
from webhook.core.api.requirements import Requirement, SelectorError, parse_integer
from webhook.core.api.selectors import NOTHING, compile_selector, selector_from_labels
from webhook.core.api.tolerations import first_untolerated, tolerates
from webhook.core.api.types import LabelSelector, LabelSelectorRequirement, Taint, Toleration


def selector(match_labels="", *expressions):
    """Expressions as ``key Operator values…``."""
    split = [each.split(" ") for each in expressions]
    written = [{"key": key, "operator": operator, "values": values} for key, operator, *values in split]
    return msgspec.convert({"matchLabels": labels(match_labels), "matchExpressions": written}, LabelSelector)


@pytest.mark.parametrize(
    ("written", "matching", "other"),
    [
        pytest.param(selector("app=web"), "app=web x=y", "app=db", id="a pair"),
        pytest.param(selector("app=web x=y"), "app=web x=y", "app=web", id="every pair"),
        pytest.param(selector("x="), "x=", "app=web", id="an empty value is not an absent key"),
        pytest.param(selector("", "app In web db"), "app=db", "app=x", id="In"),
        pytest.param(selector("", "app In web"), "app=web", "", id="In needs the key"),
        pytest.param(selector("", "app NotIn web"), "", "app=web", id="NotIn holds without the key"),
        pytest.param(selector("", "app Exists"), "app=", "x=y", id="Exists"),
        pytest.param(selector("", "app DoesNotExist"), "x=y", "app=", id="DoesNotExist"),
        pytest.param(
            selector("app=web", "tier In a", "old DoesNotExist"), "app=web tier=a", "app=web", id="all together"
        ),
    ],
)
def test_a_selector_matches_labels(written, matching, other):
    compiled = compile_selector(written)
    assert compiled.matches(labels(matching))
    assert not compiled.matches(labels(other))


def test_null_matches_nothing_and_empty_matches_everything():
    assert not compile_selector(None).matches({})
    assert not compile_selector(None).empty
    assert compile_selector(LabelSelector()).matches({})
    assert compile_selector(LabelSelector(match_labels={}, match_expressions=())).empty


@pytest.mark.parametrize(
    ("written", "text"),
    [
        pytest.param(None, "", id="null"),
        pytest.param(LabelSelector(), "", id="empty"),
        pytest.param(selector("b=2 a=1"), "a=1,b=2", id="sorted by key"),
        pytest.param(selector("a=1", "c NotIn y x", "b In z"), "a=1,b in (z),c notin (x,y)", id="sorted values"),
        pytest.param(selector("", "b DoesNotExist", "a Exists"), "a,!b", id="existence"),
    ],
)
def test_the_text_of_a_selector(written, text):
    assert compile_selector(written).text == text


def test_the_text_of_a_comparison():
    assert [Requirement("n", "Gt", ("5",)).text, Requirement("n", "Lt", ("5",)).text] == ["n>5", "n<5"]


NAME_FAULT = key_faults("bad key")[0]
VALUE_FAULT = value_faults("bad value")[0]


@pytest.mark.parametrize(
    ("written", "text"),
    [
        pytest.param(selector("", "a Gt 5"), '"Gt" is not a valid label selector operator', id="an operator of nodes"),
        pytest.param(
            selector("", "a In"),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            id="In without values",
        ),
        pytest.param(
            selector("", "a Exists x"),
            'values: Invalid value: ["x"]: values set must be empty for exists and does not exist',
            id="Exists with values",
        ),
        pytest.param(
            msgspec.convert({"matchLabels": {"bad key": "bad value"}}, LabelSelector),
            f'[key: Invalid value: "bad key": {NAME_FAULT}, '
            f'values[0][bad key]: Invalid value: "bad value": {VALUE_FAULT}]',
            id="two faults of one requirement",
        ),
    ],
)
def test_an_invalid_selector_is_refused_in_the_schedulers_words(written, text):
    with pytest.raises(SelectorError) as caught:
        compile_selector(written)
    assert str(caught.value) == text


def test_a_plain_map_is_a_selector_without_checks():
    compiled = selector_from_labels({"b": "not valid!", "a": "1"})
    assert compiled.text == "a=1,b=not valid!"
    assert compiled.matches({"a": "1", "b": "not valid!"})
    assert selector_from_labels(None).empty


def test_requirements_join_a_selector_but_not_the_null_one():
    rev = Requirement("a", "In", ("7",))
    assert compile_selector(selector("b=1")).joined([rev]).text == "a in (7),b=1"
    assert NOTHING.joined([rev]) is NOTHING


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("007", 7, id="leading zeros"),
        pytest.param("+7", 7, id="a plus sign"),
        pytest.param("-9223372036854775808", -(2**63), id="the least"),
        pytest.param("9223372036854775808", None, id="one too many"),
        pytest.param("1_0", None, id="an underscore"),
        pytest.param(" 7", None, id="a space"),
        pytest.param("\u0667", None, id="a digit of another script"),
        pytest.param("9" * 5000, None, id="more digits than Python would convert"),
        pytest.param("-" + "0" * 5000 + "7", -7, id="as many zeros before a digit"),
        pytest.param("0" * 5000, 0, id="nothing but zeros"),
        pytest.param("+", None, id="no digit"),
    ],
)
def test_integers_are_read_as_go_reads_them(text, number):
    assert parse_integer(text) == number


def taint(text):
    """``key=value:Effect``."""
    key, _, rest = text.partition("=")
    value, _, effect = rest.partition(":")
    return Taint(key=key, value=value, effect=effect)


@pytest.mark.parametrize(
    ("toleration", "tolerated", "untolerated"),
    [
        pytest.param(Toleration(), "=:NoSchedule", "k=v:NoSchedule", id="empty compares the value, so only with none"),
        pytest.param(Toleration(operator="Exists"), "k=v:NoExecute", None, id="Exists without a key tolerates all"),
        pytest.param(Toleration(key="k", operator="Exists"), "k=v:NoSchedule", "j=v:NoSchedule", id="Exists"),
        pytest.param(Toleration(key="k", value="v"), "k=v:NoSchedule", "k=w:NoSchedule", id="Equal is the default"),
        pytest.param(
            Toleration(key="k", operator="Equal", value="v", effect="NoSchedule"),
            "k=v:NoSchedule",
            "k=v:NoExecute",
            id="an effect",
        ),
        pytest.param(Toleration(key="k", operator="Like", value="v"), None, "k=v:NoSchedule", id="an unknown operator"),
        pytest.param(Toleration(key="k", operator="Gt", value="5"), None, "k=9:NoSchedule", id="Gt needs its gate"),
    ],
)
def test_a_toleration_tolerates_a_taint(toleration, tolerated, untolerated):
    assert tolerated is None or tolerates(toleration, taint(tolerated))
    assert untolerated is None or not tolerates(toleration, taint(untolerated))


@pytest.mark.parametrize(
    ("taints", "tolerations", "first"),
    [
        pytest.param([], [], None, id="no taints"),
        pytest.param(["a=:NoSchedule", "b=:NoSchedule"], [], "a=:NoSchedule", id="the first"),
        pytest.param(["a=:NoSchedule", "b=:NoExecute"], ["a"], "b=:NoExecute", id="the first that nothing tolerates"),
        pytest.param(["a=:PreferNoSchedule"], [], None, id="other effects do not count"),
        pytest.param(["a=:NoSchedule", "b=:NoSchedule"], ["a", "b"], None, id="all tolerated"),
    ],
)
def test_the_first_untolerated_taint(taints, tolerations, first):
    found = first_untolerated(
        [taint(each) for each in taints],
        [Toleration(key=key, operator="Exists") for key in tolerations],
        ("NoSchedule", "NoExecute"),
    )
    assert found == (taint(first) if first else None)


@pytest.mark.parametrize(
    ("one", "other", "contradicts"),
    [
        pytest.param("app=web x=1", "x=2", True, id="two values of a key"),
        pytest.param("app=web x=1", "x=1", False, id="one value twice"),
        pytest.param("app=web", "x=1", False, id="other keys"),
        pytest.param("", "", False, id="nothing asked"),
    ],
)
def test_a_selector_that_wants_two_values_of_a_label_contradicts_itself(one, other, contradicts):
    joined = selector_from_labels(labels(one)).joined(selector_from_labels(labels(other)).requirements)
    assert joined.contradicts_itself is contradicts


@pytest.mark.parametrize(("value", "contradicts"), [("2", True), ("1", False)])
def test_conditions_between_two_that_contradict_one_another_hide_nothing(value, contradicts):
    between = Requirement("x", "Exists"), Requirement("x", "=", (value,))
    assert selector_from_labels({"x": "1"}).joined(between).contradicts_itself is contradicts


def test_values_of_a_set_are_no_contradiction():
    asked = LabelSelectorRequirement(key="x", operator="In", values=("1", "2"))
    own = selector_from_labels({"x": "3"}).requirements
    assert not compile_selector(LabelSelector(match_expressions=(asked,))).joined(own).contradicts_itself
