"""Writes rules' ids and defaults into the schema, and from it the page and the editors' schema.

Run ``python tests/config/reference.py``.
"""

import json
import re
from pathlib import Path

import click
import msgspec
import yaml

from webhook.cli.commands.webhook.command import webhook as command
from webhook.config.schema_checks import resolved, schema
from webhook.core.policy.policy import Policy
from webhook.core.rules.rule_set import RULES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "configuration.md"
SCHEMA = ROOT / "webhook" / "config" / "policy.schema.json"
EDITORS = ROOT / "docs" / "evenspread.schema.json"

# Mappings that stand in many places are explained once, by these names.
SHARED = {
    "#/$defs/labelSelector": "Label selector",
    "#/$defs/labelSelectorRequirement": "Label selector requirement",
}
TYPES = {
    "object": "mapping",
    "array": "list",
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "`true`, `false`",
}

HEAD = """\
# Configuration

<!-- Written by tests/config/reference.py from webhook/config/policy.schema.json; a test keeps it so. -->

evenspread reads one YAML file. In a cluster, the chart mounts it from a ConfigMap. This is a complete file:

```yaml
apiVersion: config.evenspread.io/v1alpha1
kind: SpreadPolicy
ceiling: warn
```

- [example-policy.yaml](example-policy.yaml) has every field with a comment.
- `evenspread check FILE` checks your file.
- [Your editor](schemas.md#your-editor) completes and checks it with [evenspread.schema.json](evenspread.schema.json).
- Commands find [`evenspread.yaml`](cli/config-file.md) in your repository.

## Faults

evenspread reports all faults at once, with line, column and path. It then exits with 2, before it opens a socket:

```
policy.yaml:3:1: ceilling: unknown field; did you mean "ceiling"?
policy.yaml:4:9: rules.selector-not-sef: unknown rule; did you mean "selector-not-self"?
policy.yaml:5:15: maxStaleness: must be a duration such as 60s or 1m30s, is the number 60
```

Warnings have the same form after `warning:`. evenspread starts with them. It warns of an expired exemption, of an
entry without effect after an earlier entry, and of `matchLabelKeys` in a default while `defaults.matchLabelKeys` is
off.

- `off`, `no` and `false` are equal in YAML. Fields with the value `off` accept all three. `on` has no meaning.
- A field without a value counts as missing.
- Each of these is a fault: a duplicate key, a second document, an alias in its own anchor, and a file above 1 MiB.

## Changes while running

Edit the ConfigMap or the file, and evenspread reads it again. It notices a mounted ConfigMap at once, and a plain
file half a second after the last write. If the new file is faulty, the last good file stays in use. The log, the
metric `evenspread_config_valid` and the readiness detail report the fault until you correct it.

## Which ceiling holds

A rule's mode is its entry in `rules`, or the rule's own default. The ceiling caps it. The ceiling of a namespace is
the first of these:

1. `off`, if the global `ceiling` is `off` (the kill switch),
2. the first matching entry of `namespaces`,
3. the global `ceiling`.

The Namespace's label `evenspread.io/ceiling` can replace 2 and 3. Every editor of the Namespace can set it, so
`namespaceLabel` limits the label:

| `namespaceLabel` | a label with a higher mode | a label with a lower mode |
|---|---|---|
| `raise`: the default if the global ceiling or the namespace's entry is `deny` | counts | is ignored |
| `any`: the default otherwise | counts | counts |
| `none` | is ignored | is ignored |

## Objects beyond the limits

A rule on `deny` denies these objects, unless you set `tooLarge: allow`:

| an object with more than | effect |
|---|---|
| 16 constraints and required pod affinity terms | no rule compares the object with the cluster |
| 32 resources, 128 node requirements, or 128 tolerations | no rule compares the object with the cluster |
| 256 labels in selectors, or 64 pod templates | no rule compares the object with the cluster |
| 128 constraints in all templates, or 1,024 labels, values and keys in them | no rule examines the object |
| 65,536 JSON values | evenspread does not read the object |
| 7 MiB with the old object, or less if long reviews leave no memory or time | evenspread does not read the review |

If a rule on `deny` fails because of a bug in evenspread, `tooLarge` also decides about the object.

## Process settings

Addresses and file paths are no part of the policy. Set them by flags of `evenspread webhook` or in the environment.

SETTINGS
## Fields

A field without a default and without *required* is absent until you set it. `schedulerConfiguration` applies where
evenspread places one pod: in `explain`, and for bare pods at admission.
"""


def editors_schema():
    """The schema in the form of JSON Schema Store: draft 7, no keyword next to a reference, no own keywords."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://json.schemastore.org/evenspread.json",
        **for_editors({name: value for name, value in schema().items() if name not in {"$schema", "$id"}}),
    }


def for_editors(part):
    if isinstance(part, list):
        return [for_editors(each) for each in part]
    if not isinstance(part, dict):
        return part
    kept = {
        name.replace("$defs", "definitions"): for_editors(value) for name, value in part.items() if name[:2] != "x-"
    }
    if isinstance(reference := kept.get("$ref"), str):
        target = {"$ref": reference.replace("#/$defs/", "#/definitions/")}
        del kept["$ref"]
        return {**kept, "allOf": [target]} if kept else target
    return kept


def with_rules(text):
    """The schema's text with the ids of all rules, in their order; nothing else of it changes."""
    ids = ",\n".join(f"        {json.dumps(rule.id)}" for rule in RULES)
    block = r'("x-must": "be the id of a rule",\n      "enum": \[\n)[^]]*?(\n      \])'
    text, found = re.subn(block, lambda match: match[1] + ids + match[2], text)
    assert found == 1
    return text


def with_defaults(text):
    """The schema's text with the defaults of `Policy` where it has any; nothing else of it changes."""
    policy = msgspec.to_builtins(Policy())
    policy["maxStaleness"] = f"{policy['maxStaleness']:g}s"
    parts = {name: policy.pop(name) for name in ("defaults", "annotations", "messages")}
    for indent, values in (("    ", policy), *(("        ", part) for part in parts.values())):
        for name, value in values.items():
            line = rf'(\n{indent}"{name}": {{\n(?:{indent}  .*\n)*?{indent}  "default": )(?:.*?)(,?\n)'
            text = re.sub(line, lambda match, value=value: match[1] + json.dumps(value) + match[2], text, count=1)
    return text


def page():
    """The page as it should be."""
    return HEAD.replace("SETTINGS\n", settings()) + "".join(section(title, part) for title, part in mappings())


def settings():
    """The flags of the process that have a variable."""
    shown = [
        (
            option.opts[0],
            option.envvar,
            f"{option.help} [default: {option.default}]" if option.show_default else option.help,
        )
        for option in command.params
        if isinstance(option, click.Option) and option.envvar
    ]
    rows = "".join(f"| `{flag}` | `{variable}` | {meaning} |\n" for flag, variable, meaning in shown)
    return f"| flag | environment | meaning |\n|---|---|---|\n{rows}\n"


def mappings():
    """Every mapping of the file once, by the place where it first stands; those used in many places last, by name."""
    waiting, shared, done = [("The file", "", schema())], [], set()
    while waiting:
        title, path, part = waiting.pop(0)
        yield title, part
        below = []
        for name, field in part["properties"].items():
            inner, place = resolved(field), f"{path}{name}"
            reference = field.get("$ref")
            if "items" in inner:
                reference, inner, place = inner["items"].get("$ref"), resolved(inner["items"]), f"{place}[]"
            if "properties" in inner and reference not in done:
                done.add(reference)
                among = shared if reference in SHARED else below
                among.append((SHARED.get(reference, f"`{place}`"), f"{place}.", inner))
        waiting = below + waiting
        if not waiting:
            waiting, shared = shared, []


def section(title, part):
    """One mapping: a table of its fields."""
    rows = "".join(
        row(name, resolved(field), name in part.get("required", ())) for name, field in part["properties"].items()
    )
    return f"\n### {title}\n\n| field | takes | default | meaning | example |\n|---|---|---|---|---|\n{rows}"


def row(name, field, required):
    """One field."""
    default = "*required*" if required else code(field["default"]) if "default" in field else ""
    example = code(field["examples"][0]) if "examples" in field else ""
    meaning = field["description"].replace("|", "\\|")
    return f"| `{name}` | {takes(field)} | {default} | {meaning} | {example} |\n"


def takes(field):
    """What a field takes, in words."""
    if field.get("$ref") in SHARED:
        return f"a [{SHARED[field['$ref']].lower()}](#{SHARED[field['$ref']].lower().replace(' ', '-')})"
    if "const" in field:
        return code(field["const"])
    if field.get("$ref") == "#/$defs/ruleId":
        return "the id of a rule"
    if "enum" in field:
        return ", ".join(f"`{word}`" for word in field["enum"])
    if "x-must" in field:
        return field["x-must"].removeprefix("be ")
    return TYPES[field["type"]] if "type" in field else "nothing"


def code(value):
    """A value in one line of YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, width=1000, sort_keys=False).removesuffix("...\n").strip()
    return f"`{text}`"


if __name__ == "__main__":
    SCHEMA.write_text(with_defaults(with_rules(SCHEMA.read_text(encoding="utf-8"))), encoding="utf-8")
    schema.cache_clear()
    PAGE.write_text(page(), encoding="utf-8")
    EDITORS.write_text(json.dumps(editors_schema(), indent=2) + "\n", encoding="utf-8")
