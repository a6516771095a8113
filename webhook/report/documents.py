"""Report documents: a workload's findings in either of the two report APIs.

A document lives in the workload's namespace and is deleted with it. Its name stays the same, so each scan replaces the
document of the previous scan. A workload without findings has no document: a skipped rule is not a pass.

Source: openreports/reports-api v0.2.1 apis/openreports.io/v1alpha1; kyverno v1.19.1 config/crds/policyreport;
policy-reporter pkg/report/result/id_generator.go (``resultID``), pkg/openreports/reports_adapter.go (``GetSource`` is
that of the first result), pkg/database/model.go.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from webhook.core.api.label_syntax import MAX_LABEL_VALUE_BYTES
from webhook.core.api.well_known import APP_MANAGED_BY, LEFT_OUT_ANNOTATION
from webhook.core.policy.policy import Mode
from webhook.core.review.judging import JudgedFinding
from webhook.core.rules.frame.rule import Severity
from webhook.core.text import one_line
from webhook.core.workloads.kinds import group_of

_Json = dict[str, object]


class ReportApi(StrEnum):
    """The report APIs, by the ``apiVersion`` of their documents."""

    OPEN_REPORTS = "openreports.io/v1alpha1"
    POLICY_REPORTS = "wgpolicyk8s.io/v1alpha2"


class ReportResult(Struct, frozen=True, kw_only=True):
    """A result in a policy report: a finding, or the status of the workload's pods.

    Attributes:
        policy: The name of the policy. The report's field for the rule has the same name.
        key: Distinguishes results of the same policy. It has no changing numbers.
        result: fail, warn or skip.
        properties: Extra properties. Every value is a single line.
    """

    policy: str
    key: str
    severity: Severity
    result: str
    message: str
    scored: bool = False
    properties: Mapping[str, str] = {}


class ReportContent(Struct, frozen=True, kw_only=True):
    """The input of a report: a workload and its results. ``uid`` is empty for a manifest."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""
    findings: tuple[JudgedFinding, ...]
    stated: tuple[ReportResult, ...] = ()


_SOURCE = "evenspread"
_CATEGORY = "Topology Spread"
# With the longest texts (3 KiB a result), exactly these fit into `_MAX_REPORT_BYTES`.
_MAX_RESULTS = 64
# kubectl apply keeps the whole document in an annotation, and all annotations together hold 256 KiB.
_MAX_REPORT_BYTES = 192 * 1024

KINDS = {ReportApi.OPEN_REPORTS: "Report", ReportApi.POLICY_REPORTS: "PolicyReport"}
_NAME_CHARS = MAX_LABEL_VALUE_BYTES  # so that it can be a label's value too
# A message and a detail of 1,024, a fix of 512 and the short ones: 3 KiB a result.
_TEXT_CHARS = 1024
_FIX_CHARS = 512
_NAME_TEXT_CHARS = 253  # the longest name that kube-apiserver accepts
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


def report(workload: ReportContent, api: ReportApi, seconds: int) -> _Json:
    """Return the report of a workload as a Kubernetes object.

    Results are sorted by severity. ``summary`` also counts results beyond the limit. ``seconds`` is the time of the
    findings, in seconds since 1970 (UTC).
    """
    ranked = sorted(
        (*map(_finding_result, workload.findings), *workload.stated), key=lambda result: result.severity.rank
    )
    results = [*_kept(_results(workload, ranked, seconds))]
    metadata: _Json = {"name": report_name(workload.api_version, workload.kind, workload.name)}
    if workload.namespace:
        metadata["namespace"] = one_line(workload.namespace, _NAME_TEXT_CHARS)
    metadata["labels"] = {APP_MANAGED_BY: _SOURCE}
    if len(results) < len(ranked):
        metadata["annotations"] = {LEFT_OUT_ANNOTATION: str(len(ranked) - len(results))}
    if workload.uid:
        metadata["ownerReferences"] = [_reference(workload, namespaced=False)]
    document: _Json = {"apiVersion": str(api), "kind": KINDS[api], "metadata": metadata}
    if api is ReportApi.OPEN_REPORTS:
        document["source"] = _SOURCE
        document["configuration"] = {"limits": {"maxResults": _MAX_RESULTS}}
    counts = Counter(result.result for result in ranked)
    document["scope"] = _reference(workload, namespaced=True)
    document["summary"] = {result: counts[result] for result in ("fail", "warn", "skip")}
    document["results"] = results
    return document


def content_hash(document: Mapping[str, Any]) -> str:
    """Return a hash of the content without times. It is the same before writing and after reading back."""
    meta = document.get("metadata") or {}
    content = {name: document.get(name) for name in ("source", "scope", "summary", "configuration")}
    content["owners"] = [owner.get("uid") for owner in meta.get("ownerReferences") or ()]
    content["left out"] = (meta.get("annotations") or {}).get(LEFT_OUT_ANNOTATION)
    content["results"] = [{**result, "timestamp": None} for result in document.get("results") or ()]
    return hashlib.blake2b(msgspec.json.encode(content, order="deterministic"), digest_size=16).hexdigest()


def report_name(api_version: str, kind: str, name: str) -> str:
    """Return the document's name: readable, a DNS label, and the same for every version of the workload's API."""
    mark = short_hash(group_of(api_version), kind, name)[:8]
    readable = _NOT_IN_NAMES.sub("-", f"{kind}-{name}".lower())
    readable = readable[: _NAME_CHARS - len(mark) - 1].strip("-")
    return f"{readable}-{mark}" if readable else mark


def _reference(workload: ReportContent, *, namespaced: bool) -> _Json:
    """Return a reference to the workload, as an owner or, with its namespace, as a report's scope."""
    fields = {
        "apiVersion": workload.api_version,
        "kind": workload.kind,
        "namespace": workload.namespace if namespaced else "",
        "name": workload.name,
        "uid": workload.uid,
    }
    return {key: one_line(text, _NAME_TEXT_CHARS) for key, text in fields.items() if text}


def _finding_result(judged: JudgedFinding) -> ReportResult:
    finding = judged.finding
    return ReportResult(
        policy=finding.rule,
        key=finding.key or finding.path,
        severity=judged.severity,
        result=_result_of(judged),
        scored=judged.mode is Mode.DENY,
        message=finding.summary,
        properties={
            "path": one_line(finding.path),
            "mode": str(judged.mode),
            "fix": one_line(finding.fix or finding.remedy, _FIX_CHARS),
            "detail": one_line(finding.detail, _TEXT_CHARS),
            "exempted": one_line(judged.waived),
        },
    )


def _results(workload: ReportContent, ranked: Iterable[ReportResult], seconds: int) -> Iterator[_Json]:
    identity = (group_of(workload.api_version), workload.kind, workload.namespace, workload.name)
    seen: Counter[tuple[str, str]] = Counter()
    for result in ranked:
        same = (result.policy, result.key)
        seen[same] += 1
        # Without this id, subscribers would take a message with new numbers for a new result.
        properties = {**result.properties, "resultID": short_hash(*identity, *same, str(seen[same]))}
        yield {
            # Policy Reporter uses the source of the first result for the whole report, in both APIs.
            "source": _SOURCE,
            "policy": result.policy,
            "rule": result.policy,
            "category": _CATEGORY,
            "severity": str(result.severity),
            "result": result.result,
            "scored": result.scored,
            "message": one_line(result.message, _TEXT_CHARS),
            "timestamp": {"seconds": seconds, "nanos": 0},
            "properties": {name: text for name, text in properties.items() if text},
        }


def _result_of(judged: JudgedFinding) -> str:
    """Return the report result of a finding: ``skip`` if exempted, ``fail`` if denied.

    Else ``warn``. Both report APIs use ``warn`` for results that do not count against the object.
    """
    if judged.waived:
        return "skip"
    return "fail" if judged.mode is Mode.DENY else "warn"


def _kept(results: Iterable[_Json]) -> Iterator[_Json]:
    """Yield results up to the limits of number and bytes."""
    room = _MAX_REPORT_BYTES
    for number, result in enumerate(results):
        room -= len(msgspec.json.encode(result))
        if number == _MAX_RESULTS or room < 0:
            return
        yield result


def short_hash(*parts: str) -> str:
    """Return 16 hexadecimal digits for these texts."""
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()
