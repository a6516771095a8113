"""Every name that Kubernetes, its neighbours or we gave a meaning stands in one module."""

import ast
import re
from pathlib import Path

import pytest

from webhook.core.api import well_known

PACKAGE = Path(__file__).resolve().parents[3] / "webhook"
# A key with a prefix of these projects; an API version has the same form.
KEY = re.compile(r"[a-z0-9.-]*\b(?:kubernetes\.io|evenspread\.io|karpenter\.sh)/(?!v\d)[A-Za-z0-9._-]+")
NAMES = {name: value for name, value in vars(well_known).items() if name.isupper() and isinstance(value, str)}
# Words of other vocabularies too: a field of any object, a namespace.
ANYWHERE = {well_known.NODE_NAME_FIELD, well_known.DEFAULT_NAMESPACE}
# The example is data, written as a user would.
MODULES = sorted({*PACKAGE.rglob("*.py")} - {Path(well_known.__file__)} - {*(PACKAGE / "example").rglob("*.py")})


def texts(path):
    """The texts of a module that are whole values: no docstrings, no parts of sentences."""
    tree = ast.parse(path.read_text())
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts | said:
            yield node.value


def test_no_name_has_two_meanings():
    assert len({*NAMES.values()}) == len(NAMES)


@pytest.mark.slow
def test_no_other_module_spells_a_well_known_name():
    known = {*NAMES.values()} - ANYWHERE
    spelt = {path: {text for text in texts(path) if text in known or KEY.fullmatch(text)} for path in MODULES}
    assert {path: found for path, found in spelt.items() if found} == {}
