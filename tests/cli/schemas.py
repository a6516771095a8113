"""Writes the schemas of the documents: ``python tests/cli/schemas.py``.

docs/answers.schema.json has those of ``-o json``; webhook/console/api.schema.json has that of the console's what-if.
"""

import json
from pathlib import Path

import msgspec

from webhook.answers import document, explained, planned, simulated
from webhook.answers.explained import Explained
from webhook.answers.planned import Planned
from webhook.answers.simulated import Simulated

ROOT = Path(__file__).parents[2]
DOCUMENTS = {"explain": Explained, "simulate": Simulated, "plan": Planned}
PUBLISHED = ROOT / "docs" / "answers.schema.json"
CONSOLE = ROOT / "webhook" / "console" / "api.schema.json"
# Other types are of the core: what their docstrings say is for its readers.
_DESCRIBED = {
    name
    for module in (document, explained, planned, simulated)
    for name, value in vars(module).items()
    if getattr(value, "__module__", "") == module.__name__
}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def definitions(*types):
    """The definitions of the types and their parts."""
    _, found = msgspec.json.schema_components(
        types, schema_hook=lambda _: {"description": "Any value."}, ref_template="#/$defs/{name}"
    )
    for name in found.keys() - _DESCRIBED:
        found[name].pop("description", None)
    return dict(sorted(found.items()))


def published():
    return {
        "$schema": _DIALECT,
        "title": "The documents of explain, simulate and plan with -o json",
        "description": "One definition for each command. explain and plan print an array if there are several. "
        "Fields may be added; a field that is there keeps its name and meaning.",
        "$defs": {name: {"$ref": f"#/$defs/{of.__name__}"} for name, of in DOCUMENTS.items()}
        | definitions(*DOCUMENTS.values()),
    }


def console(schema):
    """The console's schema with the document of what-if."""
    what_if = {"description": schema["$defs"]["whatIf"]["description"], "$ref": "#/$defs/Simulated"}
    own = {name: each for name, each in schema["$defs"].items() if not name[0].isupper()}
    return {**schema, "$defs": own | {"whatIf": what_if} | definitions(Simulated)}


def text(schema):
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PUBLISHED.write_text(text(published()), encoding="utf-8")
    CONSOLE.write_text(text(console(json.loads(CONSOLE.read_text(encoding="utf-8")))), encoding="utf-8")
