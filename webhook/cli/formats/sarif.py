"""``-o sarif``: SARIF 2.1.0, for code scanning services and editors.

Source: OASIS Static Analysis Results Interchange Format 2.1.0.
"""

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from urllib.parse import quote

import msgspec

from webhook import __version__
from webhook.answers.scanned import scan_numbers
from webhook.cli.checking.baseline import finding_key
from webhook.cli.checking.finding_text import file_and_place, message_with_fix
from webhook.cli.checking.results import Row, RunResult
from webhook.core.rules.frame.rule import Rule, Severity
from webhook.core.rules.rule_set import RULES
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import STDIN_NAME

_LEVELS = {Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "note"}


def render(result: RunResult) -> Iterator[str]:
    """Render a run. Unreadable input is a notification, and makes the run unsuccessful."""
    fatal = [fault for fault in result.faults if fault.fatal]
    urls = {row.judged.finding.rule: row.url for row in result.rows}
    rules = [rule for rule in RULES if rule.id in urls]
    indexes = {rule.id: number for number, rule in enumerate(rules)}
    driver = {"name": "evenspread", "version": __version__, "rules": [_rule(rule, urls[rule.id]) for rule in rules]}
    run: dict[str, object] = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": not fatal, "toolExecutionNotifications": [*map(_notification, fatal)]}],
        "results": [_result(row, indexes) for row in result.rows],
    }
    # Totals belong to no line of a file, so they are properties.
    totals = dict[str, object]()
    if result.scan is not None:
        totals["evenspread"] = scan_numbers(result.scan)
    if result.hidden:
        totals["hiddenFindings"] = {f"{entry.rule} ({entry.level})": entry.hidden for entry in result.hidden}
    if totals:
        run["properties"] = totals
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    yield msgspec.json.format(msgspec.json.encode(log), indent=2).decode() + "\n"


def _rule(rule: Rule, url: str) -> dict[str, object]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why or rule.title},
        "helpUri": url,
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(row: Row, indexes: Mapping[str, int]) -> dict[str, object]:
    finding, name = row.judged.finding, row.manifest.title
    file, place = file_and_place(row)
    location: dict[str, object] = {"artifactLocation": {"uri": _quoted(file)}}
    if place is not None:
        columns = {"startColumn": place.column, "endColumn": place.column + place.width}
        location["region"] = {"startLine": place.line, **columns}
    result: dict[str, object] = {
        "ruleId": finding.rule,
        "ruleIndex": indexes[finding.rule],
        "level": _LEVELS[row.severity],
        "message": {"text": f"{name}: {message_with_fix(row)}"},
        "locations": [
            {
                "physicalLocation": location,
                "logicalLocations": [{"fullyQualifiedName": f"{name} {finding.path}", "kind": "object"}],
            }
        ],
        "partialFingerprints": {"evenspread/v2": finding_key(row)},  # v1 contained the file
    }
    if row.waived:
        result["suppressions"] = [
            {"kind": "inSource" if row.ignored else "external", "justification": row.judged.waived}
        ]
    return result


def _notification(fault: InputFault) -> dict[str, object]:
    location: dict[str, object] = {"artifactLocation": {"uri": _quoted(fault.file)}}
    if fault.line:
        location["region"] = {"startLine": fault.line, "startColumn": fault.column}
    return {"level": "error", "message": {"text": str(fault)}, "locations": [{"physicalLocation": location}]}


def _quoted(file: str) -> str:
    if file == STDIN_NAME:
        return "stdin"
    return PurePath(file).as_uri() if file.startswith("/") else quote(file.removeprefix("./"), errors="replace")
