"""Checks that the schema cannot express: rule ids, dates, durations, selectors, entries that are never reached.

A part that the schema already found wrong is not judged again, so that one mistake is one fault.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date

from webhook.config.faults import ConfigFault, Path, render_path, shown
from webhook.config.kubernetes_checks import upstream_faults, upstream_warnings
from webhook.config.lenient_view import View
from webhook.core.policy.policy import release
from webhook.core.rules.rule_set import RULES
from webhook.core.scheduler.profile import SchedulerProfile
from webhook.core.workloads.kinds import NATIVE_GROUPS, group_of

RULES_VERSION = max((rule.since for rule in RULES), key=release)
MAX_STALENESS_SECONDS = 24 * 3600.0  # a copy of a cluster that is a day old says nothing about it

_DURATION_PART = re.compile(r"([0-9.]+)(h|ms|us|µs|ns|m|s)")
# Go's units (time.ParseDuration), since the same people write both; both ways to write micro.
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def meaning_faults(part: View) -> Iterator[ConfigFault]:
    """Faults of a configuration that fits the schema."""
    yield from _rules_version(part)
    yield from _exemptions(part)
    yield from _workloads(part)
    yield from _staleness(part)
    yield from upstream_faults(part)


def meaning_warnings(part: View, profiles: Sequence[SchedulerProfile], today: str) -> Iterator[ConfigFault]:
    """Parts that are valid, but do not do what their author may expect."""
    yield from _expired(part, today)
    yield from _unreached_namespaces(part)
    yield from _unreached_overrides(part)
    yield from _documentation(part)
    yield from _schedulers(part, profiles)
    yield from upstream_warnings(part)


def seconds(duration: str) -> float:
    """A duration as Go writes it, in seconds; the schema has checked its form."""
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(duration))


def _rules_version(part: View) -> Iterator[ConfigFault]:
    version = part.text(("rulesVersion",))
    if version is not None and release(version) > release(RULES_VERSION):
        message = f"{version} is newer than this release, which knows rules up to {RULES_VERSION}"
        yield part.document.fault(("rulesVersion",), message)


def _exemptions(part: View) -> Iterator[ConfigFault]:
    for entry in part.entries(("exemptions",)):
        expires = part.text((*entry, "expires"))
        if expires is not None and not _is_date(expires):
            yield part.document.fault((*entry, "expires"), f"{expires} is no day of the calendar")


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _workloads(part: View) -> Iterator[ConfigFault]:
    seen: dict[tuple[str, str], Path] = {}
    for entry in part.entries(("workloads",)):
        yield from _paths(part, entry)
        api_version, kind = part.text((*entry, "apiVersion")), part.text((*entry, "kind"))
        if api_version is None or kind is None:
            continue
        first = seen.setdefault((api_version, kind), entry)
        if group_of(api_version) in NATIVE_GROUPS:
            yield part.document.fault(entry, f"{api_version} {kind} is Kubernetes' own and needs no entry")
        elif first != entry:
            yield part.document.fault(entry, f"{api_version} {kind} stands in {render_path(first)} already")


def _paths(part: View, entry: Path) -> Iterator[ConfigFault]:
    """Faults about the paths of a kind: it has a pod template, or constraints outside of one."""
    written = part.at(entry, dict) or {}
    if "templatePath" not in written and "constraintsPath" not in written:
        yield part.document.fault((*entry, "templatePath"), "is required, or constraintsPath")
    elif {"templatePath", "constraintsPath"} <= written.keys():
        message = "one of templatePath and constraintsPath is enough; the constraints of a pod template stand in it"
        yield part.document.fault((*entry, "constraintsPath"), message, key=True)
    elif "templatePath" in written and "podLabels" in written:
        yield part.document.fault(
            (*entry, "podLabels"), "belongs to constraintsPath; a pod template has its labels", key=True
        )
    elif "constraintsPath" in written and "selectorPath" in written:
        yield part.document.fault(
            (*entry, "selectorPath"), "belongs to templatePath; beside constraintsPath use podLabels", key=True
        )


def _staleness(part: View) -> Iterator[ConfigFault]:
    path: Path = ("maxStaleness",)
    written = part.text(path)
    if written is not None and not 0 < seconds(written) <= MAX_STALENESS_SECONDS:
        yield part.document.fault(path, f"must be above 0s and at most 24h, is {shown(written)}")


def _expired(part: View, today: str) -> Iterator[ConfigFault]:
    for entry in part.entries(("exemptions",)):
        expires = part.text((*entry, "expires"))
        if expires is not None and expires < today:
            yield part.document.fault((*entry, "expires"), f"{expires} is over; the exemption has no effect any more")


def _unreached_namespaces(part: View) -> Iterator[ConfigFault]:
    decided: dict[str, Path] = {}
    ceiling_is_off = part.at(("ceiling",), str) == "off"
    for entry in part.entries(("namespaces",)):
        if ceiling_is_off:
            yield part.document.fault(entry, "has no effect: the global ceiling is off, which nothing lifts")
            continue
        for index, name in enumerate(part.at((*entry, "match", "names"), list) or ()):
            if name in decided:
                message = f"{name} is decided by {render_path(decided[name])}; the first match wins"
                yield part.document.fault((*entry, "match", "names", index), message)
            elif part.at((*entry, "match", "namespaceSelector"), dict) is None:
                decided[name] = entry


def _unreached_overrides(part: View) -> Iterator[ConfigFault]:
    path: Path = ("defaults", "overrides")
    widest: Path | None = None
    for entry in part.entries(path):
        if widest is not None:
            yield part.document.fault(entry, f"is never reached: {render_path(widest)} matches every pod")
        elif "minReplicas" not in (part.at(entry, dict) or {}) and not any(
            part.at((*entry, name), dict) for name in ("namespaceSelector", "podSelector")
        ):
            widest = entry


def _documentation(part: View) -> Iterator[ConfigFault]:
    path: Path = ("messages", "docsURL")
    address = part.text(path)
    if address and not address.startswith(("http://", "https://")):
        yield part.document.fault(path, f"{shown(address)} is no http or https address")


def _schedulers(part: View, profiles: Sequence[SchedulerProfile]) -> Iterator[ConfigFault]:
    names = {profile.name for profile in profiles}
    for index, name in enumerate(part.at(("schedulerNames",), list) or ()):
        if names and name not in names:
            yield part.document.fault(("schedulerNames", index), f"{name} has no profile in schedulerConfiguration")
