"""Writes what the chart's files say twice: ``python tests/chart/reference.py``.

- values.schema.json: the schema of `config` is that of the SpreadPolicy;
- names.json: the names that a values file may hold, for the template that asks "did you mean";
- _kinds.tpl and validatingwebhook.yaml: the kinds that are sent, and what their controllers make, from
  `workloads.kinds`;
- README.md: the table of values from the schema and the defaults, the table of permissions from the rendered role.
"""

import json
import re
import textwrap
from pathlib import Path

import helm_python
import yaml

from webhook.cluster.writing.registration import configurations
from webhook.config.schema_checks import resolved, schema
from webhook.core.policy.defaults import Defaults

CHART = Path(__file__).parents[2] / "charts" / "evenspread"
SCHEMA = CHART / "values.schema.json"
PAGE = CHART / "README.md"
NAMES = CHART / "names.json"
WEBHOOK = CHART / "templates" / "validatingwebhook.yaml"
KINDS = CHART / "templates" / "_kinds.tpl"
RULE = "#/$defs/ruleId"
_BLOCK = r"(<!-- {}: written by tests/chart/reference.py -->\n).*?(<!-- end -->)"


def with_policy(text):
    """The values' schema with the policy's in it: Helm refuses a bad policy before anything is changed."""
    values, policy = json.loads(text), _for_helm(schema())
    own = {name: policy["properties"][name] for name in policy["properties"] if name not in {"apiVersion", "kind"}}
    place = values["properties"]["config"]
    place.update(type="object", properties=own)
    values["properties"]["teams"]["additionalProperties"] = _for_helm(_team())
    values["$defs"] = {name: part for name, part in policy["$defs"].items() if name != "ruleId"}
    return json.dumps(_with_any_name(values), indent=2) + "\n"


def _team():
    """What a team may say: of the policy's parts those that name namespaces, without these names."""
    parts = schema()["$defs"]
    exemption, override = parts["exemption"], parts["override"]
    match = _without(resolved(exemption["properties"]["match"]), "namespace", "namespaceSelector")
    match.pop("minProperties")
    return {
        "type": "object",
        "required": ["namespaces"],
        "properties": {
            "namespaces": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/objectName"}},
            "ceiling": {"$ref": "#/$defs/mode"},
            "exemptions": {
                "type": "array",
                "items": {
                    **exemption,
                    "required": ["rule", "reason"],
                    "properties": {**exemption["properties"], "match": match},
                },
            },
            "overrides": {"type": "array", "items": _without(override, "namespaceSelector")},
        },
    }


def _without(part, *names):
    kept = {name: inner for name, inner in part["properties"].items() if name not in names}
    return {**part, "properties": kept}


def _with_any_name(node):
    """Without what refuses an unknown name or rule: by names.json the chart also says which was meant."""
    if isinstance(node, list):
        return [_with_any_name(each) for each in node]
    if not isinstance(node, dict):
        return node
    if node.get("$ref") == RULE:
        return {name: value for name, value in node.items() if name != "$ref"} | {"type": "string"}
    drops = {"propertyNames"} if node.get("propertyNames") == {"$ref": RULE} else set()
    drops |= {"additionalProperties"} if node.get("additionalProperties") is False else set()
    return {name: _with_any_name(value) for name, value in node.items() if name not in drops}


def known_names(text):
    """Names that values may have, given their schema; what names.json holds."""
    described = json.loads(text)
    teams = {"additionalProperties": _team()}
    own = described["properties"] | {"config": schema(), "teams": teams}
    return json.dumps(_known({"properties": own}), indent=1) + "\n"


def _known(part):
    if part.get("$ref") == RULE:
        return {"words": schema()["$defs"]["ruleId"]["enum"]}
    part = resolved(part)
    if part.get("propertyNames") == {"$ref": RULE}:
        return {"names": {rule: {} for rule in schema()["$defs"]["ruleId"]["enum"]}}
    if "properties" in part:
        left = {"apiVersion", "kind"} if part is schema() else set()
        return {"names": {name: _known(inner) for name, inner in part["properties"].items() if name not in left}}
    if part.get("additionalProperties") and (any_ := _known(part["additionalProperties"])):
        return {"any": any_}
    return {"each": each} if "items" in part and (each := _known(part["items"])) else {}


def _for_helm(node):
    """Without our own keywords; `off` may be false, which is how YAML reads it in a values file."""
    if isinstance(node, list):
        return [_for_helm(each) for each in node]
    if not isinstance(node, dict):
        return node
    made = {name: _for_helm(value) for name, value in node.items() if not name.startswith("x-")}
    if "off" in made.get("enum", ()):
        made["enum"] = [*made["enum"], False]
    return made


def _registered():
    (registered,) = configurations("https://x", b"", Defaults())[0]["webhooks"]
    return registered


def with_kinds(text):
    """The helper with the kinds as `evenspread webhook --kubeconfig` registers them."""
    # Pods, scales and revisions have rules of their own in the template.
    sent = [f'"{rule["apiGroups"][0]}" "{" ".join(rule["resources"])}"' for rule in _registered()["rules"][3:]]
    text, rules = re.subn(
        r"(\$resources := dict\n).*?(\n  -}})",
        _within("\n".join(f"    {each}" for each in sent)),
        text,
        flags=re.DOTALL,
    )
    assert rules == 1
    return text


def with_made(text):
    """The template with what controllers make of those kinds."""
    registered = _registered()
    expression = next(
        each["expression"] for each in registered["matchConditions"] if "owner.kind in [" in each["expression"]
    )
    made = re.search(r"owner\.kind in \[.*?\]", expression)[0]
    # No line ends within a quoted kind.
    whole = re.sub(r"(?<=\w) of (?=\w)", "\u00a0of\u00a0", made)
    lines = textwrap.fill(
        f"owner.apiVersion.split('/')[0] + '/' + {whole}",
        110,
        subsequent_indent=" " * 10,
        break_long_words=False,
        break_on_hyphens=False,
    )
    text, lists = re.subn(
        r"owner\.apiVersion\.split\('/'\)\[0\] \+ '/' \+ owner\.kind in \[.*?\]",
        lambda _: lines.replace("\u00a0", " "),
        text,
        flags=re.DOTALL,
    )
    assert lists == 1
    return text


def _within(inner):
    return lambda block: block[1] + inner + block[2]


def with_tables(text):
    for name, table in (("values", _values()), ("permissions", _permissions())):
        text, found = re.subn(_BLOCK.format(name), _within(table), text, flags=re.DOTALL)
        assert found == 1, name
    return text


def _values():
    values, described = yaml.safe_load((CHART / "values.yaml").read_text()), json.loads(SCHEMA.read_text())
    rows = [_row(*each) for each in _leaves(described["properties"], values)]
    return "\n".join(["| value | default | meaning |", "|---|---|---|", *rows, ""])


def _leaves(properties, values, prefix=""):
    for name, field in properties.items():
        if name == "global":
            continue
        path = f"{prefix}{name}"
        if "description" in field:
            yield path, field, values[name]
        else:
            yield from _leaves(field["properties"], values[name], f"{path}.")


def _row(path, field, default):
    shown = json.dumps(default, separators=(", ", ": ")) if isinstance(default, dict | list) else str(default)
    if isinstance(default, bool):
        shown = str(default).lower()
    takes = f" One of {', '.join(f'`{each}`' for each in field['enum'])}." if "enum" in field else ""
    return f"| `{path}` | {f'`{shown}`' if shown else ''} | {field['description']}{takes} |"


def _permissions():
    with helm_python.Chart.load(CHART) as chart:
        rendered = chart.render({}, name="evenspread", namespace="evenspread")
    texts = [text for file, text in rendered.items() if file.endswith(".yaml")]
    made = [each for text in texts for each in yaml.safe_load_all(text) if each]
    roles = [each for each in made if each["kind"] in {"ClusterRole", "Role"}]
    rows = [
        f"| {role['metadata']['labels']['app.kubernetes.io/component']}"
        f" | {', '.join(group or 'core' for group in rule['apiGroups'])} | {', '.join(rule['resources'])}"
        f" | {', '.join(f'`{name}`' for name in rule.get('resourceNames', ())) or 'all'} | {', '.join(rule['verbs'])} |"
        for role in sorted(roles, key=_role_first)
        for rule in role["rules"]
    ]
    return "\n".join(["| role | API group | resources | which | verbs |", "|---|---|---|---|---|", *rows, ""])


def _role_first(role):
    """The webhook first, and what is read before what is written."""
    component = role["metadata"]["labels"]["app.kubernetes.io/component"]
    return component != "webhook", role["kind"] != "ClusterRole"


if __name__ == "__main__":
    SCHEMA.write_text(with_policy(SCHEMA.read_text()))
    NAMES.write_text(known_names(SCHEMA.read_text()))
    KINDS.write_text(with_kinds(KINDS.read_text()))
    WEBHOOK.write_text(with_made(WEBHOOK.read_text()))
    PAGE.write_text(with_tables(PAGE.read_text()))
