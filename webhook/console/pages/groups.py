"""SpreadGroups: the list, and the page of one group with its problems, caps, plan, proof and fields."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from webhook.console.pages import pictures
from webhook.console.pages.first_screen import Fact
from webhook.console.pages.workload import DomainRow
from webhook.console.query import link
from webhook.console.shown import Shown
from webhook.core.api.selectors import valid_selector
from webhook.core.api.spread_group import CANNOT_GET_STUCK, CAPS_HELD, DELIVERED, FITS, PLANNED, PlannedWorkload
from webhook.core.api.well_known import HOSTNAME
from webhook.core.groups.caps import fullest
from webhook.core.groups.derive import domain_noun, in_a_domain
from webhook.core.groups.status.forms import DatedCondition, Distribution, GroupWithStatus
from webhook.core.text import one_line, plural
from webhook.core.yaml_text import block

# Page sizes: 500 groups have 191 kB. A group of 200 shards, the most, in 26 zones has 93 kB. Without the limits of
# shards and fields it has 404 kB.
_MOST_LINES = 500
_MOST_SHARDS = 60
_MOST_FIELDS = 20
_MOST_ZONES = 20
_LONGEST = 1_000  # characters of a condition's message
_WORDS = {"True": "yes", "False": "no", "Unknown": "not known"}
_TITLES = {
    PLANNED: "There is a plan",
    FITS: "All pods fit",
    CANNOT_GET_STUCK: "No order gets stuck",
    CAPS_HELD: "Every cap holds",
    DELIVERED: "All workloads have the plan's fields",
}


def in_order(groups: Iterable[GroupWithStatus]) -> list[GroupWithStatus]:
    """Sort groups: first those with a broken cap, then those with another unmet condition, then the rest, by name."""
    return sorted(groups, key=lambda group: (*_rank(group), group.group.meta.namespace, group.group.meta.name))


def find_group(shown: Shown, wanted: Mapping[str, str]) -> GroupWithStatus | None:
    """Return the group named by a URL's parameters, if it exists."""
    asked = wanted.get("namespace", ""), wanted.get("name", "")
    return next(
        (group for group in shown.groups or () if (group.group.meta.namespace, group.group.meta.name) == asked), None
    )


def group_list(shown: Shown) -> dict[str, object]:
    """Return the template's values for the list of groups."""
    groups = in_order(shown.groups or ())
    return {
        "columns": [*_TITLES.values()],
        "lines": [_line(known) for known in groups[:_MOST_LINES]],
        "counted": plural(len(groups), "group"),
        "rest": f"and {len(groups) - _MOST_LINES:,} more" if len(groups) > _MOST_LINES else "",
        "looked_after": shown.groups is not None,
    }


def group_page(known: GroupWithStatus) -> dict[str, object]:
    """Return the template's values for the page of a group."""
    spec, status = known.group.spec, known.status
    workloads = status.workloads[:_MOST_SHARDS]
    zones = sorted({zone for workload in status.workloads for zone in workload.zones})[:_MOST_ZONES]
    return {
        "name": one_line(known.group.meta.name),
        "namespace": one_line(known.group.meta.namespace),
        "size": ""
        if spec is None
        else f"{plural(spec.expected.shards, 'shard')} of {plural(spec.expected.pods_per_shard, 'pod')}",
        "wrongs": [
            one_line(condition.message, _LONGEST) for condition in status.conditions if condition.status == "False"
        ],
        "conditions": [_condition(condition) for condition in status.conditions],
        "caps": [_cap(cap, known) for cap in status.distribution],
        "zones": [one_line(name, 40) for name in zones],
        "shards": [
            {"name": one_line(workload.name), "cells": [zone in workload.zones for zone in zones]}
            for workload in workloads
        ]
        if zones
        else [],
        "fields": [_fields(workload) for workload in workloads[:_MOST_FIELDS]],
        "rest": _rest(status.workloads),
        "moves": status.moves,
        "unguarded": _unguarded(known),
    }


def _rank(known: GroupWithStatus) -> tuple[bool, bool]:
    return (
        known.status.condition(CAPS_HELD).status != "False",
        all(condition.status == "True" for condition in known.status.conditions),
    )


def _line(known: GroupWithStatus) -> dict[str, object]:
    name, namespace = known.group.meta.name, known.group.meta.namespace
    conditions = [known.status.condition(condition) for condition in _TITLES]
    return {
        "name": one_line(name),
        "namespace": one_line(namespace),
        "address": link("/group", {"namespace": namespace, "name": name}),
        "cells": [
            {"name": _TITLES[of_type], "text": _word(each), "bad": each.status == "False"}
            for of_type, each in zip(_TITLES, conditions, strict=True)
        ],
    }


def _word(condition: DatedCondition) -> str:
    return _WORDS.get(condition.status, _WORDS["Unknown"])


def _condition(condition: DatedCondition) -> Fact:
    title = _TITLES.get(condition.type, one_line(condition.type))
    return Fact(title, f"{_word(condition)}: {one_line(condition.message, _LONGEST)}", bad=condition.status == "False")


def _cap(cap: Distribution, among: GroupWithStatus) -> dict[str, object]:
    most = max([*cap.domains.values(), cap.cap, 1])
    full = most + max(1, most // 8)  # so that the cap is no edge of the picture
    selector = None if cap.selector is None else valid_selector(cap.selector)
    rows = [
        DomainRow(one_line(name), pods, pods > cap.cap, pictures.bar(pods, full=full, limit=cap.cap))
        for name, pods in sorted(cap.domains.items())
    ]
    return {
        "title": f"At most {plural(cap.cap, 'pod')} {in_a_domain(cap.topology_key)}",
        "terms": "" if selector is None else f"of the pods with {one_line(selector.text)}",
        "domains": rows,
        "rest": f"and {plural(cap.more, 'domain')} with fewer pods" if cap.more else "",
        "problem": _problem(cap, among),
    }


def _problem(cap: Distribution, among: GroupWithStatus) -> str:
    """Return why maxSkew alone would not keep the cap. Empty if it would."""
    spec, domains = among.group.spec, len(cap.domains) + cap.more
    # The list of nodes has only those with pods.
    if spec is None or cap.selector is not None or not domains or cap.cap < 1 or cap.topology_key == HOSTNAME:
        return ""
    pods = spec.expected.shards * spec.expected.pods_per_shard
    worst = fullest(pods, domains, cap.cap)
    if worst <= cap.cap:
        return ""
    where = plural(domains, domain_noun(cap.topology_key))
    return f"maxSkew {cap.cap} would not keep the cap: of {pods} pods in {where}, {worst} could be in one."


def _fields(workload: PlannedWorkload) -> dict[str, str]:
    given = msgspec.to_builtins(workload)
    template = {key: given[key] for key in ("topologySpreadConstraints", "affinity") if given.get(key)}
    return {
        "name": f"{one_line(workload.kind)} {one_line(workload.name)}",
        "yaml": block({"spec": {"template": {"spec": template}}}),
    }


def _rest(workloads: Sequence[PlannedWorkload]) -> str:
    rest = len(workloads) - _MOST_FIELDS
    return f"The status of the SpreadGroup lists the fields of {plural(rest, 'more workload')}." if rest > 0 else ""


def _unguarded(known: GroupWithStatus) -> str:
    unguarded = known.status.unguarded
    if not unguarded.count:
        return ""
    names, more = ", ".join(map(one_line, unguarded.pods)), " …" * (unguarded.count > len(unguarded.pods))
    return f"{plural(unguarded.count, 'pod')} without the plan's fields: {names}{more}"
