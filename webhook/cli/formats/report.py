"""``-o report``: report objects for ``kubectl apply -f -``, one for each workload with findings."""

import time
from collections.abc import Iterator

from msgspec.structs import replace

from webhook.answers.document import with_fields_of
from webhook.cli.checking.results import RunResult
from webhook.core.review.judging import JudgedFinding
from webhook.core.scan.scan_results import ScannedWorkload
from webhook.core.workloads.kinds import group_kind
from webhook.core.workloads.workload import namespace_of
from webhook.core.yaml_text import block_lines
from webhook.manifests.reading.manifest import Manifest
from webhook.report.documents import ReportApi, ReportContent, report
from webhook.report.scanned import pod_results

_Workload = tuple[str, str, str, str]  # group, kind, namespace, name


def render(result: RunResult, *, api: ReportApi) -> Iterator[str]:
    """Render a YAML report for each workload, in the order of the input. Workloads with findings come first."""
    seconds = int(time.time())
    for reported in _reported(result).values():
        yield "---\n"
        yield from (f"{line}\n" for line in block_lines(report(reported, api, seconds)))


def _reported(result: RunResult) -> dict[_Workload, ReportContent]:
    """Return the reports by workload. Those of all rules also have exceeded constraints and Pending pods."""
    reports, judged = dict[_Workload, ReportContent](), dict[_Workload, list[JudgedFinding]]()
    for row in result.rows:
        manifest = row.manifest
        if not manifest.api_version:
            continue  # values of a chart are not an object of the cluster
        key = _key(manifest, namespace_of(manifest.namespace))
        reports.setdefault(key, _empty_report(manifest))
        judged.setdefault(key, []).append(row.judged)
    for key, findings in judged.items():
        reports[key] = replace(reports[key], findings=tuple(findings))
    for workload in result.scan.workloads if result.scan is not None and not result.rules else ():
        if stated := pod_results(workload):
            key = _key(workload, workload.namespace)
            reports[key] = replace(reports.get(key) or _empty_report(workload), stated=stated)
    return reports


def _key(workload: Manifest | ScannedWorkload, namespace: str) -> _Workload:
    return (*group_kind(workload.api_version, workload.kind), namespace, workload.name)


def _empty_report(workload: Manifest | ScannedWorkload) -> ReportContent:
    return with_fields_of(workload, ReportContent, findings=(), stated=())
