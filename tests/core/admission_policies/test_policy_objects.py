import pytest

from webhook.core.admission_policies.policy_objects import selects
from webhook.core.api.selectors import EVERYTHING, NOTHING, selector_from_labels


@pytest.mark.parametrize(
    ("selector", "expression"),
    [
        pytest.param(NOTHING, "false", id="nothing"),
        pytest.param(EVERYTHING, "", id="everything: no condition"),
        pytest.param(selector_from_labels({"a": "b"}), '("a" in own && own["a"] in ["b"])', id="a label"),
    ],
)
def test_selectors(selector, expression):
    assert selects(selector, "own") == expression
