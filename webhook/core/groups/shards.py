"""The shards of a group: those that somebody wrote, and those that are expected and look like them."""

from collections.abc import Sequence

from msgspec.structs import replace

from webhook.core.api.types import ObjectMeta, Pod, PodSpec
from webhook.core.decoders import converted
from webhook.core.groups.fields import with_fields, with_value
from webhook.core.groups.group import Fields, Group, Shard
from webhook.core.yaml_flow import plain


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
    old = of.pod.labels.get(group.shard_label, "")
    fields = Fields(of.pod.pod_spec.constraints, of.pod.pod_spec.affinity)
    written = with_value(plain(fields), group.shard_label, old, value)
    meta = replace(of.pod.meta, name=f"{name}-0", labels={**of.pod.labels, group.shard_label: value})
    pod = with_fields(replace(of.pod, metadata=meta), converted(written, Fields))
    return Shard(name=name, value=value, pod=pod, in_turn=of.in_turn, exists=False)
