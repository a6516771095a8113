"""``-o json`` and ``-o yaml``: an array of findings, then of rules that could not look; its shape is a promise."""

from collections.abc import Iterator

import msgspec

from webhook.answers.scanned import skew_document
from webhook.cli.checking.results import Row, RunResult, fix, message
from webhook.core.scan.scanned import ClusterScan, ZoneLoss
from webhook.core.yaml_text import block


def render(result: RunResult, *, color: bool) -> Iterator[str]:  # noqa: ARG001 every format has this signature
    """The array, one entry a line, so that a diff of two runs reads well."""
    lines = ",\n".join(f"  {msgspec.json.encode(entry).decode()}" for entry in as_values(result))
    yield f"[\n{lines}\n]\n" if lines else "[]\n"


def render_yaml(result: RunResult, *, color: bool) -> Iterator[str]:  # noqa: ARG001 as above
    """The same entries as YAML, keys in the order of the promise."""
    yield block(as_values(result))


def as_values(result: RunResult) -> list[dict[str, object]]:
    """The entries as plain values."""
    gaps = ({"rule": gap.rule, "notEvaluated": gap.missing, "objects": gap.objects} for gap in result.gaps)
    return [*map(_row, result.rows), *gaps, *(_standing(result.scan) if result.scan else ())]


def _standing(scan: ClusterScan) -> Iterator[dict[str, object]]:
    """Entries without a rule: pending pods, skew above maxSkew, missing defaults, zone losses."""
    for each in scan.workloads:
        if each.pending:
            causes = {str(cause): pods for cause, pods in each.pending.items()}
            waiting = {"pending": causes, "since": each.pending_since, "fix": each.pending_fix}
            yield {"rule": "pending-pods", "workload": each.title, **waiting}
        for skew in each.skews:
            if skew.above:
                yield {"rule": "actual-skew", "workload": each.title, **msgspec.to_builtins(skew_document(skew))}
        if each.would_inject:
            added = {"wouldInject": each.would_inject, "lacking": each.lacking}
            yield {"rule": "defaults-to-inject", "workload": each.title, **added}
    # What each zone's failure costs all workloads, then what it costs each that it costs something.
    yield from map(_loss, scan.zones)
    for workload in scan.workloads:
        yield from (_loss(each, workload.title) for each in workload.losses if each.costs)


def _loss(loss: ZoneLoss, title: str = "") -> dict[str, object]:
    """What a zone's failure costs one workload, or all of them: then without ``workload``."""
    whose = {"workload": title} if title else {}
    return {
        "rule": "zone-loss-strands-pods",
        **whose,
        "zoneLoss": loss.zone,
        **{name: value for name, value in msgspec.to_builtins(loss).items() if name != "zone"},
    }


def _row(row: Row) -> dict[str, object]:
    judged, manifest = row.judged, row.manifest
    entry: dict[str, object] = {
        # The name of a file may have bytes that are no UTF-8.
        "file": manifest.file.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
        "line": row.place.line,
        "column": row.place.column,
        "object": {
            "apiVersion": manifest.api_version,
            "kind": manifest.kind,
            "namespace": manifest.namespace,
            "name": manifest.name,
        },
        "rule": judged.finding.rule,
        "mode": str(judged.mode),
        "severity": str(judged.severity),
        "path": judged.finding.path,
        "message": message(row),
        "fix": fix(row),
    }
    if manifest.source:
        entry["source"] = manifest.source
    if judged.waived:
        entry["waived"] = judged.waived
    return entry
