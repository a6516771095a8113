"""Every change between releases stands once, is asked for, and has a test."""

import ast

import pytest
from core.api import releases

from webhook.conformance.vectors import compare_file
from webhook.core.api import gates
from webhook.core.api.gates import Gate
from webhook.core.api.version import ANNOUNCED, KubernetesVersion

ALWAYS, NEVER = KubernetesVersion(0, 0), KubernetesVersion(9, 9)


@pytest.mark.slow
def test_the_page_has_the_table_of_releases():
    text = releases.FILE.read_text()
    assert releases.with_releases(text) == text, "run: make docs"
    assert releases.table() in text


@pytest.mark.parametrize("name", releases.GATES)
@pytest.mark.sampled
def test_a_change_is_asked_for_and_tested(name):
    assert releases.GATES[name].since <= ANNOUNCED
    assert releases.asked_in(name)
    written = "\n".join(path.read_text() for path in (releases.ROOT / "tests").rglob("test_*.py"))
    assert [each for each in releases.tests_of(name) if f"def {each}(" not in written] == []


@pytest.mark.parametrize("name", [name for name, gate in releases.GATES.items() if gate.case])
def test_a_recorded_case_changes_with_its_gate(name, tmp_path, monkeypatch):
    gate = releases.GATES[name]
    version, line = releases.recorded(gate.case)
    file = tmp_path / "one.jsonl"
    file.write_bytes(line)
    assert compare_file(file, as_version=version)[0].agree == 1
    turned = Gate(NEVER if gate.holds(version) else ALWAYS, gate.what, gate.source)
    monkeypatch.setattr(gates, name, turned)
    assert compare_file(file, as_version=version)[0].agree == 0


def test_a_change_without_a_test_says_what_to_do():
    with pytest.raises(LookupError, match=r"NEW of .* name those on both sides of it in TESTS of"):
        releases.tests_of("NEW")
    assert releases.TESTS.keys() <= releases.GATES.keys()


def compared_with_numbers(tree):
    """Comparisons with a pair of numbers, as ``version >= (1, 34)``; and versions made of numbers."""
    for node in ast.walk(tree):
        compared = [node.left, *node.comparators] if isinstance(node, ast.Compare) else ()
        made = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "KubernetesVersion"
        values = node.args if made else [each for pair in compared if isinstance(pair, ast.Tuple) for each in pair.elts]
        if values and all(isinstance(each, ast.Constant) and isinstance(each.value, int) for each in values):
            yield ast.unparse(node)


@pytest.mark.slow
def test_no_other_module_knows_a_release():
    found = {path.name: [*compared_with_numbers(ast.parse(path.read_text()))] for path in releases.CORE.rglob("*.py")}
    assert {name for name, places in found.items() if places} == {"gates.py", "version.py"}
