"""``-o report``: report documents for ``kubectl apply -f -``, one per workload with findings."""

import time
from collections.abc import Iterator

from msgspec.structs import replace

from webhook.cli.checking.results import RunResult
from webhook.core.review.judging import JudgedFinding
from webhook.core.scan.scanned import ScannedWorkload
from webhook.core.workloads.kinds import group_kind
from webhook.core.workloads.workload import namespace_of
from webhook.core.yaml_text import block_lines
from webhook.manifests.reading.manifest import Manifest
from webhook.report.documents import ReportApi, ReportContent, report
from webhook.report.scanned import pod_results

_Workload = tuple[str, str, str, str]  # group, kind, namespace, name


def render(
    result: RunResult,
    *,
    color: bool,  # noqa: ARG001 every format has this signature
    api: ReportApi = ReportApi.OPEN_REPORTS,
) -> Iterator[str]:
    """One YAML document a workload: those with findings in the order of the input, then others, the worst first."""
    seconds = int(time.time())
    for each in _reported(result).values():
        yield "---\n"
        yield from (f"{line}\n" for line in block_lines(report(each, api, seconds)))


def _reported(result: RunResult) -> dict[_Workload, ReportContent]:
    """The report of each workload: findings, and its pods if a whole cluster was examined by all rules."""
    found, judged = dict[_Workload, ReportContent](), dict[_Workload, list[JudgedFinding]]()
    for row in result.rows:
        of = row.manifest
        if not of.api_version:
            continue  # values of a chart: no cluster has such an object
        key = _key(of, namespace_of(of.namespace))
        found.setdefault(key, _about(of))
        judged.setdefault(key, []).append(row.judged)
    for key, findings in judged.items():
        found[key] = replace(found[key], findings=tuple(findings))
    for each in result.scan.workloads if result.scan is not None and not result.rules else ():
        if stated := pod_results(each):
            key = _key(each, each.namespace)
            found[key] = replace(found.get(key) or _about(each), stated=stated)
    return found


def _key(of: Manifest | ScannedWorkload, namespace: str) -> _Workload:
    return (*group_kind(of.api_version, of.kind), namespace, of.name)


def _about(of: Manifest | ScannedWorkload) -> ReportContent:
    """Nothing yet of the workload."""
    return ReportContent(
        api_version=of.api_version, kind=of.kind, namespace=of.namespace, name=of.name, uid=of.uid, findings=()
    )
