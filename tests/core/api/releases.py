"""Writes the table of releases into docs/exactness.md: ``PYTHONPATH=tests python tests/core/api/releases.py``."""

import re
from pathlib import Path

from webhook.core.api import gates

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "docs" / "exactness.md"
CORE = ROOT / "webhook" / "core"
_BLOCK = re.compile(r"<!-- releases -->\n.*?<!-- end -->", re.DOTALL)

GATES = {name: gate for name, gate in vars(gates).items() if isinstance(gate, gates.Gate)}

# Which tests hold each change: all of them stand on both sides of it.
TESTS = {
    "READS_MATCH_LABEL_KEYS": ("test_before_1_27_no_key_was_looked_at",),
    "MERGES_AFFINITY_KEYS": ("test_keys_are_merged_into_selectors", "test_since_keys_of_terms_are_merged"),
    "RESIZES_IN_PLACE": ("test_what_a_pod_holds_while_it_is_resized",),
    "BALANCE_IGNORES_NO_REQUEST": ("test_balance",),
    "MERGES_SPREAD_KEYS": ("test_a_key_in_matchlabelkeys_and_the_selector", "test_the_merge_came_with_1_34"),
    "VALIDATES_STATEFUL_SETS": ("test_before_1_34_a_stateful_set_might_hold_anything",),
    "SHOWS_JSON": ("test_before_1_34_values_of_named_types_are_shown_in_go_syntax",),
    "POD_LEVEL_RESOURCES": ("test_pod_level_requests_count_since_1_34", "test_pod_level_requests_are_filled_in"),
    "MATCHES_ATTRIBUTES_CLASS": ("test_attributes_classes_are_compared_since_1_34",),
    "SHORT_TAINT_REASON": ("test_the_reason_for_taints_was_shortened",),
    "LABEL_KEYS_IN_BYTES": ("test_the_words_changed_in_1_35",),
    "SCORES_CHANGE_OF_BALANCE": ("test_balance",),
    "RESIZES_POD_LEVEL": ("test_what_a_pod_as_a_whole_holds_counts_since_1_36",),
    "FILLS_POD_LEVEL_REQUESTS": ("test_pod_level_requests_are_filled_in",),
    "NEEDS_THE_DRIVER": ("test_a_driver_may_insist_on_being_installed_since_1_37",),
    "ORDINALS_UNAVAILABLE": ("test_before_1_37_one_pod_is_missing_at_most",),
    "NODE_NAME_BEFORE_FILTERS": ("test_a_named_node_is_asked_for_before_filters_since_1_37",),
    "COUNTS_EMPTY_SELECTOR": ("test_the_empty_selector",),
}


def tests_of(name):
    """The tests of a gate. Errors: LookupError, which says what is to be done."""
    if name not in TESTS:
        raise LookupError(f"{name} of gates.py has no test: name those on both sides of it in TESTS of {__file__}")
    return TESTS[name]


def asked_in(name):
    """The modules of the core that ask for a gate, in the order of their paths."""
    asks = re.compile(rf"\bgates\.{name}\b")
    paths = sorted({*CORE.rglob("*.py")} - {CORE / "api" / "gates.py"})
    return [path.relative_to(CORE).as_posix() for path in paths if asks.search(path.read_text())]


def table():
    rows = ["| since | what | where (`webhook/core/`) | derived from | test |", "|---|---|---|---|---|"]
    for name, gate in sorted(GATES.items(), key=lambda item: item[1].since):
        where, tests = (", ".join(f"`{each}`" for each in names) for names in (asked_in(name), tests_of(name)))
        rows.append(f"| {gate.since} | {gate.what} | {where} | {gate.source} | {tests} |")
    return "\n".join(rows)


def with_releases(text):
    """The page with the table written anew."""
    return _BLOCK.sub(lambda _: f"<!-- releases -->\n{table()}\n<!-- end -->", text)


if __name__ == "__main__":
    FILE.write_text(with_releases(FILE.read_text()))
