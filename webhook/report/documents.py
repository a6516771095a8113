"""Findings -> report documents, one a workload, in either of the two APIs that dashboards read.

A document belongs to its workload: it is in its namespace, is deleted with it, and keeps its name from run to run, so
that the next one replaces it. A workload without findings has none, since a rule that could not look is no pass.

Source: openreports/reports-api v0.2.1 apis/openreports.io/v1alpha1; kyverno v1.19.1 config/crds/policyreport;
policy-reporter pkg/report/result/id_generator.go (``resultID``).
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum

import msgspec
from msgspec import Struct

from webhook.core.api.label_syntax import MAX_LABEL_VALUE_BYTES
from webhook.core.api.well_known import APP_MANAGED_BY, LEFT_OUT_ANNOTATION
from webhook.core.policy.policy import Mode
from webhook.core.review.judging import Judged
from webhook.core.rules.frame.rule import Severity
from webhook.core.text import one_line
from webhook.core.workloads.kinds import group_of

_Json = dict[str, object]


class ReportApi(StrEnum):
    """The APIs, each as its documents name it."""

    OPEN_REPORTS = "openreports.io/v1alpha1"
    POLICY_REPORTS = "wgpolicyk8s.io/v1alpha2"


class Reported(Struct, frozen=True, kw_only=True):
    """One workload and what was found; ``uid`` is empty where it comes from a manifest."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""
    findings: tuple[Judged, ...]


_SOURCE = "evenspread"
_CATEGORY = "Topology Spread"
# Of the greatest length, 3 KiB, as many as `_MAX_REPORT_BYTES` holds.
_MAX_RESULTS = 64
# kubectl apply keeps the whole document in an annotation, and all annotations together hold 256 KiB.
_MAX_REPORT_BYTES = 192 * 1024

_KINDS = {ReportApi.OPEN_REPORTS: "Report", ReportApi.POLICY_REPORTS: "PolicyReport"}
_NAME_CHARS = MAX_LABEL_VALUE_BYTES  # so that it can be a label's value too
# A message and a detail of 1,024, a fix of 512 and the short ones: 3 KiB a result.
_TEXT_CHARS = 1024
_FIX_CHARS = 512
_NAME_TEXT_CHARS = 253  # the longest name that kube-apiserver accepts
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_RANKS = {Severity.HIGH: 0, Severity.MEDIUM: 1, Severity.LOW: 2}


def report(found: Reported, api: ReportApi, seconds: int) -> _Json:
    """The document of a workload.

    Shape: results stand in the order of severity; ``summary`` counts those that are left out, too.
    Unit: ``seconds`` since 1970 (UTC), when the findings were made.
    """
    ranked = sorted(found.findings, key=lambda judged: _RANKS[judged.severity])
    results = [*_kept(_results(found, ranked, api, seconds))]
    metadata: _Json = {"name": report_name(found.api_version, found.kind, found.name)}
    if found.namespace:
        metadata["namespace"] = one_line(found.namespace, _NAME_TEXT_CHARS)
    metadata["labels"] = {APP_MANAGED_BY: _SOURCE}
    if len(results) < len(ranked):
        metadata["annotations"] = {LEFT_OUT_ANNOTATION: str(len(ranked) - len(results))}
    if found.uid:
        metadata["ownerReferences"] = [_reference(found, namespaced=False)]
    document: _Json = {"apiVersion": str(api), "kind": _KINDS[api], "metadata": metadata}
    if api is ReportApi.OPEN_REPORTS:
        document["source"] = _SOURCE
        document["configuration"] = {"limits": {"maxResults": _MAX_RESULTS}}
    counts = Counter(_result_of(judged) for judged in ranked)
    document["scope"] = _reference(found, namespaced=True)
    document["summary"] = {result: counts[result] for result in ("fail", "warn", "skip")}
    document["results"] = results
    return document


def report_name(api_version: str, kind: str, name: str) -> str:
    """The document's name: readable, a DNS label, and the same for the same workload in every version of its API."""
    mark = _mark(group_of(api_version), kind, name)[:8]
    readable = _NOT_IN_NAMES.sub("-", f"{kind}-{name}".lower())
    readable = readable[: _NAME_CHARS - len(mark) - 1].strip("-")
    return f"{readable}-{mark}" if readable else mark


def _reference(found: Reported, *, namespaced: bool) -> _Json:
    """The workload, as an owner or as the scope, which also has a namespace."""
    fields = {
        "apiVersion": found.api_version,
        "kind": found.kind,
        "namespace": found.namespace if namespaced else "",
        "name": found.name,
        "uid": found.uid,
    }
    return {key: one_line(text, _NAME_TEXT_CHARS) for key, text in fields.items() if text}


def _results(found: Reported, ranked: list[Judged], api: ReportApi, seconds: int) -> Iterator[_Json]:
    workload = (group_of(found.api_version), found.kind, found.namespace, found.name)
    seen: Counter[tuple[str, str]] = Counter()
    for judged in ranked:
        finding = judged.finding
        same = (finding.rule, finding.key or finding.path)
        seen[same] += 1
        properties = {
            "path": one_line(finding.path),
            "mode": str(judged.mode),
            "fix": one_line(finding.fix or finding.remedy, _FIX_CHARS),
            "detail": one_line(finding.detail, _TEXT_CHARS),
            "exempted": one_line(judged.waived),
            # Without it a message whose numbers change would be a new result to whoever is notified.
            "resultID": _mark(*workload, *same, str(seen[same])),
        }
        yield {
            **({} if api is ReportApi.OPEN_REPORTS else {"source": _SOURCE}),
            "policy": finding.rule,
            "rule": finding.rule,
            "category": _CATEGORY,
            "severity": str(judged.severity),
            "result": _result_of(judged),
            "scored": judged.mode is Mode.DENY,
            "message": one_line(finding.summary, _TEXT_CHARS),
            "timestamp": {"seconds": seconds, "nanos": 0},
            "properties": {key: text for key, text in properties.items() if text},
        }


def _result_of(judged: Judged) -> str:
    """``fail`` for what would be refused; both APIs call what does not count against the object ``warn``."""
    if judged.waived:
        return "skip"
    return "fail" if judged.mode is Mode.DENY else "warn"


def _kept(results: Iterator[_Json]) -> Iterator[_Json]:
    """As many results as a document may have, and as fit."""
    room = _MAX_REPORT_BYTES
    for number, result in enumerate(results):
        room -= len(msgspec.json.encode(result))
        if number == _MAX_RESULTS or room < 0:
            return
        yield result


def _mark(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()
