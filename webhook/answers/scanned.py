"""The documents of a scan, for the console's API. Some parts are also in the output of ``audit`` and ``skew``."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from webhook.answers.document import Document, with_fields_of
from webhook.core.policy.policy import Mode
from webhook.core.review.judging import JudgedFinding
from webhook.core.rules.frame.rule import Severity
from webhook.core.scan.scan_results import (
    ActualSkew,
    ClusterScan,
    Count,
    PendingCause,
    PublishedScan,
    PublishedSkew,
    PublishedWorkload,
    RuleGap,
    ScannedWorkload,
    ZoneLoss,
)
from webhook.core.text import one_line

_MOST_CHARS = 4096  # of a text from an object, which can have megabytes


class _WorkloadFinding(Document, frozen=True):
    """A finding about a workload.

    Attributes:
        mode: The mode after the ceiling and exemptions.
        configured: The mode before the namespace's ceiling and exemptions lower it.
        waived: The reason for a lower mode. Empty without a reason.
    """

    rule: str
    mode: Mode
    configured: Mode
    severity: Severity
    path: str
    message: str
    fix: str
    waived: str


class _Failure(Document, frozen=True):
    """A bug in evenspread: the failed part of the scan, and the type of the exception."""

    part: str
    error: str


class WorkloadDocument(PublishedWorkload, frozen=True, kw_only=True):
    """One workload."""

    findings: tuple[_WorkloadFinding, ...]
    not_evaluated: tuple[RuleGap, ...]
    failures: tuple[_Failure, ...]
    skews: tuple[PublishedSkew, ...]


class ScanDocument(PublishedScan, frozen=True, kw_only=True):
    """A whole cluster."""

    workloads: Annotated[tuple[WorkloadDocument, ...], Meta(description="The worst workloads, at most ten.")]


class WorkloadList(Document, frozen=True):
    """A page of the list of workloads."""

    page: Annotated[int, Meta(ge=1)]
    pages: Annotated[int, Meta(ge=1)]
    total: Count
    workloads: tuple[WorkloadDocument, ...]


class NamedWorkload(Document, frozen=True):
    """The name fields of a workload with a skew.

    ``evenspread skew`` prints these fields together with the fields of the skew.
    """

    namespace: str
    kind: str
    api_version: str
    name: str


class _AboveMaxSkew(Document, frozen=True):
    """Constraints above maxSkew."""

    hard: Count
    soft: Count


class _ScanNumbers(Document, frozen=True):
    """A scan in numbers."""

    nodes: Count
    pods: Count
    pending: Mapping[PendingCause, Count]
    above_max_skew: _AboveMaxSkew
    zones: tuple[ZoneLoss, ...]
    would_deny: Annotated[Count, Meta(description="Workloads that ceiling deny would reject.")]
    would_inject: Annotated[Count, Meta(description="Workloads that would get the defaults.")]
    lacking: Annotated[Count, Meta(description="Running pods without the defaults.")]


def scan_document(scan: ClusterScan, workloads: Iterable[ScannedWorkload]) -> ScanDocument:
    """Return the document of a scan with these workloads."""
    gaps = tuple(replace(gap, missing=one_line(gap.missing)) for gap in scan.gaps)
    return with_fields_of(scan, ScanDocument, gaps=gaps, workloads=tuple(map(workload_document, workloads)))


def workload_document(workload: ScannedWorkload) -> WorkloadDocument:
    """Return the document of a workload."""
    return with_fields_of(
        workload,
        WorkloadDocument,
        findings=tuple(map(_finding, workload.findings)),
        not_evaluated=tuple(RuleGap(gap.rule, one_line(gap.missing)) for gap in workload.not_evaluated),
        failures=tuple(
            _Failure(part=failure.part, error=type(failure.error).__name__) for failure in workload.failures
        ),
        skews=tuple(map(skew_document, workload.skews)),
    )


def skew_document(skew: ActualSkew) -> PublishedSkew:
    """Return a constraint's skew as published in the JSON of a scan."""
    return with_fields_of(skew, PublishedSkew)


def scan_numbers(scan: ClusterScan) -> _ScanNumbers:
    """Return the scan in numbers."""
    workloads: Sequence[ScannedWorkload] = scan.workloads
    above = [skew.hard for workload in workloads for skew in workload.skews if skew.above]
    return _ScanNumbers(
        nodes=scan.nodes,
        pods=scan.pods,
        pending=dict(scan.pending),
        above_max_skew=_AboveMaxSkew(hard=sum(above), soft=len(above) - sum(above)),
        zones=scan.zones,
        would_deny=sum(bool(workload.would_deny) for workload in workloads),
        would_inject=sum(bool(workload.would_inject) for workload in workloads),
        lacking=sum(workload.lacking for workload in workloads),
    )


def _finding(judged: JudgedFinding) -> _WorkloadFinding:
    finding = judged.finding
    return _WorkloadFinding(
        rule=finding.rule,
        mode=judged.mode,
        configured=judged.configured,
        severity=judged.severity,
        path=finding.path,
        message=one_line(finding.summary, _MOST_CHARS),
        fix=one_line(finding.fix or finding.remedy, _MOST_CHARS),
        waived=judged.waived,
    )
