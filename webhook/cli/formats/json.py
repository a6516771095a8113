"""Render findings and other entries as one array, for ``-o json`` and ``-o yaml``.

The fields of the entries are a stable interface.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec
from msgspec import UNSET, structs

from webhook.answers.audited import CheckedObject, FindingEntry, HiddenEntry, SkippedRule, StateEntry, state_entries
from webhook.answers.document import with_fields_of
from webhook.cli.checking.finding_text import file_text, fix, message
from webhook.cli.checking.fleet import ClusterAudit, Fleet
from webhook.cli.checking.results import Row, RunResult
from webhook.core.yaml_text import block

_Entry = FindingEntry | HiddenEntry | SkippedRule | StateEntry


def render(result: RunResult) -> Iterator[str]:
    """Render the results as JSON with one entry on each line, for readable diffs of two runs."""
    yield _lines(_entries(result))


def render_yaml(result: RunResult) -> Iterator[str]:
    """Render the same entries as the JSON format, but as YAML."""
    yield block(as_values(result))


def render_fleet(fleet: Fleet, output: str) -> Iterator[str]:
    """Render several clusters as JSON or YAML: the comparison, then the entries of each cluster with its name."""
    entries = chain(fleet.clusters, fleet.workloads, *(_of_cluster(audit) for audit in fleet.audits))
    yield block(msgspec.to_builtins([*entries])) if output == "yaml" else _lines(entries)


def _of_cluster(audit: ClusterAudit) -> Iterator[_Entry]:
    for entry in _entries(audit.result) if audit.result is not None else ():
        yield structs.replace(entry, cluster=audit.name)


def _lines(entries: Iterable[object]) -> str:
    lines = ",\n".join(f"  {msgspec.json.encode(entry).decode()}" for entry in entries)
    return f"[\n{lines}\n]\n" if lines else "[]\n"


def as_values(result: RunResult) -> list[dict[str, object]]:
    """The entries as plain values."""
    values: list[dict[str, object]] = msgspec.to_builtins([*_entries(result)])
    return values


def _entries(result: RunResult) -> Iterator[_Entry]:
    yield from map(_finding, result.rows)
    yield from result.hidden
    yield from result.gaps
    if result.scan is not None:
        yield from state_entries(result.scan)


def _finding(row: Row) -> FindingEntry:
    judged, manifest = row.judged, row.manifest
    return FindingEntry(
        file=file_text(manifest.file),
        line=row.place.line,
        column=row.place.column,
        object=with_fields_of(manifest, CheckedObject),
        rule=judged.finding.rule,
        mode=judged.mode,
        severity=judged.severity,
        path=judged.finding.path,
        message=message(row),
        fix=fix(row),
        url=row.url,
        source=manifest.source or UNSET,
        more=row.more or UNSET,
        waived=judged.waived or UNSET,
    )
