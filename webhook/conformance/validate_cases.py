"""The evaluators of `evenspread conformance`.

Each evaluator predicts Kubernetes' result for a test case. An evaluator gets the members of the test case's JSON
(``scenario``), and returns the fields of ``expected``. The oracle in conformance/ runs Kubernetes' own code on the same
test cases.
"""

import json
import re
from collections.abc import Mapping, Sequence

import msgspec
from yaml._yaml import CParser
from yaml.error import MarkedYAMLError
from yaml.scanner import ScannerError

from webhook.core.api.types import SpreadConstraint
from webhook.core.api.version import RECORDED, KubernetesVersion
from webhook.core.api.written_selector import selector_as_json
from webhook.core.apiserver.decoding import GO_KINDS, DecodeError, as_go_reads, type_of
from webhook.core.apiserver.field_errors import FieldError
from webhook.core.apiserver.validation import constraint_causes, constraint_warnings, merge_match_label_keys
from webhook.core.decoders import decoder_of
from webhook.core.scheduler.args import ArgsError, decode_args, validate_args
from webhook.core.workloads.reading import reaches_template, read_workload, takes_any_template
from webhook.core.workloads.refused_pods import refusals
from webhook.manifests.reading.go_yaml import read_document
from webhook.manifests.reading.yaml_scalars import UnreadableDocumentError

_JSON = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")


def members(raw: bytes) -> dict[str, bytes]:
    """Split a JSON object into its members as written. A member may hold JSON that our decoders refuse.

    Raises:
        ValueError: The text is not a JSON object.
    """
    text, members = raw.decode("utf-8", "surrogateescape"), {}
    at = _after(text, 0, "{")
    while text[at : at + 1] != "}":
        name, at = _JSON.raw_decode(text, at)
        start = _after(text, at, ":")
        _, end = _JSON.raw_decode(text, start)
        members[str(name)] = text[start:end].encode("utf-8", "surrogateescape")
        at = _skip(text, end)
        if text[at : at + 1] != "}":
            at = _after(text, at, ",")
    return members


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _after(text: str, at: int, sign: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] != sign:
        raise ValueError(f"no {sign!r} at character {at}")
    return _skip(text, at + 1)


def text_of(raw: bytes | None) -> str:
    """Decode a text member of a case. Empty if absent."""
    return decoder_of(str).decode(raw) if raw else ""


def decide_validate(case: Mapping[str, bytes], version: KubernetesVersion = RECORDED) -> Mapping[str, object]:
    """Return kube-apiserver's answer to a create request, as evenspread predicts it."""
    answer: dict[str, object] = {
        "id": text_of(case.get("id")),
        "errors": [],
        "warnings": [],
        "topologySpreadConstraints": None,
    }
    try:
        kind = type_of(case["object"]).kind or ""
        if kind not in GO_KINDS:
            return {"id": answer["id"], "undecidable": f"{kind[:64]!r} is no kind with a recorded strategy"}
        value, strict = as_go_reads(case["object"], f"v1.{kind}", version=version)
    except DecodeError as error:
        return answer | {"decodeError": error.text, "decodeMessage": error.message}
    if strict:
        answer["strictWarnings"] = list(strict)
    workload = read_workload(value) if isinstance(value, dict) else None
    if workload is None:
        return answer
    for written in workload.templates:
        template, path = written.pod, f"{written.path}spec.topologySpreadConstraints"
        constraints: Sequence[SpreadConstraint] = template.pod_spec.constraints
        # kube-apiserver merges keys into the selectors of a Pod, never of a template.
        labels = template.labels if kind == "Pod" else None
        read = reaches_template(workload)
        judged = read and not takes_any_template(workload, version)
        errors = constraint_causes(constraints, labels, path, version) if judged else ()
        warnings = constraint_warnings(constraints, path) if read and not errors else ()
        if labels is not None:
            constraints = merge_match_label_keys(constraints, labels, version)
        answer["errors"] = [_error(error) for error in errors]
        answer["warnings"] = list(warnings)
        answer["topologySpreadConstraints"] = [_constraint(constraint) for constraint in constraints] or None
    return answer


def decide_refused(case: Mapping[str, bytes], version: KubernetesVersion = RECORDED) -> Mapping[str, object]:
    """Predict whether kube-apiserver accepts a workload, and its errors for the pods created from it."""
    validated = decide_validate({**case, "object": case["workload"]}, version)
    answer: dict[str, object] = {"id": validated["id"], "accepted": not validated.get("errors")}
    workload = read_workload(case["workload"]) if answer["accepted"] else None
    if workload is not None:
        faults = [refusal for template in workload.templates for refusal in refusals(workload, template, version)]
        answer["errors"] = [_error(fault.error) for fault in faults]
    return answer


def decide_args(case: Mapping[str, bytes], version: KubernetesVersion = RECORDED) -> Mapping[str, object]:
    """Predict how kube-scheduler decodes and validates a PodTopologySpreadArgs."""
    answer: dict[str, object] = {"id": text_of(case.get("id")), "errors": []}
    yaml = text_of(case.get("yaml"))
    try:
        raw = _yaml_to_json(yaml) if yaml else case.get("args", b"null")
        args = decode_args(raw, version=version)
    except ArgsError as error:
        return answer | {"decodeError": str(error)}
    shown: dict[str, object] = {"defaultingType": args.defaulting_type}
    if args.constraints:
        shown["defaultConstraints"] = [_constraint(constraint) for constraint in args.constraints]
    return answer | {"args": shown, "errors": [_error(error) for error in validate_args(args, version)]}


def _yaml_to_json(text: str) -> bytes:
    """Convert YAML to JSON as sigs.k8s.io/yaml does: the first document, with sorted names."""
    try:
        value = read_document(text.encode("utf-8", "replace")).value
    except UnreadableDocumentError as error:
        # The parser resolves an alias at once, so it never reaches later errors.
        syntax = None if error.message.startswith("unknown anchor") else _syntax_fault(text)
        raise ArgsError(f"yaml: {syntax or error.message}") from None
    return msgspec.json.encode(value, order="sorted")


def _syntax_fault(text: str) -> str | None:
    """Return go-yaml's message and line number for invalid YAML, else None. Source: go-yaml v2 decode.go fail."""
    parser = CParser(text)
    try:
        while parser.get_event() is not None:
            pass
    except MarkedYAMLError as error:
        problem, context = (mark.line if mark else 0 for mark in (error.problem_mark, error.context_mark))
        line = problem + isinstance(error, ScannerError) if problem else context
        return f"line {line}: {error.problem}" if line else str(error.problem)
    return None


def _error(error: FieldError) -> dict[str, object]:
    return {
        "type": error.type,
        "field": error.field,
        "badValue": error.bad_value,
        "detail": error.detail,
        "text": error.text,
    }


def _constraint(constraint: SpreadConstraint) -> dict[str, object]:
    """Return a constraint as JSON in Go's encoding.

    maxSkew, topologyKey and whenUnsatisfiable are always included. Other fields are included if set.
    """
    optional = {
        "labelSelector": None if constraint.selector is None else selector_as_json(constraint.selector),
        "minDomains": constraint.min_domains,
        "nodeAffinityPolicy": constraint.node_affinity_policy,
        "nodeTaintsPolicy": constraint.node_taints_policy,
        "matchLabelKeys": list(constraint.match_label_keys or ()) or None,
    }
    return {
        "maxSkew": constraint.max_skew or 0,
        "topologyKey": constraint.topology_key or "",
        "whenUnsatisfiable": constraint.when_unsatisfiable or "",
    } | {name: value for name, value in optional.items() if value is not None}
