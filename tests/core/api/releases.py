"""Writes the table of releases into docs/releases.md: ``PYTHONPATH=tests python tests/core/api/releases.py``."""

import gzip
import json
import re
from pathlib import Path

from webhook.core.api import gates
from webhook.core.api.version import parse_version

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "docs" / "releases.md"
CORE = ROOT / "webhook" / "core"
VECTORS = ROOT / "conformance" / "vectors"
_BLOCK = re.compile(r"<!-- releases -->\n.*?<!-- end -->", re.DOTALL)

GATES = {name: gate for name, gate in vars(gates).items() if isinstance(gate, gates.Gate)}

# Which tests hold each change: all of them stand on both sides of it.
TESTS = {
    "RESIZES_IN_PLACE": ("test_what_a_pod_holds_while_it_is_resized",),
    "BALANCE_IGNORES_NO_REQUEST": ("test_balance",),
    "MERGES_SPREAD_KEYS": ("test_a_key_in_matchlabelkeys_and_the_selector", "test_the_merge_came_with_1_34"),
    "VALIDATES_STATEFUL_SETS": ("test_before_1_34_a_stateful_set_might_hold_anything",),
    "SHOWS_JSON": ("test_before_1_34_values_of_named_types_are_shown_in_go_syntax",),
    "POD_LEVEL_RESOURCES": ("test_pod_level_requests_count_since_1_34", "test_pod_level_requests_are_filled_in"),
    "MATCHES_ATTRIBUTES_CLASS": (
        "test_attributes_classes_are_compared_since_1_34",
        "test_a_claim_with_an_attributes_class_was_an_error",
    ),
    "SHORT_TAINT_REASON": ("test_the_taint_is_named_up_to_a_patch_level",),
    "RESIZES_AS_A_WHOLE": ("test_the_largest_of_each_container_or_of_the_pod",),
    "SIDECARS_HAVE_PORTS": ("test_ports_of_sidecars_were_free",),
    "NAMES_LEFT_OUT": ("test_nodes_that_nobody_looked_at_were_not_counted",),
    "COUNTS_SIDECAR_RESTARTS": ("test_restarts_of_sidecars_count_since_1_32",),
    "LOCAL_VOLUMES_NAME_NODES": ("test_local_volumes_left_their_own_nodes_alone",),
    "VOLUME_AFFINITY_REASON": ("test_a_volume_elsewhere",),
    "CLAIM_IN_USE_REASON": ("test_a_claim_of_another_pod",),
    "FIT_IS_UNRESOLVABLE": ("test_preemption_was_thought_to_help_whatever_is_asked",),
    "NAMESPACES_NOT_MERGED": ("test_a_namespace_selector_that_nothing_satisfies_was_for_every_namespace",),
    "NAMES_EMBEDDED_FIELDS": ("test_embedded_structs_were_not_named",),
    "SCHEME_LINE_110": ("test_the_line_of_the_scheme",),
    "SCHEME_LINE_111": ("test_the_line_of_the_scheme",),
    "SCHEME_LINE_110_AGAIN": ("test_the_line_of_the_scheme",),
    "FINDS_CLAIMS_BY_LISTER": ("test_a_claim_that_cannot_be_got",),
    "DYNAMIC_ARGS": ("test_the_kinds_of_args_follow_the_release",),
    "DISTINCT_CAUSES": ("test_causes_were_repeated",),
    "LABEL_KEYS_IN_BYTES": ("test_the_words_changed_in_1_35",),
    "SCORES_CHANGE_OF_BALANCE": ("test_balance",),
    "RESIZES_POD_LEVEL": ("test_what_a_pod_as_a_whole_holds_counts_since_1_36",),
    "FILLS_POD_LEVEL_REQUESTS": (
        "test_pod_level_requests_are_filled_in",
        "test_the_limits_of_the_pod_as_a_whole_since_1_37",
    ),
    "NEEDS_THE_DRIVER": ("test_a_driver_may_insist_on_being_installed_since_1_37",),
    "ORDINALS_UNAVAILABLE": ("test_before_1_37_one_pod_is_missing_at_most",),
    "NODE_NAME_BEFORE_FILTERS": (
        "test_a_named_node_is_asked_for_before_filters_since_1_37",
        "test_the_name_of_a_node_was_asked_for_second",
    ),
    "COUNTS_EMPTY_SELECTOR": ("test_the_empty_selector",),
    "HAS_MUTATING_POLICIES": ("test_the_release_of_the_api_server",),
    "MUTATING_POLICIES_ARE_STABLE": ("test_the_version_of_the_objects",),
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


def recorded(case):
    """A recorded case by its name: its release, and its line."""
    name, _, id_ = case.partition("#")
    with gzip.open(VECTORS / name) as lines:
        version = parse_version(json.loads(next(lines))["kubernetesVersion"])
        return version, next(each for each in lines if f'"id":"{id_}"'.encode() in each.replace(b'": "', b'":"'))


def span(gate):
    """The releases of a change: from the first that has it to the last, with patch levels where they matter."""
    first = f"{gate.since}.{gate.since.patch}" if gate.since.patch else str(gate.since)
    if gate.until is None:
        return first
    last = f"1.{gate.until.minor - 1}" if not gate.until.patch else f"{gate.until}.{gate.until.patch - 1}"
    return f"{first} to {last}"


def table():
    rows = ["| since | change | file in `webhook/core/` | source | recorded case | test |", "|---|---|---|---|---|---|"]
    for name, gate in sorted(GATES.items(), key=lambda item: item[1].since):
        where, tests = (", ".join(f"`{each}`" for each in names) for names in (asked_in(name), tests_of(name)))
        case = f"`{gate.case}`" if gate.case else "announced" if gate.announced else "none"
        rows.append(f"| {span(gate)} | {gate.what} | {where} | {gate.source} | {case} | {tests} |")
    return "\n".join(rows)


def with_releases(text):
    """The page with the table written anew."""
    return _BLOCK.sub(lambda _: f"<!-- releases -->\n{table()}\n<!-- end -->", text)


if __name__ == "__main__":
    FILE.write_text(with_releases(FILE.read_text()))
