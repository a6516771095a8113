"""Find misnamed and misplaced fields.

kube-apiserver drops unknown fields, and kubectl refuses them.

Source: the strict decoding of `go_json` finds them; name and value show the right place.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from webhook.core.json_edits import Edit, value_at
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.as_written import Written
from webhook.core.rules.frame.field_names import (
    CONSTRAINT_FIELDS,
    REQUIREMENT_FIELDS,
    SELECTOR_FIELDS,
    fits,
    intended_field,
    intended_field_of_value,
)
from webhook.core.rules.frame.fixes import Fix
from webhook.core.rules.frame.rule import Finding, Rule, Severity
from webhook.core.text import together
from webhook.core.workloads.custom_kinds import CONSTRAINTS
from webhook.core.workloads.workload import Template, Workload
from webhook.core.yaml_text import one_field

# A fix is a single line, so longer values are renamed in words.
_MAX_WRITTEN_CHARS = 80
_CONSTRAINT = re.compile(rf"(?:.*\.)?{CONSTRAINTS}\[\d+\]", re.DOTALL)
# Other fields of Kubernetes have these names here, unrelated to constraints.
_OTHERS = re.compile(r"affinity|volume", re.IGNORECASE)
_REQUIRED = ("maxSkew", "topologyKey", "whenUnsatisfiable")


def evaluate(written: Written) -> Iterator[Finding]:
    """Yield a finding for each unknown field in constraints, and for each mapping with misplaced fields."""
    workload = written.workload
    if workload is None:
        return
    strays: list[tuple[str, str]] = []
    for path in written.unknown:
        above, _, name = path.rpartition(".")
        if intended_field(name) == CONSTRAINTS or CONSTRAINTS[:-1].lower() in path.lower():
            yield _misnamed(above, name, written.value, built_in=workload.built_in)
        elif name in CONSTRAINT_FIELDS and not _OTHERS.search(above) and written.is_known(above):
            strays.append((above, name))
    for above, fields in groupby(sorted(strays), key=lambda each: each[0]):
        yield _outside_constraints(above, [name for _, name in fields], written.value, workload)


UNKNOWN_FIELD = Rule(
    id="unknown-field",
    title="a field in or around the constraints does not exist",
    severity=Severity.HIGH,
    mode=Mode.WARN,
    why=(
        "kube-apiserver drops unknown fields, such as a misspelt maxSkew. It also drops a wrongly indented "
        "constraint, whose fields end up in the pod's spec, the pod template or a container. A wrong `nindent` in "
        "a Helm template often causes this. kubectl refuses such an object by default. Helm and most controllers "
        "send it."
    ),
    evaluate_written=evaluate,
)


def right_paths(findings: Iterable[Finding]) -> frozenset[str]:
    """Return the correct paths of misspelt and misplaced fields.

    An error about an absent field at such a path repeats the same mistake.
    """
    unknown = (each for each in findings if each.rule == UNKNOWN_FIELD.id)
    paths = {edit.path for each in unknown for edit in each.edits if edit.value is not None}
    # A selector without its matchLabels is no selector.
    return frozenset(paths | {path.rpartition(".")[0] for path in paths if ".labelSelector." in path})


def _refusal(path: str) -> str:
    """Return kubectl's error for an unknown field. Source: json/kubernetes_patch.go ``saveStrictError``."""
    return f'unknown field "{path}"'


def _misnamed(above: str, name: str, value: Mapping[str, object], *, built_in: bool) -> Finding:
    lost = "kube-apiserver drops it, and kubectl refuses the object" if built_in else "pods have no such field"
    path = f"{above}.{name}".removeprefix(".")
    remedy, fix = _renaming(above, name, value)
    return Finding(
        rule=UNKNOWN_FIELD.id,
        path=path,
        summary=f"{_refusal(path)}: {lost}",
        remedy=remedy,
        **fix.fields,
        key=f"{above} {name}",
    )


def _renaming(above: str, name: str, value: Mapping[str, object]) -> tuple[str, Fix]:
    """Return the text and the fix to rename or move a field, or to remove it if the right field exists too."""
    beside = value_at(value, above)
    if not isinstance(beside, dict) or name not in beside:
        near = intended_field(name)
        return f"rename it to {near}", Fix(f"rename {name} to {near}", by_hand="the field's name contains a dot")
    given, constraint = beside[name], _CONSTRAINT.match(above)
    right = intended_field_of_value(name, given)
    belongs = _parent_of(right, above, constraint[0]) if constraint else above
    path, target = f"{above}.{name}".removeprefix("."), f"{belongs}.{right}".removeprefix(".")
    if not right or belongs is None or target == path:
        return "", Fix(f"remove {name}", by_hand=f"the intended field of {name} is unknown")
    if (there := value_at(value, target)) is not None or (belongs == above and right in beside):
        reason = "" if there == given else f"{name} and {right} have different values"
        return f"remove it, because {right} is set too", Fix(f"remove {name}", () if reason else (Edit(path),), reason)
    move = f"{name} to {right}" if belongs == above else f"{name} to {target[target.rindex(CONSTRAINTS) :]}"
    verb, text = ("rename", one_field(right, given)) if belongs == above else ("move", "")
    if not text or len(text) > _MAX_WRITTEN_CHARS:
        text = f"{verb} {move}"
    return f"{verb} it{move.removeprefix(name)}", Fix(text, (Edit(path), Edit(target, given)))


def _parent_of(right: str, above: str, constraint: str) -> str | None:
    if right in CONSTRAINT_FIELDS:
        return constraint
    if right in SELECTOR_FIELDS:
        return f"{constraint}.labelSelector"
    return above if right in REQUIREMENT_FIELDS and above.endswith("]") and "matchExpressions" in above else None


def _outside_constraints(above: str, names: Sequence[str], value: Mapping[str, object], workload: Workload) -> Finding:
    given = value_at(value, above)
    names = [each for each in given if each in names] if isinstance(given, dict) else names
    paths = [f"{above}.{name}".removeprefix(".") for name in names]
    it, lost = ("it", "pods have no such field") if len(names) == 1 else ("them", "pods have no such fields")
    if workload.built_in:
        lost = f"kube-apiserver drops {it}, and kubectl refuses the object"
    templates = [each for each in workload.templates if f"{above}.".startswith(each.path)] or [*workload.templates]
    right = f"{templates[0].path}spec.{CONSTRAINTS}" if templates else CONSTRAINTS
    text = f"move {together(names)} into {right}"
    reason, edits = "the right constraint for the fields is unknown", tuple[Edit, ...]()
    if len(templates) == 1 and isinstance(given, dict):
        fields = {name: given[name] for name in names}
        edits = tuple(_placed(fields, templates[0], value))
        if edits:
            whole = above.endswith("]") and given.keys() == fields.keys()
            edits = (*map(Edit, [above] if whole else paths), *edits)
    return Finding(
        rule=UNKNOWN_FIELD.id,
        path=paths[0],
        summary=f"{', '.join(map(_refusal, sorted(paths)))}: {lost}",
        remedy=text,
        fix=text,
        edits=edits,
        by_hand="" if edits else reason,
        key=f"{above} {' '.join(names)}",
    )


def _placed(fields: Mapping[str, object], template: Template, value: Mapping[str, object]) -> Iterator[Edit]:
    path = template.constraints_path
    if not isinstance(value_at(value, f"{template.path}spec"), dict) or not all(fits(*each) for each in fields.items()):
        return
    there = value_at(value, path) or []
    items = there if isinstance(there, list) else [None]
    lacking = [
        number
        for number, each in enumerate(items)
        if isinstance(each, dict)
        and each.keys().isdisjoint(fields)
        and {*_REQUIRED} <= each.keys() | fields.keys()
        and not {*_REQUIRED} <= each.keys()
    ]
    if len(lacking) == 1 or (len(items) == 1 and isinstance(items[0], dict) and items[0].keys().isdisjoint(fields)):
        number = lacking[0] if lacking else 0
        yield from (Edit(f"{path}[{number}].{name}", each) for name, each in fields.items())
    elif fields.keys() >= {*_REQUIRED} and None not in items:
        yield Edit(f"{path}[{len(items)}]", fields) if items else Edit(path, [fields])
