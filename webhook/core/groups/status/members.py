"""The workloads of a group as its shards, with the zones that are settled, and the cluster without their pods."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.selectors import compile_selector
from webhook.core.api.types import LabelSelector, ObjectMeta, Pod, PodSpec
from webhook.core.context import Context
from webhook.core.decoders import converted
from webhook.core.groups.fields import unpinned, with_fields, with_value
from webhook.core.groups.group import Fields, Group, PlannedFor, Shard
from webhook.core.index.label_column import Column
from webhook.core.index.overlay import without_pods
from webhook.core.index.pods import Counts
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.proofs.pinned_claims import ordinals
from webhook.core.text import listed, one_line
from webhook.core.workloads.workload import ClaimTemplates, Workload
from webhook.core.yaml_text import plain

_NO_CLAIMS = ClaimTemplates(())
_NAMES = 6


class Member(Struct, frozen=True, kw_only=True):
    """A workload of a group.

    Attributes:
        shard: Its value of the shard label.
        pod: Its next pod, as the scheduler gets it.
        pods: How many pods it is to have.
    """

    workload: Workload
    shard: str
    pod: Pod
    pods: int

    @property
    def name(self) -> str:
        """The workload's."""
        return self.workload.meta.name


def shards_in_cluster(
    group: Group,
    members: Iterable[Member],
    within: Context,
    stored: Mapping[str, Sequence[str]] | None = None,
    *,
    searches: bool = True,
) -> PlannedFor:
    """The shards of these workloads and those that are expected beside them, in the cluster without their pods.

    Of workloads with one value only the largest is a shard. A shard's volumes settle its zones first, then ``stored``,
    the zones of an earlier plan by the value of the shard label, then the pin of its template. The zones of its running
    pods are kept if possible. ``searches`` is as in `PlannedFor`.
    """
    index = without = within.cluster
    selector, running, written = compile_selector(group.selector), 0, list[Shard]()
    for each in _largest(members):
        own = selector.joined(
            compile_selector(LabelSelector(match_labels={group.shard_label: each.shard})).requirements
        )
        there = index.pods.count(group.namespace, own)
        if there:
            without, running = without_pods(without, each.pod, own, there), running + sum(there.values())
        _, pins = unpinned(group, each.pod)
        settled = (*_zones_of_volumes(group, each, index), *(stored or {}).get(each.shard, ()), *pins)
        written.append(
            Shard(
                name=each.name,
                value=each.shard,
                pod=each.pod,
                in_turn=each.workload.traits.ordered and not each.workload.parallel,
                zones=tuple(dict.fromkeys(settled))[: group.pods_per_shard],
                running=_zones_of(there, index.nodes.view().column(group.zone_key)),
            )
        )
    if len(written) > group.plan_for:
        group = replace(group, plan_for=len(written))
    shards = tuple(_settled(group, each, stored or {}) for each in all_shards(group, written))
    return PlannedFor(group=group, shards=shards, within=within.with_index(without), running=running, searches=searches)


def duplicate_shards(members: Iterable[Member]) -> str:
    """Which workloads run pods of one shard, or are shards of one name. Empty if none."""
    given = [*members]
    names, kinds = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for each in given:
        names[each.shard] += [each.name] if each.pods else []
    for each in _largest(given):
        kinds[each.name].append(f"{each.workload.kind} {each.name}")
    of_one_shard = (
        f"{listed(sorted(found), _NAMES)} run pods of one shard, {one_line(shard, 63)}; each shard is one workload"
        for shard, found in names.items()
        if len(found) > 1
    )
    of_one_name = (
        f"{listed(sorted(found), _NAMES)} have one name; each shard has a name of its own"
        for found in kinds.values()
        if len(found) > 1
    )
    return next(chain(of_one_shard, of_one_name), "")


def _largest(members: Iterable[Member]) -> Iterable[Member]:
    """The largest workload for each value of the shard label."""
    found = dict[str, Member]()
    for each in sorted(members, key=lambda one: (-one.pods, one.name)):
        found.setdefault(each.shard, each)
    return found.values()


def _settled(group: Group, shard: Shard, stored: Mapping[str, Sequence[str]]) -> Shard:
    """A shard without a workload keeps its stored zones."""
    if shard.exists or shard.value not in stored:
        return shard
    return replace(shard, zones=tuple(stored[shard.value])[: group.pods_per_shard])


def _zones_of(counts: Counts, column: Column) -> tuple[str, ...]:
    """The zones with pods, the fullest first."""
    held = Counter[str]()
    for slot, pods in counts.items():
        if slot < len(column.of) and column.of[slot] >= 0:  # no node that is gone, or without a zone
            held[column.values[column.of[slot]]] += pods
    return tuple(sorted(held, key=lambda zone: (-held[zone], zone)))


def _zones_of_volumes(group: Group, member: Member, index: ReadOnlyIndex) -> list[str]:
    """The zones to which volumes pin the shard's pods."""
    of, column = member.workload, index.nodes.view().column(group.zone_key)
    numbers = range(of.first_ordinal, of.first_ordinal + member.pods)
    known = ordinals(index, group.namespace, of.meta.name, of.claims or _NO_CLAIMS, numbers)
    found = set[str]()
    for each in known.pods if known is not None and of.traits.ordered else ():
        domains = column.domains(each.nodes & column.present) if each.nodes else frozenset()
        found |= {column.values[domain] for domain in domains} if len(domains) == 1 else set()
    return sorted(found)


def all_shards(group: Group, written: Sequence[Shard]) -> tuple[Shard, ...]:
    """One for each shard that is planned for: those that are written by their names, then the others."""
    found = sorted(written, key=lambda each: (len(each.name), each.name))
    names, values = {each.name for each in found}, {each.value for each in found}
    first = found[0] if found else _first_shard(group)
    stem, number = first.name.removesuffix(first.value).rstrip("-") or group.name, 0
    while len(found) < group.plan_for:
        name, value = f"{stem}-{number}", str(number)
        if name not in names and value not in values:
            found.append(_shard_like(group, first, name, value))
        number += 1
    return tuple(found)


def _first_shard(group: Group) -> Shard:
    labels = {**(group.selector.match_labels or {}), group.shard_label: "0"}
    pod = Pod(metadata=ObjectMeta(name=f"{group.name}-0-0", namespace=group.namespace, labels=labels), spec=PodSpec())
    return Shard(name=f"{group.name}-0", value="0", pod=pod)


def _shard_like(group: Group, of: Shard, name: str, value: str) -> Shard:
    """A shard like another, with its own value in all selectors."""
    old = of.pod.labels.get(group.shard_label, "")
    fields = Fields(of.pod.pod_spec.constraints, of.pod.pod_spec.affinity)
    written = with_value(plain(fields), group.shard_label, old, value)
    meta = replace(of.pod.meta, name=f"{name}-0", labels={**of.pod.labels, group.shard_label: value})
    pod = with_fields(replace(of.pod, metadata=meta), converted(written, Fields))
    return Shard(name=name, value=value, pod=pod, in_turn=of.in_turn, exists=False)
