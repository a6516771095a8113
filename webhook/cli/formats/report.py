"""``-o report``: report documents for ``kubectl apply -f -``, one a workload of which there is something to say."""

import time
from collections.abc import Iterator

from msgspec.structs import replace

from webhook.cli.checking.results import RunResult
from webhook.core.defaulting.next_pod import namespace_of
from webhook.core.workloads.kinds import group_kind
from webhook.core.yaml_block import block_lines
from webhook.report.documents import ReportApi, Reported, report
from webhook.report.scanned import standing

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


def _reported(result: RunResult) -> dict[_Workload, Reported]:
    """What is said of each workload: findings, and of a whole cluster how its pods stand, unless rules were named."""
    found: dict[_Workload, Reported] = {}
    for row in result.rows:
        manifest = row.manifest
        key = (*group_kind(manifest.api_version, manifest.kind), namespace_of(manifest.namespace), manifest.name)
        known = found.get(key) or Reported(
            api_version=manifest.api_version,
            kind=manifest.kind,
            namespace=manifest.namespace,
            name=manifest.name,
            uid=manifest.uid,
            findings=(),
        )
        found[key] = replace(known, findings=(*known.findings, row.judged))
    for each in result.scan.workloads if result.scan is not None and not result.rules else ():
        stated = standing(each)
        key = (*group_kind(each.api_version, each.kind), each.namespace, each.name)
        if not stated:
            continue
        known = found.get(key) or Reported(
            api_version=each.api_version,
            kind=each.kind,
            namespace=each.namespace,
            name=each.name,
            uid=each.uid,
            findings=(),
        )
        found[key] = replace(known, stated=stated)
    return found
