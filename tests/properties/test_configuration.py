import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from webhook.config import ConfigError, Loaded, parse_policy
from webhook.config.schema_checks import fields

NAMES = sorted({part for path, _schema in fields() for part in path.replace("[]", "").split(".")})
WORDS = st.sampled_from(["off", "on", "deny", "inject", "List", "System", "60s", "1.0", "2027-03-31", "{}", "x-y", ""])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | WORDS, inner, max_size=5),
    max_leaves=25,
)


def outcome(text):
    try:
        return parse_policy(text, file="p", today="2026-11-21")
    except ConfigError as error:
        return error


class TestAnyTextGivesAPolicyOrFaults:
    """Reading never raises anything but ConfigError, and a ConfigError always says something."""

    @pytest.mark.slow
    @given(st.text())
    @example("[" * 5000)
    @example("a: &a\n  <<: *a\n")
    @example("\x85")
    def test_any_text(self, text):
        result = outcome(text)
        assert isinstance(result, Loaded) or result.render()

    @pytest.mark.slow
    @given(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6))
    def test_any_yaml_in_our_own_words(self, value):
        head = {"apiVersion": "config.evenspread.io/v1alpha1", "kind": "SpreadPolicy"}
        result = outcome(yaml.safe_dump(head | value, allow_unicode=True))
        assert isinstance(result, Loaded) or all(len(line) < 500 for line in result.render().split("\n"))


class TestOneFaultNeverHidesAnother:
    """Two independent mistakes give the faults of both."""

    @given(st.permutations(["ceiling: x", "capacity: x", "maxStaleness: x", "rules: {x: deny}", "zzz: 1"]))
    def test_faults_add_up(self, lines):
        head = "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\n"
        assert len(outcome(head + "\n".join(lines)).faults) == 5
