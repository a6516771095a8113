"""Fields in and around constraints that the API does not have: kube-apiserver drops them, and nobody is told why.

Source: the strict decoding of `go_json` finds them; what they were meant to be is the nearest name.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from webhook.core.api.version import RECORDED
from webhook.core.apiserver.decoding import DecodeError, as_go_reads
from webhook.core.apiserver.go_json import go_type, is_plain
from webhook.core.json_edits import Edit, value_at
from webhook.core.policy.policy import Mode
from webhook.core.rules.constraint.frame.field_names import meant
from webhook.core.rules.frame.edits import Fix
from webhook.core.rules.frame.rule import Finding, Rule, Severity
from webhook.core.rules.frame.written import Written
from webhook.core.workloads.custom_kinds import CONSTRAINTS
from webhook.core.workloads.workload import Workload
from webhook.core.yaml_flow import one_field

_UNKNOWN = re.compile(r'unknown field "(.*)"', re.DOTALL)
# A fix of one line; longer values are renamed in words.
_MAX_WRITTEN_CHARS = 80
_TEMPLATE = "v1.PodTemplateSpec"
_PARTS = frozenset({"metadata", "spec"})


def evaluate(written: Written) -> Iterator[Finding]:
    """A finding for each unknown field in constraints, or constraints misspelt as a whole."""
    workload = written.workload
    if workload is None:
        return
    warnings = written.warnings if workload.built_in else _in_custom_templates(written.value, workload)
    for path in [found[1] for each in dict.fromkeys(warnings) if (found := _UNKNOWN.fullmatch(each))]:
        name = meant(path.rpartition(".")[2])
        if name == CONSTRAINTS or CONSTRAINTS[:-1].lower() in path.lower():
            yield _finding(path, name, written.value, built_in=workload.built_in)


UNKNOWN_FIELD = Rule(
    id="unknown-field",
    title="a field in or around the constraints does not exist",
    severity=Severity.HIGH,
    mode=Mode.WARN,
    why="kube-apiserver drops a field that it does not know, and what it was meant to say is lost with it: a misspelt "
    "maxSkew, or all constraints. kubectl refuses such an object, unless it is told not to; Helm and most controllers "
    "send it.",
    silent="in admission: kube-apiserver warns of the field itself, and has dropped it before any webhook is asked. Of "
    "fields that have nothing to do with constraints nothing is said.",
    ask_written=evaluate,
)


def _in_custom_templates(value: Mapping[str, object], workload: Workload) -> tuple[str, ...]:
    """The warnings that kube-apiserver would give of the templates in a custom resource, if it knew them for such."""
    warnings: list[str] = []
    for template in workload.templates:
        written = value_at(value, template.path.removesuffix("."))
        if (
            not isinstance(written, dict)
            or not written.keys() <= _PARTS
            or is_plain(written, go_type(_TEMPLATE, RECORDED))
        ):
            continue
        try:
            warnings += as_go_reads(msgspec.json.encode(written), _TEMPLATE, (template.path.removesuffix("."),))[1]
        except DecodeError:
            continue  # a fault of the constraints is wrong-type; of the rest a controller may make what it likes
    return tuple(warnings)


def right_paths(findings: Iterable[Finding]) -> frozenset[str]:
    """Where fields with a misspelt name belong: that nothing stands there is the same mistake."""
    unknown = (each for each in findings if each.rule == UNKNOWN_FIELD.id)
    return frozenset(edit.path for each in unknown for edit in each.edits if edit.value is not None)


def _finding(path: str, right: str, value: Mapping[str, object], *, built_in: bool) -> Finding:
    """One field; of the right name at the wrong place nothing is known but that."""
    above, _, name = path.rpartition(".")
    lost = "kube-apiserver drops it, kubectl refuses the object" if built_in else "pods have no such field"
    remedy, fix = _renaming(above, name, right, value) if right not in {"", name} else ("", Fix(f"remove {name}"))
    return Finding(
        rule=UNKNOWN_FIELD.id,
        path=path,
        summary=f'unknown field "{path}": {lost}',
        remedy=remedy,
        fix=fix.text,
        edits=fix.edits,
        key=f"{above} {name}",
    )


def _renaming(above: str, name: str, right: str, value: Mapping[str, object]) -> tuple[str, Fix]:
    """The same field under the right name; without it where that one is there already."""
    beside = value_at(value, above)
    path = f"{above}.{name}".removeprefix(".")
    if not isinstance(beside, dict) or name not in beside:
        return f"rename it to {right}", Fix(f"rename {name} to {right}")
    if right in beside:
        return f"remove it: {right} is there too", Fix(f"remove {name}", (Edit(path),))
    written = one_field(right, beside[name])
    text = written if len(written) <= _MAX_WRITTEN_CHARS else f"rename {name} to {right}"
    return f"rename it to {right}", Fix(text, (Edit(path), Edit(f"{above}.{right}".removeprefix("."), beside[name])))
