import json
import re

import pytest
import yaml
from config.reference import EDITORS, PAGE, ROOT, SCHEMA, editors_schema, page, with_defaults, with_rules
from jsonschema import Draft7Validator

from webhook.config import ConfigError, load_policy, parse_policy
from webhook.config.schema_checks import fields, schema
from webhook.core.policy.policy import Policy
from webhook.core.rules.rule_set import RULES

EXAMPLE = PAGE.parent / "example-policy.yaml"


def test_the_page_says_what_the_schema_says():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make docs"


def test_the_faults_on_the_page_are_those_that_users_see():
    text = (
        "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\n"
        "ceilling: warn\nrules: {selector-not-sef: deny}\nmaxStaleness: 60\n"
    )
    try:
        parse_policy(text, file="policy.yaml")
    except ConfigError as error:
        shown = error.render()
    assert f"```\n{shown}\n```\n" in page()


def test_the_example_loads_without_a_word():
    assert load_policy(EXAMPLE, today="2026-11-21").warnings == ()


def test_the_example_has_every_field():
    text = EXAMPLE.read_text(encoding="utf-8")
    refused = {"defaults.defaultConstraints[].labelSelector", "defaults.overrides[].defaultConstraints[].labelSelector"}
    missing = [path for path, _part in fields() if f"{path.rpartition('.')[2]}:" not in text and path not in refused]
    assert missing == []


def test_every_pattern_has_words_for_its_fault():
    assert [path for path, part in fields() if "pattern" in part and "x-must" not in part] == []


def test_the_schema_knows_every_rule():
    assert schema()["$defs"]["ruleId"]["enum"] == [rule.id for rule in RULES]
    assert SCHEMA.read_text(encoding="utf-8") == with_rules(SCHEMA.read_text(encoding="utf-8")), "run: make docs"


def test_the_ids_of_rules_are_all_that_is_written_into_the_schema():
    text = SCHEMA.read_text(encoding="utf-8")
    older = text.replace(f'        "{RULES[0].id}",\n', "").replace(f'"{RULES[-1].id}"\n', '"gone"\n')
    assert older.count("\n") == text.count("\n") - 1
    assert with_rules(older) == text


def test_the_defaults_of_the_policy_are_written_into_the_schema():
    text = SCHEMA.read_text(encoding="utf-8")
    assert with_defaults(text) == text, "run: make docs"
    older = text.replace('"default": "warn"', '"default": null').replace('"default": "60s"', '"default": 9')
    assert older.replace('"default": "own-namespace"', '"default": null') != older != text
    assert with_defaults(older.replace('"default": "own-namespace"', '"default": null')) == text


def test_the_defaults_in_the_schema_are_those_of_the_policy():
    written = {}
    for path, part in fields():
        if part.get("default") not in (None, {}) and "[]" not in path:
            *above, name = path.split(".")
            place = written
            for each in above:
                place = place.setdefault(each, {})
            place[name] = part["default"]
    assert written["messages"]["detail"] == "own-namespace"
    said = {"apiVersion": "config.evenspread.io/v1alpha1", "kind": "SpreadPolicy", **written}
    assert parse_policy(yaml.safe_dump(said), today="2026-11-21").policy == Policy()


def test_every_field_is_described():
    assert [path for path, part in fields() if not part.get("description", "").endswith((".", "nothing."))] == []


def test_the_schema_of_editors_is_written_anew():
    assert json.loads(EDITORS.read_text(encoding="utf-8")) == editors_schema(), "run: make docs"


def test_it_has_the_form_of_json_schema_store():
    text = EDITORS.read_text(encoding="utf-8")
    Draft7Validator.check_schema(json.loads(text))
    assert re.findall(r'"(?:\$defs|x-[a-z-]+)"', text) == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        pytest.param({}, None, id="the example"),
        pytest.param({"ceilling": "warn"}, [], id="an unknown field"),
        pytest.param({"ceiling": "warm"}, ["ceiling"], id="an unknown mode"),
        pytest.param({"rules": {"selector-null": "no"}}, ["rules", "selector-null"], id="below a reference"),
        pytest.param({"rules": {"selector-nul": "off"}}, ["rules"], id="an unknown rule"),
    ],
)
def test_editors_find_the_same_faults(change, path):
    validator = Draft7Validator(json.loads(EDITORS.read_text(encoding="utf-8")))
    # Editors read a date and an unquoted off as text.
    example = {**yaml.safe_load(EXAMPLE.read_text(encoding="utf-8")), "scaleIn": "off"}
    example["rules"] = {"selector-too-wide": "off"}
    written = json.loads(json.dumps(example, default=str)) | change
    assert [[*fault.path] for fault in validator.iter_errors(written)] == ([] if path is None else [path])


def test_the_modeline_of_the_pages_names_it():
    pages = [ROOT / "docs" / name for name in ("schemas.md", "cli/config-file.md")]
    lines = {
        line for each in pages for line in re.findall(r"^# yaml-language-server: .*$", each.read_text(), re.MULTILINE)
    }
    assert lines == {f"# yaml-language-server: $schema={editors_schema()['$id']}"}
