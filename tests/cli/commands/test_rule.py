import json
import zipfile

import pytest
import yaml

from webhook.cli.commands import rule
from webhook.core.rules.rule_set import RULES


def test_the_list_has_every_rule_in_the_order_of_reports(run):
    code, out, err = run("rule")
    assert (code, err) == (0, "")
    lines = [line.split(maxsplit=3) for line in out.splitlines()]
    assert lines == [[each.id, each.severity, each.mode, each.title] for each in RULES]


@pytest.mark.parametrize("known", RULES, ids=lambda known: known.id)
def test_every_rule_has_a_page(run, known):
    code, out, _ = run("rule", known.id)
    assert (code, out.splitlines()[0]) == (0, known.id)
    assert out.endswith(f"\nhttps://evenspread.io/rules/{known.id}\n")


def test_a_page_in_a_terminal(run):
    lines = run("rule", "max-skew")[1].splitlines()
    assert "What you did" in lines
    assert "    kind: Rollout" in lines
    assert [line for line in lines if "```" in line or "](" in line or line.startswith("|--")] == []


def test_as_json_and_yaml(run):
    listed = json.loads(run("rule", "-o", "json")[1])
    assert listed[0] == {
        "id": "max-skew",
        "title": RULES[0].title,
        "severity": "high",
        "mode": "deny",
        "since": "1.0",
        "url": "https://evenspread.io/rules/max-skew",
    }
    described = json.loads(run("rule", "max-skew", "-o", "json")[1])
    assert {**described, "page": ""} == {**listed[0], "page": ""}
    assert described["page"].startswith("# max-skew\n")
    assert yaml.safe_load(run("rule", "max-skew", "-o", "yaml")[1]) == described


def test_an_unknown_rule(run):
    code, out, err = run("rule", "selector-nul")
    assert (code, out) == (2, "")
    assert err.endswith("no rule 'selector-nul'; did you mean 'selector-null'?\n")


def test_a_wheel_has_the_pages_beside_the_commands(run, tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "wheel.zip", "w") as made:
        made.writestr("rule_pages/max-skew.md", "# from the wheel\n")
    monkeypatch.setattr(rule.resources, "files", lambda _: zipfile.Path(tmp_path / "wheel.zip"))
    assert run("rule", "max-skew")[1].startswith("from the wheel\n")
