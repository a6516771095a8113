"""Writes the schemas of the documents: ``python tests/cli/schemas.py``.

docs/answers.schema.json has those of ``-o json``; webhook/console/api.schema.json has those of the console.
"""

import json
from pathlib import Path

import msgspec

from webhook.answers import audited, document, explained, fleet, planned, repaired, scanned, simulated
from webhook.answers.audited import FindingEntry, HiddenEntry, SkippedRule, StateEntry
from webhook.answers.explained import Explained
from webhook.answers.fleet import FleetCluster, FleetWorkload, UnreadCluster
from webhook.answers.planned import PlanDocument
from webhook.answers.repaired import CausedSkew, RepairedWorkload
from webhook.answers.scanned import NamedWorkload, WorkloadDocument, WorkloadList
from webhook.answers.simulated import Simulated
from webhook.console import shown
from webhook.console.shown import Overview
from webhook.core.scan import scan_results as scan_values
from webhook.core.scan.scan_results import PublishedSkew

ROOT = Path(__file__).parents[2]
DOCUMENTS = {"explain": Explained, "simulate": Simulated, "plan": PlanDocument, "skewFix": RepairedWorkload}
SKEW = (NamedWorkload, PublishedSkew, CausedSkew)
CHECK = (FindingEntry, HiddenEntry, SkippedRule)
AUDIT = (FindingEntry, SkippedRule, *StateEntry.__args__, FleetCluster, UnreadCluster, FleetWorkload)
OF_CONSOLE = {"overview": Overview, "workloads": WorkloadList, "workload": WorkloadDocument, "whatIf": Simulated}
PUBLISHED = ROOT / "docs" / "answers.schema.json"
CONSOLE = ROOT / "webhook" / "console" / "api.schema.json"


def _types(*modules):
    """The names of the types that these modules define."""
    return {
        name
        for module in modules
        for name, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__
    }


_COMPLETE = _types(scanned, scan_values, shown)  # every field is written, also one with its default
# Other types are of the core: what their docstrings say is for its readers.
_DESCRIBED = _types(audited, document, explained, fleet, planned, repaired, simulated) | _COMPLETE
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def definitions(*types):
    """The definitions of the types and their parts."""
    _, found = msgspec.json.schema_components(
        types, schema_hook=lambda _: {"description": "Any value."}, ref_template="#/$defs/{name}"
    )
    for name in found.keys() - _DESCRIBED:
        found[name].pop("description", None)
    for each in (found[name] for name in found.keys() & _COMPLETE if "properties" in found[name]):
        each["required"] = [*each["properties"]]
        for field in each["properties"].values():
            field.pop("default", None)
    # A type that one module keeps to itself has an underscore, which is no part of its published name.
    written = json.dumps(found).replace('"#/$defs/_', '"#/$defs/').replace('"title": "_', '"title": "')
    return dict(sorted((name.lstrip("_"), each) for name, each in json.loads(written).items()))


def published():
    return {
        "$schema": _DIALECT,
        "title": "The documents of -o json",
        "description": "One definition for each command. explain and plan print an array if there are several. "
        "skew (skewFix with --fix), check and audit always print an array. "
        "Fields may be added; a field that is there keeps its name and meaning.",
        "$defs": {name: {"$ref": f"#/$defs/{of.__name__}"} for name, of in DOCUMENTS.items()}
        | {"skew": {"allOf": [{"$ref": f"#/$defs/{of.__name__}"} for of in SKEW]}}
        | {
            name: {"anyOf": [{"$ref": f"#/$defs/{of.__name__.lstrip('_')}"} for of in entries]}
            for name, entries in (("check", CHECK), ("audit", AUDIT))
        }
        | definitions(*DOCUMENTS.values(), *SKEW, *AUDIT),
    }


def console(schema):
    """The console's schema with the documents that have a type."""
    addresses = {
        name: {"description": schema["$defs"][name]["description"], "$ref": f"#/$defs/{of.__name__}"}
        for name, of in OF_CONSOLE.items()
    }
    others = {name: schema["$defs"][name] for name in ("error", "groups")}
    return {**schema, "$defs": others | addresses | definitions(*OF_CONSOLE.values())}


def text(schema):
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PUBLISHED.write_text(text(published()), encoding="utf-8")
    CONSOLE.write_text(text(console(json.loads(CONSOLE.read_text(encoding="utf-8")))), encoding="utf-8")
