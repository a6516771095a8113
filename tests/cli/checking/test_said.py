"""Manifests with the mistakes that people make, each beside its right twin: exactly this is said of them."""

import re

import pytest
from cli.said import MANIFESTS, names, said

from webhook.core.rules.rule_set import API_RULES, BY_ID

NAMES = names()


@pytest.mark.parametrize("name", NAMES)
def test_exactly_this_is_said(name):
    assert said(name) == (MANIFESTS / f"{name}.said").read_text()


def test_the_manifests_cover_every_api_rule():
    assert len(NAMES) >= 60
    files = {path.name.partition(".")[0] for path in MANIFESTS.iterdir()}
    assert files == set(NAMES), "every manifest has a twin"
    every = "".join(path.read_text() for path in MANIFESTS.glob("*.said"))
    spoken = set(re.findall(r"^\d\S* \w+ (\S+)", every, re.MULTILINE))
    assert spoken <= BY_ID.keys()
    assert spoken >= API_RULES


@pytest.mark.parametrize("name", NAMES)
def test_the_right_twin_of_a_manifest_has_no_finding(name):
    wrong, right = (MANIFESTS / f"{name}.said").read_text().split(f"--- {name}.right.yaml\n")
    assert wrong != "exit code 0\n"
    assert right == "exit code 0\n"
    first = (MANIFESTS / f"{name}.yaml").read_text().partition("\n")[0]
    assert re.fullmatch(r"# [A-Za-z].*\.", first), "the first line says what is wrong"
