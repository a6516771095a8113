"""The shards of a group: those that somebody wrote, and those that are expected and look like them."""

from collections.abc import Sequence

from msgspec.structs import replace

from webhook.core.api.types import LabelSelector, ObjectMeta, Pod, PodAffinityTerm, PodSpec
from webhook.core.groups.group import Group, Shard


def all_shards(group: Group, written: Sequence[Shard]) -> tuple[Shard, ...]:
    """One for each shard that is planned for: those that are written by their names, then the others."""
    found = sorted(written, key=lambda each: (len(each.name), each.name))
    names, values = {each.name for each in found}, {each.value for each in found}
    first = found[0] if found else _bare(group)
    stem, number = first.name.removesuffix(first.value).rstrip("-") or group.name, 0
    while len(found) < group.plan_for:
        name, value = f"{stem}-{number}", str(number)
        if name not in names and value not in values:
            found.append(_like(group, first, name, value))
        number += 1
    return tuple(found)


def _bare(group: Group) -> Shard:
    labels = {**(group.selector.match_labels or {}), group.shard_label: "0"}
    pod = Pod(metadata=ObjectMeta(name=f"{group.name}-0-0", namespace=group.namespace, labels=labels), spec=PodSpec())
    return Shard(name=f"{group.name}-0", value="0", pod=pod)


def _like(group: Group, of: Shard, name: str, value: str) -> Shard:
    """A shard as that one, with a value of its own wherever its pods are told apart by it."""
    labels = {**of.pod.labels, group.shard_label: value}
    spec = of.pod.pod_spec
    apart = spec.affinity.pod_anti_affinity if spec.affinity is not None else None
    if spec.affinity is not None and apart is not None and apart.required:
        terms = tuple(_of_shard(group, each, value) for each in apart.required)
        spec = replace(spec, affinity=replace(spec.affinity, pod_anti_affinity=replace(apart, required=terms)))
    meta = replace(of.pod.meta, name=f"{name}-0", labels=labels)
    return Shard(
        name=name, value=value, pod=replace(of.pod, metadata=meta, spec=spec), in_turn=of.in_turn, exists=False
    )


def _of_shard(group: Group, term: PodAffinityTerm, value: str) -> PodAffinityTerm:
    pairs = (term.label_selector or LabelSelector()).match_labels or {}
    if term.label_selector is None or group.shard_label not in pairs:
        return term
    return replace(term, label_selector=replace(term.label_selector, match_labels={**pairs, group.shard_label: value}))
