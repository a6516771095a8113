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

# Limits for a readable, small page of the largest group.
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
    DELIVERED: "All workloads have the fields",
}


def in_order(groups: Iterable[GroupWithStatus]) -> list[GroupWithStatus]:
    """Groups with a broken cap first, then groups with another false condition, then the rest by name."""
    return sorted(groups, key=lambda group: (*_rank(group), group.group.meta.namespace, group.group.meta.name))


def find_group(shown: Shown, wanted: Mapping[str, str]) -> GroupWithStatus | None:
    """The group named by a URL."""
    asked = wanted.get("namespace", ""), wanted.get("name", "")
    return next(
        (group for group in shown.groups or () if (group.group.meta.namespace, group.group.meta.name) == asked), None
    )


def group_list(shown: Shown) -> dict[str, object]:
    """The values of the list."""
    groups = in_order(shown.groups or ())
    return {
        "columns": [*_TITLES.values()],
        "lines": [_line(known) for known in groups[:_MOST_LINES]],
        "counted": plural(len(groups), "group"),
        "rest": f"and {len(groups) - _MOST_LINES:,} more" if len(groups) > _MOST_LINES else "",
        "looked_after": shown.groups is not None,
    }


def group_page(of: GroupWithStatus) -> dict[str, object]:
    """The values of a group's page."""
    spec, status = of.group.spec, of.status
    workloads = status.workloads[:_MOST_SHARDS]
    zones = sorted({zone for workload in status.workloads for zone in workload.zones})[:_MOST_ZONES]
    return {
        "name": one_line(of.group.meta.name),
        "namespace": one_line(of.group.meta.namespace),
        "size": "" if spec is None else _size(spec.expected.shards, spec.expected.pods_per_shard),
        "wrongs": [
            one_line(condition.message, _LONGEST) for condition in status.conditions if condition.status == "False"
        ],
        "conditions": [_condition(condition) for condition in status.conditions],
        "caps": [_cap(cap, of) for cap in status.distribution],
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
        "unguarded": _unguarded(of),
    }


def _rank(of: GroupWithStatus) -> tuple[bool, bool]:
    return (
        of.status.condition(CAPS_HELD).status != "False",
        all(condition.status == "True" for condition in of.status.conditions),
    )


def _line(of: GroupWithStatus) -> dict[str, object]:
    name, namespace = of.group.meta.name, of.group.meta.namespace
    conditions = [of.status.condition(condition) for condition in _TITLES]
    return {
        "name": one_line(name),
        "namespace": one_line(namespace),
        "address": link("/group", {"namespace": namespace, "name": name}),
        "cells": [
            {"name": _TITLES[of_type], "text": _word(each), "bad": each.status == "False"}
            for of_type, each in zip(_TITLES, conditions, strict=True)
        ],
    }


def _word(of: DatedCondition) -> str:
    return _WORDS.get(of.status, _WORDS["Unknown"])


def _size(shards: int, pods: int) -> str:
    return f"{plural(shards, 'shard')} of {plural(pods, 'pod')}"


def _condition(of: DatedCondition) -> Fact:
    title = _TITLES.get(of.type, one_line(of.type))
    return Fact(title, f"{_word(of)}: {one_line(of.message, _LONGEST)}", bad=of.status == "False")


def _cap(of: Distribution, among: GroupWithStatus) -> dict[str, object]:
    most = max([*of.domains.values(), of.cap, 1])
    full = most + max(1, most // 8)  # so that the cap is no edge of the picture
    selector = None if of.selector is None else valid_selector(of.selector)
    rows = [
        DomainRow(one_line(name), pods, pods > of.cap, pictures.bar(pods, full=full, limit=of.cap))
        for name, pods in sorted(of.domains.items())
    ]
    return {
        "title": f"At most {plural(of.cap, 'pod')} {in_a_domain(of.topology_key)}",
        "terms": "" if selector is None else f"of the pods with {one_line(selector.text)}",
        "domains": rows,
        "rest": f"and {plural(of.more, 'domain')} with fewer pods" if of.more else "",
        "problem": _problem(of, among),
    }


def _problem(of: Distribution, among: GroupWithStatus) -> str:
    """Why maxSkew cannot replace the cap. Empty if maxSkew keeps the cap too."""
    spec, domains = among.group.spec, len(of.domains) + of.more
    # The list of nodes has only those with pods.
    if spec is None or of.selector is not None or not domains or of.cap < 1 or of.topology_key == HOSTNAME:
        return ""
    pods = spec.expected.shards * spec.expected.pods_per_shard
    worst = fullest(pods, domains, of.cap)
    if worst <= of.cap:
        return ""
    where = domain_noun(of.topology_key)
    return f"maxSkew {of.cap} would not keep it: of {pods} pods in {plural(domains, where)}, {worst} could land in one."


def _fields(of: PlannedWorkload) -> dict[str, str]:
    given = msgspec.to_builtins(of)
    template = {key: given[key] for key in ("topologySpreadConstraints", "affinity") if given.get(key)}
    return {
        "name": f"{one_line(of.kind)} {one_line(of.name)}",
        "yaml": block({"spec": {"template": {"spec": template}}}),
    }


def _rest(workloads: Sequence[PlannedWorkload]) -> str:
    rest = len(workloads) - _MOST_FIELDS
    return f"The status of the SpreadGroup lists the fields of {plural(rest, 'more workload')}." if rest > 0 else ""


def _unguarded(of: GroupWithStatus) -> str:
    unguarded = of.status.unguarded
    if not unguarded.count:
        return ""
    names, more = ", ".join(map(one_line, unguarded.pods)), " …" * (unguarded.count > len(unguarded.pods))
    return f"{plural(unguarded.count, 'pod')} without these fields: {names}{more}"
