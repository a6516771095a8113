"""``-o report``: report documents for ``kubectl apply -f -``, one a workload with findings."""

import time
from collections.abc import Iterator

from webhook.cli.checking.results import RunResult
from webhook.core.review.judging import Judged
from webhook.core.workloads.kinds import group_kind
from webhook.core.yaml_block import block_lines
from webhook.manifests.reading.manifest import Manifest
from webhook.report.documents import ReportApi, Reported, report

_Workload = tuple[str, str, str, str]  # group, kind, namespace, name


def render(
    result: RunResult,
    *,
    color: bool,  # noqa: ARG001 every format has this signature
    api: ReportApi = ReportApi.OPEN_REPORTS,
) -> Iterator[str]:
    """One YAML document a workload, in the order of the input."""
    found: dict[_Workload, tuple[Manifest, list[Judged]]] = {}
    for row in result.rows:
        manifest = row.manifest
        key = (*group_kind(manifest.api_version, manifest.kind), manifest.namespace, manifest.name)
        found.setdefault(key, (manifest, []))[1].append(row.judged)
    seconds = int(time.time())
    for manifest, findings in found.values():
        reported = Reported(
            api_version=manifest.api_version,
            kind=manifest.kind,
            namespace=manifest.namespace,
            name=manifest.name,
            uid=manifest.uid,
            findings=tuple(findings),
        )
        yield "---\n"
        yield from (f"{line}\n" for line in block_lines(report(reported, api, seconds)))
