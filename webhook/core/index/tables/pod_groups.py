"""Group the pods of one namespace by labels, and count them per node.

Pods with the same labels form a group, so a selector is evaluated once per group. Some label keys have nearly as many
values as there are pods: a StatefulSet's pod name, a Job's completion index, or the zone copied onto bound pods. Such a
key would turn each pod into a separate group. So its values are kept in another table (``aside``):

    labels {app: db, pod-name: db-0}   ->   group {app: db, pod-name: *}   aside {pod-name: db-0}

Selectors on such keys stay exact. The group knows whether the key is present, and the values are compared pod by pod.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeVar

from msgspec import Struct

from webhook.core.api.pod_requests import PodRequest
from webhook.core.api.requirements import Requirement
from webhook.core.api.well_known import (
    HOSTNAME,
    JOB_COMPLETION_INDEX,
    JOB_LABELS,
    POD_INDEX,
    POD_NAME,
    REGION,
    WORKER_INDEX,
    ZONE,
)
from webhook.core.budget import check_time
from webhook.core.index.pod_extras import Extras
from webhook.core.index.pods import Counts
from webhook.core.index.tables.shrinking import discard, drop, drop_under, shared

# Many-valued keys that are known in advance: their values differ between pods, or are copied from the node.
_MANY_VALUED = frozenset(
    {POD_NAME, POD_INDEX, JOB_COMPLETION_INDEX, *JOB_LABELS, HOSTNAME, ZONE, REGION, WORKER_INDEX, "ray.io/node-name"}
)
# Replaces the value of a many-valued key in the labels of a group. No real label can have it.
_ASIDE = "\0"
# In pods. Keys are examined at this number of pods, and each time it has doubled. A key becomes many-valued if it has
# at least this many values, and fewer than two pods per value.
LEARN_AT = 256
_PODS_PER_VALUE = 2
# In pods per value. A key that became many-valued too early, when each app had one pod, becomes ordinary here.
_PODS_PER_FEW = 8
# Keys are also examined when the pods fall below this fraction of the next examination: 1/4.
_FORGET_AT = 4
# Measured: up to this many groups, evaluating a requirement on each is cheaper than intersecting sets.
_FEW_GROUPS = 64
# In groups. The counts of a selector with more groups are kept, and updated by events.
_WORTH_KEEPING = 48
_KEPT_COUNTS = 8  # Each is checked at every pod event, and takes 150 KB with pods on 5,000 nodes.
# Only selectors up to this many values and characters are kept, since users can send longer ones.
_KEPT_VALUES = 64
_KEPT_TEXT = 4096
# Groups with more labels are compared one by one, because an index entry takes more memory than its label.
_MAX_INDEXED_LABELS = 48

_Key = TypeVar("_Key")
Requirements = tuple[Requirement, ...]


class _PodGroup(Struct, eq=False):
    """Pods with the same labels.

    Attributes:
        labels: The labels. A key with many values has the placeholder ASIDE as value.
        counts: The number of pods by slot, never 0.
        terminating: The number of terminating pods by slot. Affinity terms count them, spread constraints do not.
        unspread: The number of pods without a constraint, except terminating ones.
    """

    labels: Mapping[str, str]
    counts: dict[int, int] = {}
    terminating: dict[int, int] = {}
    unspread: int = 0


class PodRecord(Struct, eq=False, kw_only=True):
    """A scheduled pod in the index.

    Attributes:
        uid: The pod's uid.
        slot: The node's slot.
        group: The group of pods with the same labels.
        aside: The label values of keys with many distinct values. The group's labels omit these values.
        request: The pod's requested resources.
        terminating: Whether the pod is being deleted.
        priority: The pod's priority.
        spread: Whether the pod has a constraint.
        extras: The pod's host ports, volumes and anti-affinity terms.
    """

    uid: str
    slot: int
    group: _PodGroup
    aside: Mapping[str, str]
    request: PodRequest
    terminating: bool
    priority: int
    spread: bool
    extras: Extras


class _Kept(Struct, eq=False):
    """The number of pods on each node that match a selector. Events update the numbers."""

    requirements: Requirements
    counts: dict[int, int]

    def update(self, record: PodRecord, sign: int) -> None:
        """Count an added (1) or removed (-1) pod, if the selector matches it."""
        labels, aside = record.group.labels, record.aside
        for requirement in self.requirements:
            if not requirement.matches(aside if requirement.key in aside else labels):
                return
        bump(self.counts, record.slot, sign)


class NamespacePods:
    """The scheduled pods of one namespace, grouped by labels."""

    def __init__(self, learn_at: int = LEARN_AT) -> None:
        self.records: dict[str, PodRecord] = {}
        self.groups: dict[frozenset[tuple[str, str]], _PodGroup] = {}
        self._by_label: dict[str, dict[str, set[_PodGroup]]] = {}
        self._many_labelled: set[_PodGroup] = set()  # the groups that are not in _by_label
        self._many_valued = set(_MANY_VALUED)
        self._aside: dict[str, dict[str, set[PodRecord]]] = {}
        self._kept: dict[Requirements, _Kept] = {}
        self._total: dict[int, int] = {}
        self._least = self._learn_at = learn_at

    def group(self, labels: Mapping[str, str]) -> tuple[_PodGroup, Mapping[str, str]]:
        """Return the group of pods with these labels, and the labels kept out of groups.

        A new group is created if necessary. Labels with many values, such as a pod name, are kept out of groups.
        """
        if self._many_valued.isdisjoint(labels):
            key: frozenset[tuple[str, str]] = frozenset(labels.items())
            aside: dict[str, str] = _NOTHING_ASIDE
        else:
            aside = {name: labels[name] for name in self._many_valued & labels.keys()}
            key = frozenset((name, _ASIDE if name in aside else value) for name, value in labels.items())
        group = self.groups.get(key)
        return (self._new_group(key) if group is None else group), aside

    def _new_group(self, key: frozenset[tuple[str, str]]) -> _PodGroup:
        group = self.groups[key] = _PodGroup({shared(name): shared(value) for name, value in key})
        if len(key) > _MAX_INDEXED_LABELS:
            self._many_labelled.add(group)
            return group
        for name, value in group.labels.items():
            values = self._by_label.setdefault(name, {})
            members = values.get(value)
            if members is None:
                values[value] = {group}
            else:
                members.add(group)
        return group

    def add(self, name: str, record: PodRecord) -> None:
        """Add a pod."""
        self.records[name] = record
        if record.aside:
            for key, value in record.aside.items():
                self._aside.setdefault(key, {}).setdefault(value, set()).add(record)
        self._count(record, 1)
        if len(self.records) >= self._learn_at:
            self._learn_at = 2 * len(self.records)
            self._learn()

    def remove(self, name: str) -> PodRecord | None:
        """Remove a pod. None if there is none of this name."""
        record = drop(self.records, name)
        if record is None:
            return None
        for key, value in record.aside.items():
            self._put_back(key, value, record)
        self._count(record, -1)
        group = record.group
        if not group.counts and not group.terminating:
            self._drop_group(group)
        if len(self.records) * _FORGET_AT < self._learn_at > self._least:
            self._learn_at = max(self._least, 2 * len(self.records))
            self._learn()
        return record

    def _put_back(self, key: str, value: str, record: PodRecord) -> None:
        holders = self._aside[key][value]
        discard(holders, record)
        if not holders:
            drop_under(self._aside, key, value)
            if key not in self._aside and key not in _MANY_VALUED:
                discard(self._many_valued, key)

    def _count(self, record: PodRecord, sign: int) -> None:
        if record.terminating:
            bump(record.group.terminating, record.slot, sign)
            return
        bump(record.group.counts, record.slot, sign)
        record.group.unspread += 0 if record.spread else sign
        bump(self._total, record.slot, sign)
        if self._kept:
            for kept in self._kept.values():
                kept.update(record, sign)

    def _drop_group(self, group: _PodGroup) -> None:
        drop(self.groups, frozenset(group.labels.items()))
        if group in self._many_labelled:
            discard(self._many_labelled, group)
            return
        for name, value in group.labels.items():
            members = self._by_label[name][value]
            discard(members, group)
            if not members:
                drop_under(self._by_label, name, value)

    def _learn(self) -> None:
        """Recompute which label keys are many-valued (nearly a value per pod). If any changed, regroup all pods."""
        pods, learnt = len(self.records), self._many_valued - _MANY_VALUED
        many = {
            name
            for name, values in self._by_label.items()
            if len(values) >= self._least and len(values) * _PODS_PER_VALUE > pods
        }
        few = {name for name in learnt if len(self._aside.get(name, ())) * _PODS_PER_FEW < pods or pods < self._least}
        if not many and not few:
            return
        self._many_valued = (self._many_valued | many) - few
        records, self.records = self.records, {}
        self.groups, self._by_label, self._aside, self._kept, self._total = {}, {}, {}, {}, {}
        self._many_labelled.clear()
        for name, record in records.items():
            labels = {key: value for key, value in record.group.labels.items() if value != _ASIDE}
            record.group, record.aside = self.group({**labels, **record.aside})
            self.add(name, record)

    def matching(self, requirements: Requirements) -> Collection[_PodGroup]:
        """Return the groups of pods with labels matching all requirements.

        Groups do not store the values of label keys with many distinct values, such as a pod name. So no requirement
        may compare the value of such a key.
        """
        # Start from the positive requirement with the fewest groups, then apply the others to these groups.
        chosen, size = None, len(self.groups) + 1
        for requirement in requirements:
            if requirement.operator in _POSITIVE:
                values = self._by_label.get(requirement.key)
                left = sum(len(values[value]) for value in requirement.values if value in values) if values else 0
                if not left and not self._many_labelled:
                    return ()
                if left < size:
                    chosen, size = requirement, left
        groups: Collection[_PodGroup] = self.groups.values() if chosen is None else self._with_value(chosen)
        for requirement in requirements:
            if requirement is not chosen and groups:
                groups = self._narrowed(groups, requirement)
        return groups

    def _with_value(self, requirement: Requirement) -> set[_PodGroup]:
        values = self._by_label.get(requirement.key, {})
        sets = [values[value] for value in requirement.values if value in values]
        if self._many_labelled:
            sets.append(
                {group for group in self._many_labelled if group.labels.get(requirement.key) in requirement.values}
            )
        return sets[0] if len(sets) == 1 else set().union(*sets)

    def _narrowed(self, groups: Collection[_PodGroup], requirement: Requirement) -> Collection[_PodGroup]:
        key = requirement.key
        if len(groups) > _FEW_GROUPS:
            if requirement.operator == "NotIn":
                return set(groups) - self._with_value(requirement)
            if requirement.operator == "Exists":
                return [group for group in groups if key in group.labels]
            if requirement.operator == "DoesNotExist":
                return [group for group in groups if key not in group.labels]
        return [group for group in groups if requirement.matches(group.labels)]

    def count(self, requirements: Requirements, *, terminating: bool) -> Counts:
        """See `Pods.count`."""
        # Selectors such as ``app!=web`` match nearly every group. Add them up once, then let events update the sum.
        kept = None if terminating else self._kept.get(requirements)
        if kept is not None:
            return dict(kept.counts)
        by_value, by_group = self._apart(requirements)
        if any(condition.operator in _POSITIVE for condition in by_value):
            holders = self._holders(by_value, by_group)
            counts, asked = _on_slots(holders, terminating=terminating), len(holders)
        else:
            counts, asked = self._count_groups(by_group, terminating=terminating)
            if by_value:
                # All remaining conditions on many-valued keys are NotIn. Subtract their pods from the groups' counts.
                for slot, number in _on_slots(self._refused(by_value, by_group), terminating=terminating).items():
                    bump(counts, slot, -number)
        if asked > _WORTH_KEEPING and not terminating and _short(requirements):
            if len(self._kept) >= _KEPT_COUNTS:
                del self._kept[next(iter(self._kept))]
            self._kept[requirements] = _Kept(requirements, dict(counts))
        return counts

    def count_unspread(self, requirements: Requirements) -> int:
        """The number of matching pods without a constraint, except terminating pods."""
        by_value, by_group = self._apart(requirements)
        if any(each.operator in _POSITIVE for each in by_value):
            return sum(not (holder.terminating or holder.spread) for holder in self._holders(by_value, by_group))
        refused = self._refused(by_value, by_group) if by_value else ()
        unspread = sum(group.unspread for group in self.matching(by_group))
        return unspread - sum(not (each.terminating or each.spread) for each in refused)

    def pods_matching(self, requirements: Requirements) -> Iterator[tuple[str, int]]:
        """The names and slots of the matching pods, including terminating pods."""
        by_value, by_group = self._apart(requirements)
        groups = {*self.matching(by_group)}
        for name, record in self.records.items() if groups else ():
            check_time()
            if record.group in groups and all(condition.matches(record.aside) for condition in by_value):
                yield name, record.slot

    def _apart(self, requirements: Requirements) -> tuple[Requirements, Requirements]:
        """Split the requirements in two: those needing the value of a many-valued key, and all others."""
        by_value = tuple(r for r in requirements if r.key in self._many_valued and r.operator in _BY_VALUE)
        return by_value, tuple(r for r in requirements if r not in by_value) if by_value else requirements

    def _count_groups(self, requirements: Requirements, *, terminating: bool) -> tuple[dict[int, int], int]:
        """Count the pods of all groups with matching labels, by node slot.

        Also return a number of groups as an estimate of the work. `count` keeps only counts that took much work.
        Without a positive requirement, most groups match. Then the pods of the non-matching groups are subtracted from
        the total, unless ``terminating`` is set or most groups do not match.
        """
        if terminating or any(r.operator in _POSITIVE for r in requirements):
            groups = self.matching(requirements)
            return _merged(groups, terminating=terminating), len(groups)
        others: set[_PodGroup] = set()
        for requirement in requirements:
            others |= self._not_meeting(requirement)
        if len(others) * 2 > len(self.groups):
            return _merged([group for group in self.groups.values() if group not in others], terminating=False), len(
                others
            )
        counts = dict(self._total)
        for slot, number in _merged(others, terminating=False).items():
            if counts[slot] == number:
                del counts[slot]
            else:
                counts[slot] -= number
        return counts, len(self.groups)

    def _not_meeting(self, requirement: Requirement) -> set[_PodGroup]:
        """Return the groups of pods whose labels fail a requirement: NotIn, Exists or DoesNotExist."""
        if requirement.operator == "NotIn":
            return self._with_value(requirement)
        values = self._by_label.get(requirement.key, {})
        if requirement.operator == "DoesNotExist":
            return {group for group in self._many_labelled if requirement.key in group.labels}.union(*values.values())
        if sum(map(len, values.values())) == len(self.groups):
            return set()
        return {group for group in self.groups.values() if requirement.key not in group.labels}

    def _holders(self, by_value: Requirements, by_group: Requirements) -> Collection[PodRecord]:
        """Return the pods that match all requirements.

        Args:
            by_value: Requirements on many-valued keys. At least one has the operator In or ``=``.
            by_group: All other requirements.
        """
        first = min((r for r in by_value if r.operator in _POSITIVE), key=self._many_hold)
        pods = set[PodRecord]().union(*self._by_values(first))
        for requirement in by_value:
            if requirement is not first:
                named = set[PodRecord]().union(*(pods & part for part in self._by_values(requirement)))
                if requirement.operator in _POSITIVE:
                    pods = named
                else:
                    pods -= named
        return _of_groups(pods, by_group)

    def _refused(self, by_value: Requirements, by_group: Requirements) -> Collection[PodRecord]:
        """The pods of matching groups that a NotIn on a many-valued key rejects."""
        parts = chain.from_iterable(map(self._by_values, by_value))
        return _of_groups(set[PodRecord]().union(*parts), by_group)

    def _by_values(self, requirement: Requirement) -> Iterator[set[PodRecord]]:
        """Yield a set of pods for each value in the requirement.

        The requirement's key has many values. No pod is in two sets.
        """
        values = self._aside.get(requirement.key, {})
        return (values[value] for value in dict.fromkeys(requirement.values) if value in values)

    def _many_hold(self, requirement: Requirement) -> int:
        return sum(map(len, self._by_values(requirement)))


def _of_groups(pods: Collection[PodRecord], requirements: Requirements) -> Collection[PodRecord]:
    if not requirements:
        return pods
    met = {group for group in {pod.group for pod in pods} if _meets(group, requirements)}
    return [pod for pod in pods if pod.group in met]


# Counter handles all pods at once. A zone has a third of a namespace's pods, and a loop took ten times as long.
def _on_slots(pods: Iterable[PodRecord], *, terminating: bool) -> dict[int, int]:
    return dict(Counter([pod.slot for pod in pods if terminating or not pod.terminating]))


_NOTHING_ASIDE: dict[str, str] = {}
_POSITIVE = frozenset({"=", "In"})
_BY_VALUE = frozenset({"=", "In", "NotIn"})


def _meets(group: _PodGroup, requirements: Requirements) -> bool:
    return all(requirement.matches(group.labels) for requirement in requirements)


def _short(requirements: Requirements) -> bool:
    """Whether the selector is short enough for caching its pod counts."""
    values = sum(1 + len(requirement.values) for requirement in requirements)
    return (
        values <= _KEPT_VALUES
        and sum(len(text) for requirement in requirements for text in requirement.values) <= _KEPT_TEXT
    )


def bump(counts: dict[_Key, int], key: _Key, by: int) -> None:
    """Add ``by`` to the count of ``key``. Remove a count of 0."""
    number = counts.get(key, 0) + by
    if number:
        counts[key] = number
    else:
        drop(counts, key)


def _merged(groups: Collection[_PodGroup], *, terminating: bool) -> dict[int, int]:
    parts = [group.counts for group in groups if group.counts]
    if terminating:
        parts += [group.terminating for group in groups if group.terminating]
    if not parts:
        return {}
    # Copying a dict is much faster than filling one, so copy the largest, and add the others.
    largest = max(parts, key=len)
    total = dict(largest)
    for part in parts:
        check_time()
        if part is not largest:
            for slot, number in part.items():
                total[slot] = total.get(slot, 0) + number
    return total
