"""Nothing in the core decides by the words of a reason: `Missing` is what it compares."""

import ast
from pathlib import Path

import pytest

CORE = Path("webhook/core")
# These examine JSON that somebody else wrote: any value may be a string there.
FOREIGN_JSON = {
    "api/quantity.py",
    "apiserver/field_errors.py",
    "apiserver/go_json.py",
    "groups/reading.py",
    "rules/frame/api_errors.py",
    "rules/frame/field_names.py",
    "rules/constraint/unread_constraints.py",
    "workloads/reading.py",
    "yaml_text.py",
}
WORDS = {"missing", "reason.text"}
KINDS = "facts.missing"  # of objects that the cluster lacks
SEARCHES = {"startswith", "endswith", "find", "index", "partition", "rpartition", "removeprefix", "removesuffix"}


def asks_for_text(node):
    """``isinstance(…, str)``, alone or among other types."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"):
        return False
    return any(isinstance(each, ast.Name) and each.id == "str" for each in ast.walk(node.args[1]))


def returns_text_or_more(node):
    """``-> X | str``, where the text is a reason: ``str | None`` is a text."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or not isinstance(node.returns, ast.BinOp):
        return False
    return "str" in (parts := ast.unparse(node.returns).split(" | ")) and not set(parts) <= {"str", "None"}


def reads_words(node):
    """Whether the expression is the text of a reason."""
    if not isinstance(node, ast.Attribute) or ast.unparse(node) == KINDS:
        return False
    return any(ast.unparse(node).endswith(f".{each}") for each in WORDS)


def decides_by_words(node):
    """A comparison or a search in the text of a reason."""
    if isinstance(node, ast.Compare):
        return any(map(reads_words, (node.left, *node.comparators)))
    search = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SEARCHES
    return search and reads_words(node.func.value)


def lines(text, wrong):
    """The lines with such a node."""
    return [node.lineno for node in ast.walk(ast.parse(text)) if wrong(node)]


@pytest.mark.parametrize("wrong", [asks_for_text, returns_text_or_more, decides_by_words])
@pytest.mark.slow
def test_the_core_decides_by_types(wrong):
    found = {str(path.relative_to(CORE)): lines(path.read_text(), wrong) for path in CORE.rglob("*.py")}
    files = {path for path, numbers in found.items() if numbers}
    assert files == (FOREIGN_JSON if wrong is asks_for_text else set())


@pytest.mark.parametrize(
    ("text", "wrong", "expected"),
    [
        pytest.param("isinstance(plan, str)", asks_for_text, [1], id="a type test"),
        pytest.param("isinstance(plan, (bytes, str))", asks_for_text, [1], id="among others"),
        pytest.param("isinstance(plan, Reason)", asks_for_text, [], id="of another type"),
        pytest.param("def plan() -> Plan | str: ...", returns_text_or_more, [1], id="a plan or words"),
        pytest.param("def plan() -> Plan | str | None: ...", returns_text_or_more, [1], id="a plan, words or nothing"),
        pytest.param("def name() -> str | None: ...", returns_text_or_more, [], id="a text"),
        pytest.param("each.missing.endswith(SEARCH)", decides_by_words, [1], id="a search"),
        pytest.param("each.missing in TOO_LARGE", decides_by_words, [1], id="a membership"),
        pytest.param("why.reason.text == NO_TIME", decides_by_words, [1], id="a comparison"),
        pytest.param("each.reason.kind in OF_SIZE", decides_by_words, [], id="by the kind"),
    ],
)
def test_the_test_can_fail(text, wrong, expected):
    assert lines(text, wrong) == expected
