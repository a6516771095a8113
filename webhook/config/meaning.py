"""Check the parts of the configuration that the schema cannot check.

These parts are dates, durations, entries without effect, and values with Kubernetes' own checks. A part with a schema
error is not checked again, so a mistake is reported once. Default constraints need two checks: kube-scheduler's check
of PodTopologySpreadArgs, and kube-apiserver's check of constraints in a pod. Only the second check covers minDomains,
node policies and matchLabelKeys.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import NamedTuple, TypeVar

import msgspec

from webhook.config.document import ConfigDocument
from webhook.config.faults import ConfigFault, Path, parse_path, render_path, shown
from webhook.core.api.label_syntax import key_faults, value_faults
from webhook.core.api.types import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, LabelSelector, SpreadConstraint
from webhook.core.api.version import RECORDED
from webhook.core.apiserver.field_errors import FieldError
from webhook.core.apiserver.validation import selector_errors, validate_constraints
from webhook.core.decoders import converted
from webhook.core.policy.lookup import rules_version
from webhook.core.rules.rule_set import RULES
from webhook.core.scheduler.args import PodTopologySpreadArgs, validate_args
from webhook.core.scheduler.profile import SchedulerProfile
from webhook.core.workloads.kinds import NATIVE_GROUPS, group_of

_RULES_VERSION = max((rule.since for rule in RULES), key=rules_version)
_MAX_STALENESS_SECONDS = 24 * 3600.0  # day-old cluster data are useless

_DURATION_PART = re.compile(r"([0-9.]+)(h|ms|us|µs|ns|m|s)")
# Go's units (time.ParseDuration), with both micro signs, because the same users write Go durations elsewhere.
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
# The fields of a constraint that kube-scheduler does not check in its own configuration.
_UNCHECKED = ("minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy", "matchLabelKeys")
_DEFAULTS: Path = ("defaults",)
_SELECTORS = ("namespaceSelector", "podSelector", "selector")
_T = TypeVar("_T")


class CheckedDocument(NamedTuple):
    """A configuration document, and the paths of its faulty fields.

    ``faulty`` also has the paths of all parent fields of a faulty field.
    """

    document: ConfigDocument
    faulty: frozenset[str]

    def sound(self, path: Path) -> bool:
        """Whether the path has no known fault at or below it."""
        return render_path(path) not in self.faulty

    def at(self, path: Path, kind: type[_T]) -> _T | None:
        """Return the value at a path, or None if it is absent or of another type."""
        value = self.document.value
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return value if isinstance(value, kind) else None

    def text(self, path: Path) -> str | None:
        """Return the string at a path, or None if it is absent or has a fault."""
        return self.at(path, str) if self.sound(path) else None

    def fault(self, path: Path, message: str, *, key: bool = False) -> ConfigFault:
        """See `ConfigDocument.fault`."""
        return self.document.fault(path, message, key=key)

    def entries(self, path: Path) -> Iterator[Path]:
        """Yield the path of each mapping in the list at ``path``."""
        for index in range(len(self.at(path, list) or ())):
            if self.at((*path, index), dict) is not None:
                yield (*path, index)


def view(document: ConfigDocument, faults: Sequence[ConfigFault]) -> CheckedDocument:
    """Return the document for further checks, without the parts with faults."""
    texts = {fault.path for fault in faults}
    parents = {text[:end] for text in texts for end, char in enumerate(text) if char in ".["}
    return CheckedDocument(document, frozenset(texts | parents))


def meaning_faults(part: CheckedDocument) -> Iterator[ConfigFault]:
    """Yield the configuration's faults not found by the JSON schema.

    Some are values that kube-scheduler or kube-apiserver would reject too.
    """
    yield from _rules_version(part)
    yield from _exemptions(part)
    yield from _workloads(part)
    yield from _staleness(part)
    yield from _default_constraints(part, _DEFAULTS)
    for entry in part.entries((*_DEFAULTS, "overrides")):
        yield from _default_constraints(part, entry)
        yield from _selectors(part, entry)
    for name in ("namespaces", "exemptions"):
        for entry in part.entries((name,)):
            yield from _selectors(part, (*entry, "match"))
    yield from _domains(part)


def meaning_warnings(part: CheckedDocument, profiles: Sequence[SchedulerProfile], today: str) -> Iterator[ConfigFault]:
    """Yield warnings about valid parts with an unexpected effect."""
    yield from _expired(part, today)
    yield from _unreached_namespaces(part)
    yield from _unreached_overrides(part)
    yield from _documentation(part)
    yield from _schedulers(part, profiles)
    yield from _dropped_keys(part)


def seconds(duration: str) -> float:
    """Convert a Go duration to seconds. The schema has checked its form."""
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(duration))


def _rules_version(part: CheckedDocument) -> Iterator[ConfigFault]:
    version = part.text(("rulesVersion",))
    if version is not None and rules_version(version) > rules_version(_RULES_VERSION):
        message = f"{version} is newer than the latest rules of this release, {_RULES_VERSION}"
        yield part.fault(("rulesVersion",), message)


def _exemptions(part: CheckedDocument) -> Iterator[ConfigFault]:
    for entry in part.entries(("exemptions",)):
        expires = part.text((*entry, "expires"))
        if expires is not None and not _is_date(expires):
            yield part.fault((*entry, "expires"), f"{expires} is not a calendar date")


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _workloads(part: CheckedDocument) -> Iterator[ConfigFault]:
    seen: dict[tuple[str, str], Path] = {}
    for entry in part.entries(("workloads",)):
        yield from _paths(part, entry)
        api_version, kind = part.text((*entry, "apiVersion")), part.text((*entry, "kind"))
        if api_version is None or kind is None:
            continue
        first = seen.setdefault((api_version, kind), entry)
        if group_of(api_version) in NATIVE_GROUPS:
            yield part.fault(entry, f"{api_version} {kind} is built into Kubernetes and needs no entry")
        elif first != entry:
            yield part.fault(entry, f"{api_version} {kind} is already in {render_path(first)}")


def _paths(part: CheckedDocument, entry: Path) -> Iterator[ConfigFault]:
    """Yield faults about the combination of path fields of a custom kind.

    A kind needs a ``templatePath``, or a ``constraintsPath`` for constraints outside a pod template.
    """
    written = part.at(entry, dict) or {}
    if "templatePath" not in written and "constraintsPath" not in written:
        yield part.fault((*entry, "templatePath"), "is required without constraintsPath")
    elif {"templatePath", "constraintsPath"} <= written.keys():
        message = "cannot be combined with templatePath; a pod template contains its own constraints"
        yield part.fault((*entry, "constraintsPath"), message, key=True)
    elif "templatePath" in written and "podLabels" in written:
        message = "can only be used with constraintsPath; a pod template contains its own labels"
        yield part.fault((*entry, "podLabels"), message, key=True)
    elif "constraintsPath" in written and "selectorPath" in written:
        message = "can only be used with templatePath; with constraintsPath, use podLabels"
        yield part.fault((*entry, "selectorPath"), message, key=True)


def _staleness(part: CheckedDocument) -> Iterator[ConfigFault]:
    path: Path = ("maxStaleness",)
    written = part.text(path)
    if written is not None and not 0 < seconds(written) <= _MAX_STALENESS_SECONDS:
        yield part.fault(path, f"must be above 0s and at most 24h, is {shown(written)}")


def _expired(part: CheckedDocument, today: str) -> Iterator[ConfigFault]:
    for entry in part.entries(("exemptions",)):
        expires = part.text((*entry, "expires"))
        if expires is not None and expires < today:
            yield part.fault((*entry, "expires"), f"the exemption expired after {expires} and has no effect")


def _unreached_namespaces(part: CheckedDocument) -> Iterator[ConfigFault]:
    decided: dict[str, Path] = {}
    ceiling_is_off = part.at(("ceiling",), str) == "off"
    for entry in part.entries(("namespaces",)):
        if ceiling_is_off and "scaleIn" not in (part.at(entry, dict) or {}):
            yield part.fault(entry, "has no effect: the global ceiling is off, and nothing overrides it")
            continue
        for index, name in enumerate(part.at((*entry, "match", "names"), list) or ()):
            if name in decided:
                message = f"has no effect: {render_path(decided[name])} matches {name}, and the first match wins"
                yield part.fault((*entry, "match", "names", index), message)
            elif part.at((*entry, "match", "namespaceSelector"), dict) is None:
                decided[name] = entry


def _unreached_overrides(part: CheckedDocument) -> Iterator[ConfigFault]:
    path: Path = ("defaults", "overrides")
    widest: Path | None = None
    for entry in part.entries(path):
        if widest is not None:
            yield part.fault(entry, f"has no effect: {render_path(widest)} matches every pod, and the first match wins")
        elif "minReplicas" not in (part.at(entry, dict) or {}) and not any(
            part.at((*entry, name), dict) for name in ("namespaceSelector", "podSelector")
        ):
            widest = entry


def _documentation(part: CheckedDocument) -> Iterator[ConfigFault]:
    path: Path = ("messages", "docsURL")
    address = part.text(path)
    if address and not address.startswith(("http://", "https://")):
        yield part.fault(path, f"must be an http or https URL, is {shown(address)}")


def _schedulers(part: CheckedDocument, profiles: Sequence[SchedulerProfile]) -> Iterator[ConfigFault]:
    names = {profile.name for profile in profiles}
    for index, name in enumerate(part.at(("schedulerNames",), list) or ()):
        if names and name not in names:
            yield part.fault(("schedulerNames", index), f"{name} has no profile in schedulerConfiguration")


def _dropped_keys(part: CheckedDocument) -> Iterator[ConfigFault]:
    if part.text((*_DEFAULTS, "matchLabelKeys")) != "off":
        return
    for owner in (_DEFAULTS, *part.entries((*_DEFAULTS, "overrides"))):
        for entry in part.entries((*owner, "defaultConstraints")):
            if part.at((*entry, "matchLabelKeys"), list):
                message = "has no effect: defaults.matchLabelKeys is off"
                yield part.fault((*entry, "matchLabelKeys"), message)


def _default_constraints(part: CheckedDocument, owner: Path) -> Iterator[ConfigFault]:
    path = (*owner, "defaultConstraints")
    constraints = [_constraint(part, (*path, index)) for index in range(len(part.at(path, list) or ()))]
    defaulting_type = part.at((*owner, "defaultingType"), str) if owner == _DEFAULTS else None
    args = PodTopologySpreadArgs(
        defaulting_type="List" if defaulting_type is None else defaulting_type, default_constraints=tuple(constraints)
    )
    errors = validate_args(args)
    as_pods = [_in_a_pod(part, (*path, index), constraint) for index, constraint in enumerate(constraints)]
    for error in validate_constraints(as_pods, None, "defaultConstraints", RECORDED):
        if any(name in _UNCHECKED for name in parse_path(error.field)):
            errors = (*errors, error)
    yield from (upstream_fault(part.document, error, owner) for error in errors)


def _constraint(part: CheckedDocument, path: Path) -> SpreadConstraint:
    """Return an entry as a constraint. An entry with a fault by the schema becomes a valid dummy."""
    if not part.sound(path):
        return SpreadConstraint(max_skew=1, topology_key=f"entry-{path[-1]}", when_unsatisfiable=SCHEDULE_ANYWAY)
    return converted(part.at(path, dict), SpreadConstraint)


def _in_a_pod(part: CheckedDocument, path: Path, constraint: SpreadConstraint) -> SpreadConstraint:
    """Return a default constraint as a pod would have it.

    It gets a selector, and becomes hard if it has ``hardWhenDomains``.
    """
    hard = part.at((*path, "hardWhenDomains"), int) is not None
    action = DO_NOT_SCHEDULE if hard else constraint.when_unsatisfiable
    return msgspec.structs.replace(constraint, label_selector=LabelSelector(), when_unsatisfiable=action)


def _selectors(part: CheckedDocument, owner: Path) -> Iterator[ConfigFault]:
    for name in _SELECTORS:
        path = (*owner, name)
        written = part.at(path, dict) if part.sound(path) else None
        if written is not None:
            selector = converted(written, LabelSelector)
            for error in selector_errors(selector, name, RECORDED):
                yield upstream_fault(part.document, error, owner)


def _domains(part: CheckedDocument) -> Iterator[ConfigFault]:
    for key in part.at(("domains",), dict) or {}:
        path: Path = ("domains", key)
        for fault in key_faults(key, RECORDED):
            yield part.fault(path, f"is not a valid label key: {fault}", key=True)
        for index in range(len(part.at(path, list) or ())):
            for fault in value_faults(part.text((*path, index)) or "", RECORDED):
                yield part.fault((*path, index), f"is not a valid label value: {fault}")


def upstream_fault(document: ConfigDocument, error: FieldError, owner: Path) -> ConfigFault:
    """Return a fault with the text of Kubernetes' error, at the error's position in the file."""
    return document.fault((*owner, *parse_path(error.field)), error.text.removeprefix(f"{error.field}: "))
