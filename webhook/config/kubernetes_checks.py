"""Checks that Kubernetes itself would make of parts of the file: default constraints, label selectors, labels.

Default constraints must pass twice: as PodTopologySpreadArgs with kube-scheduler, and as constraints in a pod with
kube-apiserver, which checks what the scheduler does not (minDomains, node policies, matchLabelKeys).
"""

from collections.abc import Iterator

import msgspec

from webhook.config.document import ConfigDocument
from webhook.config.faults import ConfigFault, Path, parse_path
from webhook.config.lenient_view import View
from webhook.core.api.label_syntax import key_faults, value_faults
from webhook.core.api.types import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, LabelSelector, SpreadConstraint
from webhook.core.api.version import RECORDED
from webhook.core.apiserver.field_errors import FieldError
from webhook.core.apiserver.validation import selector_errors, validate_constraints
from webhook.core.decoders import converted
from webhook.core.scheduler.args import PodTopologySpreadArgs, validate_args

# The fields of a constraint that kube-scheduler leaves unchecked in its own configuration.
_UNCHECKED = ("minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy", "matchLabelKeys")
_DEFAULTS: Path = ("defaults",)
_SELECTORS = ("namespaceSelector", "podSelector", "selector")


def upstream_faults(part: View) -> Iterator[ConfigFault]:
    """The parts that kube-scheduler or kube-apiserver would refuse."""
    yield from _default_constraints(part, _DEFAULTS)
    for entry in part.entries((*_DEFAULTS, "overrides")):
        yield from _default_constraints(part, entry)
        yield from _selectors(part, entry)
    for name in ("namespaces", "exemptions"):
        for entry in part.entries((name,)):
            yield from _selectors(part, (*entry, "match"))
    yield from _domains(part)


def upstream_warnings(part: View) -> Iterator[ConfigFault]:
    """The parts that they accept, and that have no effect here."""
    if part.text((*_DEFAULTS, "matchLabelKeys")) != "off":
        return
    for owner in (_DEFAULTS, *part.entries((*_DEFAULTS, "overrides"))):
        for entry in part.entries((*owner, "defaultConstraints")):
            if part.at((*entry, "matchLabelKeys"), list):
                message = "is dropped while defaults.matchLabelKeys is off"
                yield part.document.fault((*entry, "matchLabelKeys"), message)


def _default_constraints(part: View, owner: Path) -> Iterator[ConfigFault]:
    path = (*owner, "defaultConstraints")
    constraints = [_constraint(part, (*path, index)) for index in range(len(part.at(path, list) or ()))]
    defaulting_type = part.at((*owner, "defaultingType"), str) if owner == _DEFAULTS else None
    args = PodTopologySpreadArgs(
        defaulting_type="List" if defaulting_type is None else defaulting_type,
        default_constraints=tuple(constraints),
    )
    errors = validate_args(args)
    as_pods = [_in_a_pod(part, (*path, index), constraint) for index, constraint in enumerate(constraints)]
    for error in validate_constraints(as_pods, None, "defaultConstraints", RECORDED):
        if any(name in _UNCHECKED for name in parse_path(error.field)):
            errors = (*errors, error)
    yield from (upstream_fault(part.document, error, owner) for error in errors)


def _constraint(part: View, path: Path) -> SpreadConstraint:
    """One entry as a constraint; a harmless one if the schema has already found a fault in it."""
    if not part.sound(path):
        return SpreadConstraint(max_skew=1, topology_key=f"entry-{path[-1]}", when_unsatisfiable=SCHEDULE_ANYWAY)
    return converted(part.at(path, dict), SpreadConstraint)


def _in_a_pod(part: View, path: Path, constraint: SpreadConstraint) -> SpreadConstraint:
    """The default as it would be in a pod: with a selector, and hard if ``hardWhenDomains`` can make it so."""
    hard = part.at((*path, "hardWhenDomains"), int) is not None
    action = DO_NOT_SCHEDULE if hard else constraint.when_unsatisfiable
    return msgspec.structs.replace(constraint, label_selector=LabelSelector(), when_unsatisfiable=action)


def _selectors(part: View, owner: Path) -> Iterator[ConfigFault]:
    for name in _SELECTORS:
        path = (*owner, name)
        written = part.at(path, dict) if part.sound(path) else None
        if written is not None:
            selector = converted(written, LabelSelector)
            for error in selector_errors(selector, name, RECORDED):
                yield upstream_fault(part.document, error, owner)


def _domains(part: View) -> Iterator[ConfigFault]:
    for key in part.at(("domains",), dict) or {}:
        path: Path = ("domains", key)
        for fault in key_faults(key, RECORDED):
            yield part.document.fault(path, f"is no label key: {fault}", key=True)
        for index in range(len(part.at(path, list) or ())):
            for fault in value_faults(part.text((*path, index)) or "", RECORDED):
                yield part.document.fault((*path, index), f"is no label value: {fault}")


def upstream_fault(document: ConfigDocument, error: FieldError, owner: Path) -> ConfigFault:
    """One of upstream's errors, in its words, at its position in the file."""
    return document.fault((*owner, *parse_path(error.field)), error.text.removeprefix(f"{error.field}: "))
