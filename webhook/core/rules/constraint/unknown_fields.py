"""Fields in and around constraints that the API does not have: kube-apiserver drops them, and nobody is told why.

Source: the strict decoding of `go_json` finds them; what they were meant to be is the nearest name.
"""

import re
from collections.abc import Iterable, Mapping

import msgspec

from webhook.core.api.types import LabelSelector, LabelSelectorRequirement, SpreadConstraint
from webhook.core.apiserver.decoding import DecodeError, as_go_reads
from webhook.core.apiserver.go_json import is_plain, resolve
from webhook.core.json_edits import Edit
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.edits import Fix
from webhook.core.rules.frame.rule import Finding, Rule, Severity
from webhook.core.text import nearest
from webhook.core.workloads.workload import Workload
from webhook.core.yaml_flow import one_field

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
)

CONSTRAINTS = "topologySpreadConstraints"
_FIELDS = (
    *(CONSTRAINTS, *SpreadConstraint.__struct_encode_fields__),
    *(*LabelSelector.__struct_encode_fields__, *LabelSelectorRequirement.__struct_encode_fields__),
)
_UNKNOWN = re.compile(r'unknown field "(.*)"', re.DOTALL)
# A fix of one line; longer values are renamed in words.
_MOST_WRITTEN = 80
_SLIPS = 2  # letters that a misspelt name may be off; cases do not count
# Of a shorter name too little is left.
_BY_LETTERS = {each.lower(): each for each in _FIELDS if len(each) // 2 > _SLIPS}
_TEMPLATE = "v1.PodTemplateSpec"
_PARTS = frozenset({"metadata", "spec"})
_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_MOST_LETTERS = 2 * len(CONSTRAINTS)


def in_custom_templates(value: Mapping[str, object], workload: Workload) -> tuple[str, ...]:
    """The warnings that kube-apiserver would give of the templates in a custom resource, if it knew them for such."""
    warnings: list[str] = []
    for template in workload.templates:
        found = _at(value, template.path)
        if not isinstance(found, dict) or not found.keys() <= _PARTS or is_plain(found, resolve(_TEMPLATE)):
            continue
        try:
            warnings += as_go_reads(msgspec.json.encode(found), _TEMPLATE, (template.path.removesuffix("."),))[1]
        except DecodeError:
            continue  # a fault of the constraints is wrong-type; of the rest a controller may make what it likes
    return tuple(warnings)


def unknown_fields(
    warnings: Iterable[str], value: Mapping[str, object], workload: Workload, placed_wrong: frozenset[str]
) -> tuple[Finding, ...]:
    """A finding for each warning of strict decoding about a field in constraints, or constraints misspelt as a whole.

    Shape: ``value`` is the whole object; ``placed_wrong`` are paths of which another rule says where they belong.
    """
    paths = [found[1] for each in dict.fromkeys(warnings) if (found := _UNKNOWN.fullmatch(each))]
    named = [(path, meant(path.rpartition(".")[2])) for path in paths if path not in placed_wrong]
    return tuple(
        _finding(path, meant, value, built_in=workload.built_in)
        for path, meant in named
        if meant == CONSTRAINTS or CONSTRAINTS[:-1].lower() in path.lower()
    )


def right_paths(findings: Iterable[Finding]) -> frozenset[str]:
    """Where fields with a misspelt name belong: that nothing stands there is the same mistake."""
    unknown = (each for each in findings if each.rule == UNKNOWN_FIELD.id)
    return frozenset(edit.path for each in unknown for edit in each.edits if edit.value is not None)


def _finding(path: str, meant: str, value: Mapping[str, object], *, built_in: bool) -> Finding:
    """One field; of the right name at the wrong place nothing is known but that."""
    above, _, name = path.rpartition(".")
    lost = "kube-apiserver drops it, kubectl refuses the object" if built_in else "pods have no such field"
    remedy, fix = _renaming(above, name, meant, value) if meant not in {"", name} else ("", Fix(f"remove {name}"))
    return Finding(
        rule=UNKNOWN_FIELD.id,
        path=path,
        summary=f'unknown field "{path}": {lost}',
        remedy=remedy,
        fix=fix.text,
        edits=fix.edits,
        key=f"{above} {name}",
    )


def _renaming(above: str, name: str, meant: str, value: Mapping[str, object]) -> tuple[str, Fix]:
    """The same field under the name that was meant; without it where that one is there already."""
    beside = _at(value, above)
    path = f"{above}.{name}".removeprefix(".")
    if not isinstance(beside, dict) or name not in beside:
        return f"rename it to {meant}", Fix(f"rename {name} to {meant}")
    if meant in beside:
        return f"remove it: {meant} is there too", Fix(f"remove {name}", (Edit(path),))
    written = one_field(meant, beside[name])
    text = written if len(written) <= _MOST_WRITTEN else f"rename {name} to {meant}"
    return f"rename it to {meant}", Fix(text, (Edit(path), Edit(f"{above}.{meant}".removeprefix("."), beside[name])))


def meant(name: str) -> str:
    """The field that an unknown one was probably meant to be; empty where none is near."""
    written = name.lower()
    if len(written) > _MOST_LETTERS:
        return ""
    near = nearest(written, _BY_LETTERS, _SLIPS)
    return "" if near is None else _BY_LETTERS[near]


def _at(value: object, path: str) -> object:
    """What stands at a path as `Template.path` writes it; None where nothing does."""
    for number, name in _STEP.findall(path):
        if isinstance(value, list) and number.isdigit() and int(number) < len(value):
            value = value[int(number)]
        else:
            value = value.get(number or name) if isinstance(value, dict) else None
    return value
