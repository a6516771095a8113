"""Writes rules' ids and defaults into the schema, and from it the page: ``python tests/config/reference.py``."""

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

evenspread reads one YAML file, usually mounted from a ConfigMap:

```yaml
apiVersion: config.evenspread.io/v1alpha1
kind: SpreadPolicy
ceiling: warn
```

[example-policy.yaml](example-policy.yaml) has every field with a comment. An editor that knows JSON Schema completes
and checks the file with `webhook/config/policy.schema.json`.

## Faults

All faults are reported at once, each with line, column and path, and the process exits with 2 before it opens a socket:

```
policy.yaml:3:1: ceilling: unknown field; did you mean "ceiling"?
policy.yaml:4:9: rules.selector-not-sef: unknown rule; did you mean "selector-not-self"?
policy.yaml:5:15: maxStaleness: must be a duration such as 60s or 1m30s, is the number 60
```

Warnings have the same form after `warning:` and stop nothing: an exemption that is over, an entry that an earlier one
hides, `matchLabelKeys` of a default while `defaults.matchLabelKeys` is off.

- `off`, `no` and `false` are the same to YAML, and all mean `off` where a field knows it. `on` means nothing here.
- A field without a value is as if it were not there.
- A key that stands twice is a fault, and so are a second document, an alias in its own anchor, and a file above 1 MiB.

## Changes while running

A changed file is read again, within a moment of the swap of a mounted ConfigMap or half a second after the last write
to a plain file. A file that cannot be used changes nothing: the last good one holds, and the log, the metric
`evenspread_config_valid` and the readiness detail say so until the file is good again.

## Which ceiling holds

The mode of a rule is the one in `rules`, else the rule's own; the ceiling caps it. For a namespace the ceiling is

1. `off` if the global `ceiling` is `off`: the kill switch,
2. else that of the first entry of `namespaces` that matches,
3. else the global `ceiling`.

The Namespace's label `evenspread.io/ceiling` can then change the second and third, if it is a mode. Everybody who may
edit the Namespace can set it, so `namespaceLabel` decides what it may do:

| `namespaceLabel` | a label with a higher mode | a label with a lower mode |
|---|---|---|
| `raise`: the default where the global ceiling or the namespace's entry is `deny` | counts | is ignored |
| `any`: the default elsewhere | counts | counts |
| `none` | is ignored | is ignored |

## Process settings

Where the process listens and finds its files is no matter of policy: those are flags of `evenspread webhook`, and each
can stand in the environment.

SETTINGS
## Fields

What has neither a default nor *required* is absent unless it is given. `schedulerConfiguration` counts where one pod is
tried (`explain`, bare pods at admission).
"""


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
        return "this word"
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
