import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.admission_policies import cel
from webhook.core.spelling import nearest

ZONE = "topology.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("value", "expression"),
    [
        pytest.param("a", '"a"', id="a text"),
        pytest.param('say "a\\b"', '"say \\"a\\\\b\\""', id="quotes and a backslash"),
        pytest.param("…", '"…"', id="no ASCII"),
    ],
)
def test_literals(value, expression):
    assert cel.literal(value) == expression
    assert cel.literals([value, value]) == f"[{expression}, {expression}]"


@pytest.mark.parametrize(
    ("template", "expression"),
    [
        pytest.param("{name}: use {key}", '(x + ": use " + "app")', id="text between"),
        pytest.param("{name} has {{}}", '(x + " has {" + "}")', id="braces"),
        pytest.param("nothing", '("nothing")', id="no field"),
    ],
)
def test_a_template_becomes_a_concatenation(template, expression):
    assert cel.text(template, name="x", key='"app"') == expression


def test_values_get_names():
    assert cel.with_names("a + b", a="x", b="y") == "[x].map(a, [y].map(b, a + b)[0])[0]"


@pytest.mark.parametrize(
    ("key", "matches"),
    [
        pytest.param("topology.kubernetes.io/zome", True, id="another letter"),
        pytest.param("topology.kubernetes.io/zon", True, id="a letter less"),
        pytest.param("topology.kubernetes.io/zones", True, id="a letter more"),
        pytest.param("topology.kubernetes.io/zoen", True, id="two letters swapped"),
        pytest.param("topology.kubernetes.io/zomes", False, id="two mistakes"),
        pytest.param("topologyxkubernetes.io/zome", False, id="a point stands for itself"),
        pytest.param("topology.kubernetes.io/region", False, id="another key"),
    ],
)
def test_one_slip(key, matches):
    assert bool(re.search(cel.one_slip(ZONE), key)) is matches


@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_one_slip_is_one_of_the_rule(word, key):
    if word != key and word:
        assert bool(re.search(cel.one_slip(word), key)) is (nearest(key, [word], 1) == word)
