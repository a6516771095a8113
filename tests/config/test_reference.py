from config.reference import PAGE, page

from webhook.config import ConfigError, load_policy, parse_policy
from webhook.config.schema_checks import fields, schema
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


def test_the_schema_knows_every_rule():
    assert schema()["$defs"]["ruleId"]["enum"] == [rule.id for rule in RULES]


def test_every_field_is_described():
    assert [path for path, part in fields() if not part.get("description", "").endswith((".", "nothing."))] == []
