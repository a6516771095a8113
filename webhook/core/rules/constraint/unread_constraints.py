"""Find constraints ignored by Kubernetes, in an unknown kind or at a wrong path.

The search covers whole objects. It finds keys similar to topologySpreadConstraints outside the field paths known for
the object's kind (see `kinds`). The admission webhook skips this search.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import takewhile

from msgspec import Struct

from webhook.core.budget import Reason
from webhook.core.json_edits import Edit, written_path
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.as_written import Written
from webhook.core.rules.frame.field_names import intended_field
from webhook.core.rules.frame.rule import Finding, NotEvaluated, Rule, RuleAnswer, Severity
from webhook.core.spelling import nearest, with_article
from webhook.core.text import one_line, quoted
from webhook.core.workloads.custom_kinds import (
    CONSTRAINTS,
    VALUES_KIND,
    configured_layout,
    holds_chart_values,
    may_hold_constraints,
)
from webhook.core.workloads.kind_fields import constraint_paths, has_template
from webhook.core.workloads.kinds import BUILT_IN_KINDS, KINDS
from webhook.core.workloads.layout_paths import path_matches, value_at_layout_path
from webhook.core.workloads.operators import OPERATOR_LAYOUTS
from webhook.core.workloads.reading import read_meta
from webhook.core.yaml_text import flow

_FIELDS = ("maxSkew", "topologyKey", "whenUnsatisfiable")
_NAME = CONSTRAINTS.lower()
_USUAL_LETTERS = 64  # Results for shorter names are cached. Longer names are rarely repeated.
_SLIPS = 3  # The most wrong letters of a misspelt name. Case, hyphens and underscores do not count.
# Deeper and larger than any hand-written object. Searching this many values takes about a second.
_MAX_LEVELS = 128
_MAX_VALUES = 300_000
_TOO_LARGE = Reason(f"more than {_MAX_VALUES:,} lists and mappings in an object, or {_MAX_LEVELS} levels")
_MAX_PLACES_REPORTED = 16  # A generator with one fault causes more. Items of a list count once.
_MAX_PLACES_NAMED = 3  # The most places named where the constraints may belong, the nearest first.
_MAX_FIX_CHARS = 500  # Enough for a line of configuration with two paths and a kind from the object.
# Parts not written by the author.
_PASSED = frozenset({("status",), ("metadata", "managedFields"), ("metadata", "annotations"), ("metadata", "labels")})
_PATTERNS = (".kyverno.io", ".gatekeeper.sh")
_NO_PODS = frozenset({"apiextensions.k8s.io", "admissionregistration.k8s.io"})
_PATHS = ("templatePath", "constraintsPath")
_IN_CONFIGURATION = "change evenspread's configuration, not this file"
_TYPE = re.compile("[A-Za-z][A-Za-z0-9]*")
_PATH = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?:\[\*\])?(?:\.[A-Za-z][A-Za-z0-9_-]*(?:\[\*\])?)*")
_BY_KIND = {kind: group for group, kind in BUILT_IN_KINDS}

_Steps = tuple[str, ...]


class _UnreadKey(Struct, frozen=True):
    """A misplaced key such as topologySpreadConstraints.

    Attributes:
        steps: The path to the key. ``[0]`` is a list item.
        value: The key's value.
        around: The mapping with the key.
    """

    steps: _Steps
    value: object
    around: Mapping[str, object]

    @property
    def key(self) -> str:
        return self.steps[-1]

    @property
    def path(self) -> str:
        """The path of the misplaced key in the object, in API notation: ``spec.template.spec``."""
        return written_path(self.steps)


def evaluate(written: Written) -> Iterator[RuleAnswer]:
    """Evaluate the rule unread-constraints for an object of any kind.

    The object is decoded only if its text may contain constraints.
    """
    if isinstance(written.raw, bytes) and not may_hold_constraints(written.raw):
        return
    owner = read_meta(written.value).controller
    if owner is not None and constraint_paths(owner.api_version, owner.kind, written.embedded):
        return
    if written.group not in _NO_PODS and not f".{written.group}".endswith(_PATTERNS):
        yield from _answers(written)


def _answers(of: Written) -> Iterator[RuleAnswer]:
    api_version, kind, embedded = of.api_version, of.kind, of.embedded
    native = (of.group, kind) in BUILT_IN_KINDS and configured_layout(api_version, kind, embedded) is None
    read = constraint_paths(api_version, kind, embedded)
    is_chart = holds_chart_values(api_version, kind)
    walked = [*_places(of, texts=is_chart)]
    if None in walked:
        yield NotEvaluated(UNREAD.id, _TOO_LARGE)
    places = [each for each in walked if each and (native or _is_list_of_constraints(each.value))]
    if is_chart:
        places = [each for each in places if not _is_value(of, each) or _is_misspelt(each.key)]
    if native and api_version.rpartition("/")[2] != "v1":
        if places:
            yield _of_no_kind(of, kind)
        return
    unread = [each for each in places if not any(path_matches(path, each.steps) for path in read)]
    if has_template(api_version, kind, embedded):
        # In the right place, `unknown-field` reports a misspelt name.
        unread = [
            each
            for each in unread
            if intended_field(each.key) != CONSTRAINTS
            or not any(path_matches(path, (*each.steps[:-1], CONSTRAINTS)) for path in read)
        ]
    if unread and not read and (right := _meant_kind(of)):
        yield _of_no_kind(of, right)
        return
    reported = set[str]()
    for place in unread:
        pattern = written_path(tuple("[*]" if step.startswith("[") else step for step in place.steps))
        if pattern not in reported and len(reported) < _MAX_PLACES_REPORTED:
            reported.add(pattern)
            yield _misplaced(of, place, read[0]) if native else _unknown(of, place, read)


UNREAD = Rule(
    id="unread-constraints",
    title="constraints are in a field that nothing reads",
    severity=Severity.MEDIUM,
    mode=Mode.WARN,
    why=(
        "- In a wrong place or under a misspelt name, constraints reach no pod, and kubectl refuses the object. "
        "The same holds for a kind that no API server has.\n"
        "- If only your API server knows the kind, the constraints may work, but evenspread cannot check them. Add "
        "the kind to [`workloads`](../configuration.md#workloads).\n"
        "- In values of a chart (values file, HelmRelease, Application), Helm drops a misspelt name silently."
    ),
    evaluate_written=evaluate,
)


def _is_field(steps: _Steps, written: Written) -> bool:
    """Whether Kubernetes knows the field at this path. The rule `unknown-field` covers fields below unknown fields."""
    path = written_path(steps)
    below_unknown = (f"{path}.".startswith((f"{each}.", f"{each}[")) for each in written.unknown)
    return written.is_known(path) and not any(below_unknown)


def _places(written: Written, *, texts: bool = False) -> Iterator[_UnreadKey | None]:
    """Yield every key that looks like topologySpreadConstraints, in the object's order.

    Yield None if the object is too large to search.

    Args:
        written: The object.
        texts: Include text under a misspelt name, because a chart may render it.
    """
    pending: list[tuple[_Steps, Mapping[str, object] | list[object]]] = [((), written.value)]
    seen = 0
    while pending:
        steps, here = pending.pop()
        seen += 1
        if seen > _MAX_VALUES or len(steps) > _MAX_LEVELS:
            yield None
            return
        inner: list[tuple[_Steps, object]] = []
        if isinstance(here, list):
            inner = [((*steps, f"[{index}]"), each) for index, each in enumerate(here)]
        else:
            for key, each in here.items():
                if (*steps, key) not in _PASSED:
                    if isinstance(each, str):
                        if texts and _is_misspelt(key) and any(name in each for name in _FIELDS):
                            yield _UnreadKey((*steps, key), each, here)
                    elif (_usual_sounds if len(key) <= _USUAL_LETTERS else _sounds_like_constraints)(key) or (
                        _is_list_of_constraints(each, surely=True) and not _is_field((*steps, key), written)
                    ):
                        yield _UnreadKey((*steps, key), each, here)
                    else:
                        inner.append(((*steps, key), each))
        pending += reversed([(at, each) for at, each in inner if isinstance(each, Mapping | list)])


def _is_misspelt(key: str) -> bool:
    return key != CONSTRAINTS and intended_field(key) == CONSTRAINTS


def _is_value(of: Written, place: _UnreadKey) -> bool:
    return of.kind == VALUES_KIND or any("values" in step.lower() for step in place.steps[:-1])


def _sounds_like_constraints(key: str) -> bool:
    return nearest(key.lower().replace("-", "").replace("_", ""), (_NAME,), _SLIPS) is not None


# The fields of Kubernetes come again in every object of a cluster.
_usual_sounds = lru_cache(maxsize=1024)(_sounds_like_constraints)


def _is_list_of_constraints(value: object, *, surely: bool = False) -> bool:
    if isinstance(value, str):
        return True  # `_places` gives no other text
    least = 2 if surely else 1
    items = value if isinstance(value, list) else [value]
    return any(isinstance(each, Mapping) and sum(name in each for name in _FIELDS) >= least for each in items)


def _of_no_kind(of: Written, kind: str) -> Finding:
    """Return the finding for a type unknown to every API server. ``kind`` is the likely kind."""
    native = "." not in of.group
    group, api_version = of.group, of.api_version
    nobody = "no supported Kubernetes release" if native else "no API server"
    if native and kind in _BY_KIND:
        group = _BY_KIND[kind]
        api_version = f"{group}/v1".removeprefix("/")
    pairs = (("apiVersion", of.api_version, api_version), ("kind", of.kind, kind))
    edits = tuple(Edit(path, right) for path, written, right in pairs if written != right)
    texts = [f"{edit.path}: {edit.value}" for edit in edits]
    # Older versions defaulted the selector. Current versions require it.
    selects = group != "apps" or isinstance(value_at_layout_path(of.value, "spec.selector"), Mapping)
    return Finding(
        rule=UNREAD.id,
        path=edits[0].path,
        summary=f"{nobody} has kind {_shown(of.kind)} in {_shown(of.api_version)}, so these constraints reach no pod",
        remedy=f"use {' and '.join(texts)}",
        detail="the API server refuses the object, because it has no such kind",
        fix=texts[0] if len(texts) == 1 else f"set {' and set '.join(texts)}",
        edits=edits if selects else (),
        key="kind",
        severity=Severity.HIGH,
    )


def _meant_kind(of: Written) -> str:
    known = {kind for group, kind in (*KINDS, *OPERATOR_LAYOUTS) if group == of.group}
    known |= {each.kind for each in of.embedded if each.api_version == of.api_version}
    native, written = "." not in of.group, of.kind.lower()
    kinds: list[str] = [*sorted(known), *(sorted(_BY_KIND) if native else ())]
    for kind in kinds:
        name = kind.lower()
        slips = min(_SLIPS if native else 0, len(name) // 4)
        if written in {name, f"{name}s"} or nearest(written, (name,), slips) is not None:
            return kind
    return ""


def _misplaced(of: Written, place: _UnreadKey, right: str) -> Finding:
    parent = right.rpartition(".")[0]
    is_misspelt = written_path(place.steps[:-1]) == parent
    edits: tuple[Edit, ...]
    there = isinstance(value_at_layout_path(of.value, parent), Mapping)
    taken = value_at_layout_path(of.value, right) is not None
    edits = (Edit(place.path), Edit(right, place.value))
    if not place.value:
        fix, edits = f"remove {place.key}", edits[:1]
    elif taken:
        fix, edits = f"move the missing constraints to {right} and remove this field", ()
    elif is_misspelt:
        fix = f"rename it to {CONSTRAINTS}"
    else:
        fix = f"move to {right if place.key != CONSTRAINTS else parent}"
        edits = edits if there else ()
    what, who = "constraints do not belong here", "they"
    if is_misspelt:
        what, who = f"a pod's spec has no field {_shown(place.key)}", "these constraints"
    return Finding(
        rule=UNREAD.id,
        path=place.path,
        summary=f"{what}, so {who} reach no pod" if place.value else f"{what}, so it has no effect",
        remedy=fix,
        detail="kubectl refuses the field, and kube-apiserver drops it;"
        f" {with_article(of.kind)} has its constraints in {right}",
        fix=fix,
        edits=edits if isinstance(place.value, list) or not place.value else (),
        key=place.path,
        severity=Severity.HIGH,
    )


def _unknown(of: Written, place: _UnreadKey, read: tuple[str, ...]) -> Finding:
    if holds_chart_values(of.api_version, of.kind) and _is_value(of, place):
        return _misspelt_value(place)
    kind, severity, by_hand = with_article(_shown(of.kind)), None, ""
    summary = f"evenspread does not know where {kind} has constraints, so it did not check these"
    entry = _entry(of, place)
    line = f"- {flow(entry)}" if entry else ""
    if "." not in of.group:
        severity = Severity.HIGH
        summary = f"{kind} creates no pods, so these constraints have no effect"
        remedy = fix = "move them to a workload's pod template"
    elif configured_layout(of.api_version, of.kind, of.embedded) is not None:
        name, path = next(((name, entry[name]) for name in _PATHS if name in entry), ("", ""))
        own = next(each for each in of.embedded if (each.api_version, each.kind) == (of.api_version, of.kind))
        written = own.template_path or own.constraints_path
        entry_of = f"the configuration's workloads entry for {_shown(of.kind)}"
        summary = f"{entry_of} points to {written}, so these constraints are not read"
        by_hand = _IN_CONFIGURATION
        remedy = f"set {name}: {path}" if path else "correct the path in workloads"
        fix = f"change the entry in workloads in the configuration to: {line}" if line else remedy
    elif read:
        near = _nearest(place, read)
        named = " or ".join(path.rpartition(".")[0] for path in near[:_MAX_PLACES_NAMED])
        summary = f"evenspread does not read or check constraints of {kind} at this path"
        remedy = fix = f"move to {named}"
    else:
        by_hand = _IN_CONFIGURATION
        remedy = "add the kind to workloads in the configuration"
        fix = f"add to workloads in the configuration: {line}" if line else remedy
    return Finding(
        rule=UNREAD.id,
        path=place.path,
        summary=summary,
        remedy=remedy,
        detail="no known kind and no configuration reads constraints at this path, so no rule checked them",
        fix=one_line(fix, _MAX_FIX_CHARS),
        by_hand=by_hand,
        key=place.path,
        severity=severity,
    )


def _misspelt_value(place: _UnreadKey) -> Finding:
    fix = f"rename it to {CONSTRAINTS}, unless the chart uses {_shown(place.key)}"
    return Finding(
        rule=UNREAD.id,
        path=place.path,
        summary=f"{_shown(place.key)} looks like a misspelt {CONSTRAINTS}, and Helm drops unused values",
        remedy=fix,
        detail="Helm reports no error for a value that the chart's templates do not use",
        fix=fix,
        by_hand="only the chart's templates show the names it uses",
        key=place.path,
    )


def _nearest(place: _UnreadKey, read: tuple[str, ...]) -> list[str]:
    steps = place.path.split(".")
    shared = {
        path: len([*takewhile(lambda pair: pair[0] == pair[1], zip(steps, path.split("."), strict=False))])
        for path in read
    }
    return [path for path in read if shared[path] == max(shared.values())]


def _entry(of: Written, place: _UnreadKey) -> Mapping[str, str]:
    """Return the `workloads` configuration entry for reading these constraints. Empty if no entry can read them."""
    kind = {"apiVersion": of.api_version, "kind": of.kind}
    above = place.steps[:-2]
    is_template = False
    if above and place.steps[-2:] == ("spec", CONSTRAINTS):
        template = _at(of.value, above)
        has_metadata = isinstance(template, Mapping) and "metadata" in template
        is_template = has_metadata or "containers" in place.around or above[-1].lower().endswith("template")
    steps = above if is_template else place.steps
    path = "".join("[*]" if step.startswith("[") else f".{step}" for step in steps).removeprefix(".")
    if not _PATH.fullmatch(path) or not _TYPE.fullmatch(of.kind):
        return {}
    entry = {**kind, _PATHS[0] if is_template else _PATHS[1]: path}
    last = max((number for number, step in enumerate(place.steps) if step.startswith("[")), default=-1)
    around = _at(of.value, place.steps[: last + 1]) if last >= 0 else of.value
    replicas = "replicas" if last >= 0 else "spec.replicas"
    if type(value_at_layout_path(around, replicas)) is int:
        entry["replicasPath"] = replicas
    if is_template and isinstance(value_at_layout_path(of.value, "spec.selector"), Mapping):
        entry["selectorPath"] = "spec.selector"
    return entry


def _at(value: object, steps: _Steps) -> object:
    """Return the value at this path. Keys may contain any text, so a joined path would be ambiguous."""
    for step in steps:
        members = value if isinstance(value, Mapping) else {}
        value = value[int(step[1:-1])] if isinstance(value, list) else members[step]
    return value


def _shown(text: str) -> str:
    return quoted(text, 40)
