import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.yaml_text import block, block_lines, block_scalar
from webhook.manifests.reading.go_yaml import read_document

PRINTABLE = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")) | st.sampled_from(" :#-'\"\\"))
SCALARS = PRINTABLE | st.integers(-(2**53), 2**53) | st.booleans() | st.none()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PRINTABLE, inner, max_size=3), max_leaves=12
)
TOPS = st.lists(VALUES, min_size=1, max_size=3) | st.dictionaries(PRINTABLE, VALUES, min_size=1, max_size=3)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("app", "app"),
        ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("a rollout (maxSkew 1)", "a rollout (maxSkew 1)"),
        ("y", '"y"'),
        ("On", '"On"'),
        ("null", '"null"'),
        ("1e3", '"1e3"'),
        ("0o17", '"0o17"'),
        ("2026-01-01", '"2026-01-01"'),
        ("", '""'),
        ("a: b", '"a: b"'),
        ("a #b", '"a #b"'),
        ("a ", '"a "'),
        ("é", '"é"'),
        ("set -e\nls", r'"set -e\nls"'),
        ("\x7f\u2028", r'"\u007f\u2028"'),
        ({}, "{}"),
        ([], "[]"),
        (True, "true"),
        (None, "null"),
        (7, "7"),
    ],
)
def test_scalars(value, text):
    assert block_scalar(value) == text


@pytest.mark.parametrize(("indent", "margin"), [(0, ""), (2, "  ")])
def test_lists_stand_where_the_file_has_them(indent, margin):
    lines = block_lines({"a": [{"b": 1, "c": ["x"]}, "y z"]}, indent=indent)
    nested = [f"{margin}- b: 1", f"{margin}  c:", f"{margin}  {margin}- x", f"{margin}- y z"]
    assert [*lines] == ["a:", *nested]


def test_a_block_ends_with_a_line_break():
    assert block({"a": [], "b": {"c": "08"}}) == 'a: []\nb:\n  c: "08"\n'
    assert block([]) == "[]\n"


@pytest.mark.slow
@given(TOPS, st.integers(0, 4))
def test_go_yaml_reads_what_was_written(value, indent):
    text = "\n".join(block_lines(value, indent=indent)) + "\n"
    assert read_document(text.encode()).value == value


@given(TOPS)
def test_a_yaml_1_1_reader_reads_what_was_written(value):
    text = "\n".join(block_lines(value))
    assert msgspec.json.encode(yaml.load(text, Loader=yaml.CSafeLoader)) == msgspec.json.encode(value)
