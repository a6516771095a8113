"""Code that decides as Kubernetes does says where that decides it: each function by itself, a file and a symbol."""

import ast
import re
from pathlib import Path

import pytest

CORE = Path(__file__).parents[1] / "webhook" / "core"
ROOMS = ("api", "apiserver", "defaulting", "index", "placement", "scheduler", "workloads")
FILE_AND_SYMBOL = re.compile(r"\w\.go ``\w+``")
# Public functions in modules that follow upstream, which are none of upstream's.
OURS = {
    "api/admission_objects.py": {"LimitRange.items_of_type"},  # a choice among what was read
    "api/selectors.py": {"valid_selector"},  # for who has no use for upstream's error
    "apiserver/admission_plugins.py": {"limit_ranges_disagree"},  # upstream takes them in random order
    "apiserver/go_json.py": {
        "declared_entries",
        "go_type",
        "is_plain",
    },  # the Go compiler does two; the last is a short cut
    "apiserver/validation.py": {"are_clearly_valid"},  # a short cut
    # Which defaults are in force, and the pods without them.
    "defaulting/injection.py": {"revision", "skip_reason", "opted_out"},
    "scheduler/cycle.py": {
        "verdict_of_plugin",
        "Cycle.result",
        "Cycle.verdict_of",
    },  # upstream never runs one plugin alone
    "scheduler/plugins/node_resources_fit.py": {"scarce_amounts"},  # how our index is asked
    "scheduler/plugins/node_selection.py": {"settled_nodes", "nodes_selected"},  # what rules and volumes ask
    "scheduler/not_evaluated.py": {"not_evaluated"},  # what is missing here
    # A part of what upstream takes, and problems that no pod has.
    "scheduler/problem.py": {"take_lasting", "change_problem", "without_filters", "without_limits", "without_spread"},
    "workloads/labels_at_creation.py": {"placeholder", "is_placeholder", "name_of"},  # made-up values
}


def documented(tree, above=""):
    """The docstring of every function by its dotted name, but for properties, which give a field or a part of one."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from documented(node, f"{above}{node.name}.")
        elif isinstance(node, ast.FunctionDef) and "property" not in "".join(map(ast.unparse, node.decorator_list)):
            yield f"{above}{node.name}", ast.get_docstring(node) or ""


def source_of(docstring):
    return docstring.partition("Source:")[2]


MODULES = {
    str(path.relative_to(CORE)): ast.parse(path.read_text())
    for room in ROOMS
    for path in sorted((CORE / room).rglob("*.py"))
}
FOLLOWING = [file for file, tree in MODULES.items() if ".go" in source_of(ast.get_docstring(tree) or "")]


@pytest.mark.parametrize("file", FOLLOWING)
def test_each_public_function_names_its_source_or_is_ours(file):
    public = {
        name: text for name, text in documented(MODULES[file]) if "_" not in {part[0] for part in name.split(".")}
    }
    assert {name for name, text in public.items() if not source_of(text)} == OURS.get(file, set())


@pytest.mark.parametrize("file", MODULES)
def test_a_source_is_a_file_and_a_symbol(file):
    sources = {name: source_of(text) for name, text in documented(MODULES[file]) if source_of(text)}
    assert {name: text for name, text in sources.items() if not FILE_AND_SYMBOL.search(text)} == {}


@pytest.mark.slow
def test_there_is_something_to_hold():
    assert len(FOLLOWING) > 20
    assert sum(bool(source_of(text)) for tree in MODULES.values() for _, text in documented(tree)) > 200
    assert {*OURS} <= {*FOLLOWING}
