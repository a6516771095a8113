"""Build a group's shards from its workloads, and an index without their pods.

Each shard has the zones fixed by its volumes, by an earlier plan or by a zone pin in its template.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.selectors import compile_selector
from webhook.core.api.types import LabelSelector, ObjectMeta, Pod, PodSpec
from webhook.core.context import Context
from webhook.core.decoders import converted
from webhook.core.groups.fields import replace_label_value
from webhook.core.groups.group import Fields, Group, PlanInput, Shard, with_fields
from webhook.core.groups.zone_pin import split_pin
from webhook.core.index.label_column import Column
from webhook.core.index.overlay import without_pods
from webhook.core.index.pods import Counts
from webhook.core.index.read_only import ReadOnlyIndex
from webhook.core.placement.proofs.pinned_claims import ordinals
from webhook.core.text import listed, one_line
from webhook.core.workloads.workload import Workload
from webhook.core.yaml_text import plain

_NAMES = 6  # The most names in one message, to keep it on one line.


class GroupMember(Struct, frozen=True, kw_only=True):
    """A workload of a group.

    Attributes:
        shard: The value of the workload's shard label.
        pod: The workload's next pod, as the scheduler gets it.
        pods: The desired number of pods.
    """

    workload: Workload
    shard: str
    pod: Pod
    pods: int

    @property
    def name(self) -> str:
        return self.workload.meta.name


def shards_in_cluster(
    group: Group,
    members: Iterable[GroupMember],
    context: Context,
    stored: Mapping[str, Sequence[str]] | None = None,
    *,
    searches: bool = True,
) -> PlanInput:
    """Build the expected shards of a group, existing or missing.

    The result's index is a view of the cluster without the shards' running pods. The zones of a shard are those of its
    volumes, then those in ``stored``, then those pinned in the shard's template. Running pods keep their zones if
    possible. If several workloads have the same shard label, only the largest workload is a shard.

    Args:
        group: The group.
        members: The group's workloads.
        context: The policy, and the cluster with the workloads' pods.
        stored: The zones of an earlier plan, by the value of the shard label.
        searches: Whether to search all orders of small groups without another proof.
    """
    index = without = context.cluster
    selector, running, written = compile_selector(group.selector), 0, list[Shard]()
    for member in _largest(members):
        own = selector.joined(
            compile_selector(LabelSelector(match_labels={group.shard_label: member.shard})).requirements
        )
        there = index.pods.count(group.namespace, own)
        if there:
            without, running = without_pods(without, member.pod, own, there), running + sum(there.values())
        _, pins = split_pin(group, member.pod)
        settled = (*_zones_of_volumes(group, member, index), *(stored or {}).get(member.shard, ()), *pins)
        written.append(
            Shard(
                name=member.name,
                value=member.shard,
                pod=member.pod,
                in_turn=member.workload.traits.ordered and not member.workload.parallel,
                zones=tuple(dict.fromkeys(settled))[: group.pods_per_shard],
                running=_zones_of(there, index.nodes.view().column(group.zone_key)),
            )
        )
    if len(written) > group.plan_for:
        group = replace(group, plan_for=len(written))
    shards = tuple(_settled(group, shard, stored or {}) for shard in all_shards(group, written))
    return PlanInput(
        group=group, shards=shards, context=context.with_index(without), running=running, searches=searches
    )


def duplicate_shards(members: Iterable[GroupMember]) -> str:
    """Return a message about workloads with the same shard or the same name. Empty without such workloads."""
    given = [*members]
    names, kinds = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for member in given:
        names[member.shard] += [member.name] if member.pods else []
    for member in _largest(given):
        kinds[member.name].append(f"{member.workload.kind} {member.name}")
    of_one_shard = (
        f"{listed(sorted(of_shard), _NAMES)} run pods of the same shard {one_line(shard, 63)}; "
        "use one workload per shard"
        for shard, of_shard in names.items()
        if len(of_shard) > 1
    )
    of_one_name = (
        f"{listed(sorted(named), _NAMES)} have the same name; give each shard its own name"
        for named in kinds.values()
        if len(named) > 1
    )
    return next(chain(of_one_shard, of_one_name), "")


def _largest(members: Iterable[GroupMember]) -> Iterable[GroupMember]:
    largest = dict[str, GroupMember]()
    for member in sorted(members, key=lambda member: (-member.pods, member.name)):
        largest.setdefault(member.shard, member)
    return largest.values()


def _settled(group: Group, shard: Shard, stored: Mapping[str, Sequence[str]]) -> Shard:
    """Give a shard without a workload its stored zones."""
    if shard.exists or shard.value not in stored:
        return shard
    return replace(shard, zones=tuple(stored[shard.value])[: group.pods_per_shard])


def _zones_of(counts: Counts, column: Column) -> tuple[str, ...]:
    """Return the zones of these pods, the zone with most pods first."""
    held = Counter[str]()
    for slot, pods in counts.items():
        if slot < len(column.domain_of) and column.domain_of[slot] >= 0:  # A node can be deleted, or without a zone.
            held[column.values[column.domain_of[slot]]] += pods
    return tuple(sorted(held, key=lambda zone: (-held[zone], zone)))


def _zones_of_volumes(group: Group, member: GroupMember, index: ReadOnlyIndex) -> list[str]:
    workload, column = member.workload, index.nodes.view().column(group.zone_key)
    known = ordinals(index, group.namespace, workload.meta.name, workload.claims, workload.ordinals(member.pods))
    zones = set[str]()
    for pod in known.pods if known is not None and workload.traits.ordered else ():
        domains = column.domains(pod.nodes & column.present) if pod.nodes else frozenset()
        zones |= {column.values[domain] for domain in domains} if len(domains) == 1 else set()
    return sorted(zones)


def all_shards(group: Group, written: Sequence[Shard]) -> tuple[Shard, ...]:
    """Return ``written``, sorted by name, then placeholders for shards without a workload, up to ``plan_for``."""
    shards = sorted(written, key=lambda shard: (len(shard.name), shard.name))
    names, values = {shard.name for shard in shards}, {shard.value for shard in shards}
    first = shards[0] if shards else _first_shard(group)
    stem, number = first.name.removesuffix(first.value).rstrip("-") or group.name, 0
    while len(shards) < group.plan_for:
        name, value = f"{stem}-{number}", str(number)
        if name not in names and value not in values:
            shards.append(_shard_like(group, first, name, value))
        number += 1
    return tuple(shards)


def _first_shard(group: Group) -> Shard:
    labels = {**(group.selector.match_labels or {}), group.shard_label: "0"}
    pod = Pod(metadata=ObjectMeta(name=f"{group.name}-0-0", namespace=group.namespace, labels=labels), spec=PodSpec())
    return Shard(name=f"{group.name}-0", value="0", pod=pod)


def _shard_like(group: Group, like: Shard, name: str, value: str) -> Shard:
    """Return a missing shard: a copy with another name and shard label value, also in its selectors."""
    old = like.pod.labels.get(group.shard_label, "")
    fields = Fields(like.pod.pod_spec.constraints, like.pod.pod_spec.affinity)
    written = replace_label_value({"fields": plain(fields)}, group.shard_label, old, value)["fields"]
    meta = replace(like.pod.meta, name=f"{name}-0", labels={**like.pod.labels, group.shard_label: value})
    pod = with_fields(replace(like.pod, metadata=meta), converted(written, Fields))
    return Shard(name=name, value=value, pod=pod, in_turn=like.in_turn, exists=False)
